import { test, type Test } from 'tap'
import { isMendable } from '../../../../src/features/locations/ingest/views.ts'
import { FakeClock } from '../../../support/fake-clock.ts'
import { ingestKey, openIngest, pointsOf, type TestIngestOptions } from '../../../support/ingest.ts'

const ORG = '018f0000-0000-7000-8000-000000000001'
const START = Date.parse('2026-03-01T08:00:00Z')
const CALLER = ingestKey(ORG)

const open = async (t: Test, options: TestIngestOptions = {}) => {
  const opened = await openIngest(t, { clock: new FakeClock(START + 60_000), partitions: 1, ...options })
  opened.trackers.add(ORG, 'unit-1')
  return opened
}

/** What an adapter of a protocol comes to: a line `<name> <seconds> <latitude> <longitude>` for each fix. */
const decode = (lines: string): object[] =>
  lines.split(';').map((line) => {
    const [externalId, seconds, lat, lng] = line.trim().split(' ')
    return { externalId, recordedAt: START + Number(seconds) * 1000, lat: Number(lat), lng: Number(lng) }
  })

const turns = async (): Promise<void> => {
  for (let turn = 0; turn < 5; turn++) await new Promise((next) => setImmediate(next))
}

test('a decoder is answered once its points are in the log, and may tell what to keep from what to let go', async (t) => {
  const { ingest, refusing, logged, counts } = await open(t)
  refusing.hold()
  let isAnswered = false
  const lines =
    'unit-1 1 52.1 21; unit-1 2 52.2 21; unit-1 2 52.2 21; unit-1 3 99 21; unit-2 4 52 21; unit-1 -40000000 52 21'
  const storing = ingest.store(CALLER, decode(lines)).finally(() => {
    isAnswered = true
  })
  await turns()
  t.equal(refusing.appends.length, 1)
  t.notOk(isAnswered, 'the log has not taken them')
  t.same(counts, { accepted: 0, duplicate: 0, rejected: 0 })
  refusing.release()
  const { accepted, duplicates, rejected } = await storing
  t.same([accepted, duplicates], [2, 1])
  t.same(
    rejected.map(({ index, code }) => [index, code, isMendable(code)]),
    [
      [3, 'invalid', false],
      [4, 'unknown_tracker', true],
      [5, 'too_old', false],
    ],
  )
  t.same(counts, { accepted: 2, duplicate: 1, rejected: 3 })
  t.same(
    pointsOf((await logged()).flat()).map(({ lat }) => lat),
    [52.1, 52.2],
  )
  t.same((['invalid', 'too_old', 'too_far_ahead'] as const).filter(isMendable), [])
  t.same(
    (['unknown_tracker', 'tracker_limit', 'forbidden_tracker'] as const).filter((code) => !isMendable(code)),
    [],
  )
})

test('overload and an engine that is down are failures, so that the device keeps what it has', async (t) => {
  const { ingest, refusing, counts, logged, clock } = await open(t, { limits: { organizationPointsMax: 1 } })
  refusing.hold()
  const first = ingest.store(CALLER, decode('unit-1 1 52 21'))
  await t.rejects(ingest.store(CALLER, decode('unit-1 2 52 21')), {
    code: 'overloaded',
    details: { retryAfterSeconds: 2 },
  })
  await turns()
  refusing.isRefusing = true
  refusing.release()
  await t.rejects(first, { code: 'engine_down', details: { retryAfterSeconds: 2 } })
  await t.rejects(ingest.store(CALLER, decode('unit-1 3 52 21')), { code: 'engine_down' }, 'refused before it is taken')
  await t.rejects(ingest.store(CALLER, Array(10_001).fill({})), { code: 'too_large' })
  t.same(counts, { accepted: 0, duplicate: 0, rejected: 0 })
  t.same((await logged()).flat(), [])
  refusing.isRefusing = false
  ;(clock as FakeClock).advance(1_000) // the batcher tries again, and is done before the log is closed
  while ((await logged()).flat().length === 0) await turns()
})

test('a log that hangs is not waited for longer than 15 s, and what it takes later is not counted as acknowledged', async (t) => {
  const clock = new FakeClock(START + 60_000)
  const { ingest, refusing, counts, entries } = await open(t, { clock })
  refusing.hold()
  const hanging = ingest.store(CALLER, decode('unit-1 1 52 21'))
  await turns()
  clock.advance(15_000)
  await t.rejects(hanging, { code: 'engine_down' })
  refusing.release()
  await turns()
  while (entries.length === 0) await turns()
  t.same(counts, { accepted: 0, duplicate: 0, rejected: 0 })
})

test('requests that wait for trackers to be made count against the queue of their organization', async (t) => {
  const { ingest, trackers } = await open(t, { limits: { organizationBytesMax: 100 } })
  trackers.add(ORG, 'unit-9')
  trackers.unknownAtFirst.add('unit-9')
  let go = (): void => {}
  trackers.gate = new Promise((done) => {
    go = done
  })
  const first = ingest.store(CALLER, decode('unit-9 1 52 21'))
  await t.rejects(ingest.store(CALLER, decode('unit-9 2 52 21;unit-9 3 52 21')), { code: 'overloaded' })
  go()
  t.equal((await first).accepted, 1)
  t.equal((await ingest.store(CALLER, decode('unit-9 2 52 21'))).accepted, 1, 'what was held is free again')
})
