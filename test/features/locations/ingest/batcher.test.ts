import { test } from 'tap'
import { encodePointBatch } from '../../../../src/features/locations/point-batch-codec.ts'
import { bulkRoute } from '../../../../src/features/locations/ingest/bulk-api.ts'
import { idFrom } from '../../../../src/kit/commands/ids.ts'
import type { Keyring } from '../../../../src/kit/keys/keyring.ts'
import { createHmac } from 'node:crypto'
import { readTripToken } from '../../../../src/features/locations/trip-token.ts'
import { FakeClock } from '../../../support/fake-clock.ts'
import { routeCaller } from '../../../support/call-route.ts'
import { ingestKey, openIngest, pointsOf, type TestIngestOptions } from '../../../support/ingest.ts'
import { seeded } from '../../../support/random.ts'

const ORG = idFrom('organization', 'a')
const FLOOD = idFrom('organization', 'flood')
const START = Date.now() - 10_000_000
const keyring = {
  hmac: (purpose: string, text: string) => createHmac('sha256', 'key').update(`${purpose} ${text}`).digest(),
} as unknown as Keyring

const open = async (t: Parameters<typeof openIngest>[0], options?: TestIngestOptions) => {
  const ingest = await openIngest(t, options)
  for (const organizationId of [ORG, FLOOD])
    for (let i = 0; i < 50; i++) ingest.trackers.add(organizationId, `bus-${i}`)
  const call = routeCaller({ routes: [bulkRoute(ingest.ingest, keyring)] })
  const bulk = (points: unknown[], organizationId = ORG) =>
    call('POST', '/location-history/bulk', { caller: ingestKey(organizationId), body: { points } })
  return { ...ingest, bulk, client: ingest.connect(ingestKey(ORG)) }
}
const fix = (i: number, more: object = {}) => ({
  externalId: 'bus-1',
  recordedAt: START + i,
  lat: 50 + i / 1e5,
  lng: 21,
  ...more,
})
const many = (count: number, more: (i: number) => object = () => ({})) =>
  Array.from({ length: count }, (_, i) => fix(i, more(i)))

test('the bulk route answers once points are durable: accepted, repeats, rejected, and a token for each trip', async (t) => {
  const { bulk, logged, counts } = await open(t)
  const answer = await bulk([
    fix(0, { trip: 'start' }),
    fix(1),
    fix(1),
    fix(2, { lat: 91 }),
    fix(3, { externalId: 'who' }),
    fix(4, { trip: 'finish' }),
  ])
  t.equal(answer.status, 200)
  t.match(answer.body.data, {
    accepted: 3,
    duplicates: 1,
    rejected: [
      { index: 3, code: 'invalid', message: '/lat must be <= 90' },
      { index: 4, code: 'unknown_tracker' },
    ],
  })
  const [{ trackerId, token }] = answer.body.data.trackingTokens
  t.same(readTripToken(keyring, token), { trackerId, startedAt: START })
  t.equal(readTripToken(keyring, token.slice(0, -2) + 'AA'), undefined)
  t.equal(readTripToken(keyring, 'x'), undefined)
  t.equal(pointsOf((await logged()).flat()).length, 3)
  t.same(counts, { accepted: 3, duplicate: 1, rejected: 2 })
  t.same(
    (await bulk([fix(1)])).body.data,
    { accepted: 1, rejected: [] },
    'a repeat of an earlier request counts as accepted',
  )
})

test('a log that costs more for each append gets them further apart', async (t) => {
  const { bulk, log } = await open(t)
  Object.assign(log, { gatherMs: 300 })
  const begun = performance.now()
  await bulk([fix(0)])
  await bulk([fix(1)])
  t.ok(performance.now() - begun > 290, 'the second one is a beat behind the first')
})

test('bodies that are no list of 1 to 10,000 points are refused', async (t) => {
  const { bulk } = await open(t)
  t.match(await bulk([]), { status: 400, body: { code: 'invalid' } })
  t.match(await bulk(many(10_001)), { status: 413, body: { code: 'too_large' } })
  t.match((await bulk([1, null, 'x', []])).body.data, { accepted: 0, rejected: { length: 4 } })
})

test('a request that fits no append is sorted, rid of repeats and split, in order, within the limits', async (t) => {
  const { bulk, logged, client } = await open(t, { partitions: 1 })
  const points = many(9_000, (i) => ({ externalId: `bus-${i % 50}`, attributes: { note: 'x'.repeat(180) } })).reverse()
  const sent = bulk([...points.slice(0, 5_000), ...points])
  t.equal((await bulk(many(1))).status, 200)
  t.equal((await sent).status, 413)
  const answer = await bulk([...points.slice(0, 1_000), ...points])
  t.match(answer.body.data, { accepted: 9_000, duplicates: 1_000 })
  client.send(fix(0))
  await client.until(() => client.acked === 1)
  const batches = (await logged())[0].slice(1, -1)
  t.ok(batches.length >= 8, `${batches.length} parts`)
  for (const batch of batches) t.ok(encodePointBatch(batch).length <= 256 * 1024 && batch.count <= 10_000)
  const stored = pointsOf(batches)
  t.equal(stored.length, 9_000)
  const last = new Map<string, number>()
  for (const { trackerId, recordedAt } of stored) {
    if (recordedAt <= (last.get(trackerId) ?? 0)) return t.fail('times of a tracker do not rise over the parts')
    last.set(trackerId, recordedAt)
  }
})

test('each batch is sorted by tracker and time without repeats, whatever came in what order', async (t) => {
  const { client, logged, refusing, entries } = await open(t, { partitions: 2 })
  refusing.hold()
  const random = seeded(1)
  const frames = 60
  for (let n = 0; n < frames; n++) {
    client.send(
      Array.from({ length: 40 }, () =>
        fix(Math.floor(random() * 500), { externalId: `bus-${Math.floor(random() * 7)}` }),
      ),
    )
  }
  refusing.release()
  await client.until(() => client.acked === frames)
  const all = await logged()
  for (const batch of all.flat()) {
    for (let i = 1; i < batch.count; i++) {
      const isRising =
        batch.tracker[i] > batch.tracker[i - 1] ||
        (batch.tracker[i] === batch.tracker[i - 1] && batch.recordedAt[i] > batch.recordedAt[i - 1])
      if (!isRising) return t.fail('not sorted')
    }
  }
  t.ok(
    all.flat().some(({ count }) => count > 100),
    'frames were batched',
  )
  const offered = entries.map(
    (entry) => entry.kind === 'points' && [entry.partition, entry.revision, encodePointBatch(entry.batch).length],
  )
  const inLog = all.flatMap((batches, partition) =>
    batches.map((batch, revision) => [partition, revision, encodePointBatch(batch).length]),
  )
  t.same(offered.sort(), inLog.sort(), 'what is offered to consumers is what the log has')
})

test('while the log refuses, nothing is acknowledged, the same event is tried again, HTTP is answered 503, and then it goes on', async (t) => {
  const { client, bulk, refusing, logged } = await open(t, { partitions: 1 })
  refusing.hold()
  client.send(fix(1))
  client.send(fix(2))
  const early = bulk([fix(3)])
  for (let turn = 0; turn < 5; turn++) await new Promise((next) => setImmediate(next)) // it is taken in one of the next turns
  refusing.isRefusing = true
  refusing.release()
  t.match(await early, { status: 503, body: { code: 'engine_down' }, headers: { 'retry-after': '2' } })
  await client.until(() => refusing.appends.length >= 3)
  t.match(await bulk([fix(4)]), { status: 503, body: { code: 'engine_down' } }, 'refused before it is taken')
  t.equal(client.acked, 0)
  t.equal(new Set(refusing.appends.map(({ ids }) => ids[0])).size, 1, 'the same event id')
  refusing.isRefusing = false
  await client.until(() => client.acked === 2)
  t.equal((await bulk([fix(5)])).status, 200)
  t.same(
    pointsOf((await logged()).flat()).map(({ recordedAt }) => recordedAt - START),
    [1, 2, 3, 5],
  )
})

test('a full queue closes sockets with 4429 and answers HTTP 503, and others are not refused', async (t) => {
  const { client, bulk, refusing, connect } = await open(t, { limits: { organizationPointsMax: 100 } })
  refusing.hold()
  client.send(many(100))
  t.equal(client.over, undefined)
  client.send(fix(1))
  await client.until(() => client.over !== undefined)
  t.match(client.over, { code: 4429 })
  t.match(await bulk([fix(1)]), { status: 503, body: { code: 'overloaded' }, headers: { 'retry-after': '2' } })
  const other = connect(ingestKey(FLOOD))
  other.send(fix(1))
  refusing.release()
  await other.until(() => other.acked === 1)
  t.equal((await bulk([fix(1)])).status, 200)
})

test('an organization that floods does not hold up another', async (t) => {
  const { connect, refusing, logged } = await open(t, { partitions: 1, limits: { batchPointsMax: 1_000 } })
  refusing.hold()
  const floods = Array.from({ length: 10 }, () => connect(ingestKey(FLOOD)))
  let n = 0
  for (const flood of floods) for (let i = 0; i < 100; i++) flood.send(many(100, () => ({ recordedAt: START + n++ })))
  const quiet = connect(ingestKey(ORG))
  quiet.send(fix(1))
  refusing.release()
  await quiet.until(() => quiet.acked === 1)
  const at = (await logged())[0].findIndex(({ trackers }) =>
    trackers.some(({ organizationId }) => organizationId === ORG),
  )
  t.ok(at >= 0 && at <= 1, `its point is in append ${at} of 100`)
  await floods[9].until(() => floods.every(({ acked }) => acked === 100))
  t.equal(pointsOf((await logged()).flat()).length, 100_001)
})

test('where more organizations wait than fit one append, each has its turn', async (t) => {
  const { connect, refusing, logged, trackers } = await open(t, { partitions: 1, limits: { batchPointsMax: 10 } })
  const organizations = Array.from({ length: 30 }, (_, i) => idFrom('organization', i))
  for (const organizationId of organizations) trackers.add(organizationId, 'bus-1')
  refusing.hold()
  const clients = organizations.map((organizationId) => connect(ingestKey(organizationId)))
  for (const client of clients)
    for (let frame = 0; frame < 5; frame++) client.send(many(5, (i) => ({ recordedAt: START + frame * 10 + i })))
  refusing.release()
  await clients[0].until(() => clients.every(({ acked }) => acked === 5))
  const batches = (await logged())[0]
  t.equal(batches.length, 75)
  const firsts = organizations.map((organizationId) =>
    batches.findIndex(({ trackers: named }) => named.some((one) => one.organizationId === organizationId)),
  )
  t.ok(
    Math.max(...firsts) < 15,
    `the last one came with append ${Math.max(...firsts)}, all have been served once after 15`,
  )
})

test('the parts of one large request let other organizations pass', async (t) => {
  const { bulk, connect, logged, refusing } = await open(t, { partitions: 1, limits: { batchBytesMax: 20_000 } })
  const sent = bulk(
    many(2_000, () => ({ attributes: { note: 'x'.repeat(200) } })),
    FLOOD,
  )
  const quiet = connect(ingestKey(ORG))
  const flood = connect(ingestKey(FLOOD))
  await quiet.until(() => refusing.appends.length >= 1)
  quiet.send(fix(1))
  flood.send(fix(100_000))
  await quiet.until(() => quiet.acked === 1)
  t.equal(flood.acked, 0)
  t.equal((await sent).body.data.accepted, 2_000)
  await flood.until(() => flood.acked === 1)
  const batches = (await logged())[0]
  const places = batches.map(({ trackers }) => trackers[0].organizationId === ORG)
  t.ok(places.indexOf(true) < batches.length / 2)
  t.equal(batches.at(-1)?.count, 1, 'the flooding organization waits for its own parts')
})

test('the rate of an organization: HTTP is answered 429, sockets wait while there is room', async (t) => {
  const clock = new FakeClock(START + 10_000_000)
  const { bulk, connect, logged } = await open(t, {
    clock,
    limits: { organizationPointsPerSecond: 200, organizationPointsMax: 1_000 },
  })
  t.equal((await bulk(many(300))).status, 200)
  t.match(await bulk([fix(1)]), { status: 429, body: { code: 'rate_limited' }, headers: { 'retry-after': '1' } })
  t.equal((await bulk([fix(1)], FLOOD)).status, 200)
  const socket = connect(ingestKey(ORG))
  socket.send(many(50, (i) => ({ recordedAt: START + 1_000 + i })))
  socket.send(many(900, (i) => ({ recordedAt: START + 2_000 + i })))
  t.equal(socket.acked, 0)
  for (let waitedMs = 0; waitedMs < 300; waitedMs += 100) {
    clock.advance(100)
    await new Promise((next) => setImmediate(next))
    t.equal(socket.acked, 0, 'it waits for the rate')
  }
  clock.advance(205)
  await socket.until(() => socket.acked >= 1)
  socket.send(many(900))
  t.match(socket.over, { code: 4429 })
  t.ok(pointsOf((await logged()).flat()).length >= 351)
})

test('closing takes nothing more and waits for what is under way', async (t) => {
  const { client, batcher, logged } = await open(t)
  client.send(many(500, (i) => ({ externalId: `bus-${i % 50}` })))
  await batcher.close(5_000)
  t.equal(pointsOf((await logged()).flat()).length, 500)
  client.send(fix(1))
  t.equal(client.over, undefined, 'it is for the restart to close the socket')
  t.equal(client.acked, 1, 'what was not taken is not acknowledged')
})

test('closing while the log refuses takes no longer than told', async (t) => {
  const clock = new FakeClock(START + 10_000_000)
  const { client, batcher, refusing } = await open(t, { clock })
  refusing.isRefusing = true
  client.send(fix(1))
  await client.until(() => refusing.appends.length > 0)
  let isClosed = false
  const closing = batcher.close(100).then(() => (isClosed = true))
  clock.advance(99)
  await new Promise((next) => setImmediate(next))
  t.notOk(isClosed)
  clock.advance(1)
  await closing
  t.equal(client.acked, 0)
})
