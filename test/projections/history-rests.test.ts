import { test } from 'tap'
import { EntryBuffer, HistoryConsumer, type HistoryServices } from '../../projections/history-consumer.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { noErasures } from '../support/history-writers.ts'
import { until } from '../support/service.ts'

const open = async (clock: FakeClock) => {
  const inserts: number[] = []
  const control = { takesMs: 0, held: Promise.resolve() }
  let waiting = 0
  const history = {
    insert: async () => {
      clock.stand(control.takesMs)
      await control.held
      inserts.push(waiting)
      waiting = 0
    },
  }
  const tables = { take: async () => ({ at: undefined, fence: 1 }), commit: async () => undefined }
  const consumer = new HistoryConsumer<{ revision: number }>({
    ...({ history, tables } as unknown as HistoryServices),
    clock,
    epoch: 0,
    erasures: noErasures(),
    onFailure: (error) => {
      throw error
    },
    name: 'rests',
    ageMsMax: 100,
    buffer: () =>
      new EntryBuffer(
        () => 1,
        (entries) => {
          waiting = entries.length
          return [{ table: 't', block: new Uint8Array(1) }]
        },
      ),
  })
  await consumer.load(0)
  let revision = 0
  const add = (): void => void consumer.handle({ revision: revision++ }, 0)
  const stored = (): Promise<void> => until('what was handled', () => consumer.storedThrough(0) === revision - 1)
  return { consumer, control, inserts, add, stored }
}

test('the history rests between two inserts of few rows for four times as long as the last one took', async (t) => {
  const clock = new FakeClock()
  const { consumer, control, inserts, add, stored } = await open(clock)
  control.takesMs = 50
  add()
  t.ok(clock.isAwaited(100), 'the first waits as long as rows may')
  clock.advance(100)
  await stored()
  add()
  t.ok(clock.isAwaited(200), 'the next one longer')
  clock.advance(150)
  add()
  clock.advance(50)
  await stored()
  t.same(inserts, [1, 2], 'and has what came meanwhile')

  control.takesMs = 10_000
  clock.stand(1_000)
  add()
  t.ok(clock.isAwaited(100), 'after a lull there is nothing to wait for')
  clock.advance(100)
  await stored()
  add()
  t.ok(clock.isAwaited(500), 'a slow history is given half a second')
  await consumer.close()
  t.equal(consumer.storedThrough(0), 4, 'whoever closes waits for nothing')
})

test('rows that come while an insert is under way wait until the history has rested', async (t) => {
  const clock = new FakeClock()
  const { consumer, control, inserts, add, stored } = await open(clock)
  let go = (): void => undefined
  control.held = new Promise<void>((resume) => (go = resume))
  add()
  clock.advance(100)
  add()
  clock.advance(100) // so long the first one takes
  go()
  await until('the first insert to end and the next to be planned', () => clock.isAwaited(400))
  t.same(inserts, [1])
  clock.advance(400)
  await stored()
  t.same(inserts, [1, 1])
  await consumer.close()
})
