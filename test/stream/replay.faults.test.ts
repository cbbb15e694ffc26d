import { test } from 'tap'
import { IngestClient } from '../../src/cli/ingest-client.ts'
import { realDay, tracksOf } from '../support/real-day.ts'
import { signUp, startService, until } from '../support/service.ts'
import { checkDeliveries, checkHistory, checkTransitions, prepare } from '../support/stream-checks.ts'
import { watchPositions } from '../support/watch-positions.ts'
import { openReceiver } from '../support/webhook-receiver.ts'
import { folderOf } from '../support/folder-of.ts'

const FIXES = 6_000

test('a real day: every point in history once, the obvious transitions, each delivered once, every live position the true last one', {
  timeout: 900_000,
}, async (t) => {
  const service = await startService(folderOf(t))
  t.teardown(() => service.kill())
  const day = await realDay(t, FIXES, Date.now())
  const receiver = await openReceiver(t)
  const { token } = await signUp(service)
  const setting = await prepare(service, token, day, receiver)
  const live = await watchPositions(service, token)

  const gateway = await IngestClient.connect(service.url, setting.ingestKey)
  for (let at = 0; at < day.fixes.length; at += 100) await gateway.send(day.fixes.slice(at, at + 100))
  await gateway.drained()
  gateway.close()
  t.same(gateway.rejected, [])

  const trackers = await checkHistory(t, service, setting, day)
  const transitions = await checkTransitions(t, service, setting, day, trackers)
  t.equal(await checkDeliveries(t, receiver, transitions), 0, 'and once, as nothing was killed')

  const newest = [...tracksOf(day.fixes)].map(
    ([externalId, track]) => [trackers.get(externalId) as string, track[track.length - 1]] as const,
  )
  const wrong = (): string[] =>
    newest
      .filter(
        ([id, fix]) =>
          Date.parse(live.newest.get(id)?.recordedAt ?? '') !== fix.recordedAt || live.newest.get(id)?.lat !== fix.lat,
      )
      .map(([id]) => id)
  await until('live positions', () => wrong().length === 0).catch(() => {})
  t.same(wrong(), [], 'the live subscriber ended on every true last position')
  live.close()
  t.equal(await service.stop(), 0, 'SIGTERM ends it with 0')
})
