import { join } from 'node:path'
import { test } from 'tap'
import { CompanyDay, courierRound, entriesOf, type Outcome } from '../support/company-day.ts'
import { folderOf } from '../support/folder-of.ts'
import { type Service, startService } from '../support/service.ts'
import { openReceiver } from '../support/webhook-receiver.ts'

const KILLS = 10
/** Requests that change something, of which each so many-th meets a kill. */
const KILL_EACH = 4

test('a day of a delivery company comes out the same, once straight and once killed ten times', {
  timeout: 1_800_000,
}, async (t) => {
  const round = await courierRound(t, Date.now())
  const live = async (killsMax: number): Promise<{ outcome: Outcome; kills: number }> => {
    const folder = join(folderOf(t), String(killsMax))
    let service: Service = await startService(folder)
    t.teardown(() => service.kill())
    let [sent, kills] = [0, 0]
    const disturb = async (): Promise<void> => {
      if (++sent % KILL_EACH !== 3 || kills >= killsMax) return
      kills++
      await new Promise((resume) => setTimeout(resume, (sent * 37) % 60))
      await service.kill()
      service = await startService(folder)
    }
    const outcome = await new CompanyDay({ service: () => service, disturb }, await openReceiver(t), round).live()
    t.equal(await service.stop(), 0)
    return { outcome, kills }
  }
  const straight = await live(0)
  t.match(straight.outcome, { badDeliveries: [], hiddenSeenByClerk: [] })
  const entries = entriesOf(round)
  t.same(
    straight.outcome.entries,
    Object.entries(entries).flatMap(([customer, count]) => Array.from({ length: count }, () => customer)),
    'each stop is entered as often as computed fix by fix',
  )
  t.same(
    straight.outcome.tasks,
    round.stops.map(({ customer }) => [
      `Parcel of ${customer}`,
      'finished',
      { place: `Street of ${customer}`, state: 'on its way', receiver: 'Ada' },
      1,
      'schedule',
    ]),
  )
  const killed = await live(KILLS)
  t.equal(killed.kills, KILLS, 'it was killed so often')
  t.same(killed.outcome, straight.outcome)
})
