import { test } from 'tap'
import {
  AHEAD,
  HAS_ACCURACY,
  HAS_ATTRIBUTES,
  HAS_BATTERY,
  HAS_HEADING,
  HAS_SPEED,
  TRIP_START,
  type PointBatch,
} from '../../../../src/features/locations/events.ts'
import { writeBinaryFrame, type BinaryPoint } from '../../../../src/features/locations/ingest/binary-frame-writer.ts'
import { ingestKey, openIngest, pointsOf } from '../../../support/ingest.ts'
import { FakeClock } from '../../../support/fake-clock.ts'
import { parseTime } from '../../../../src/kit/http/parse-time.ts'
import { idFrom } from '../../../../src/kit/commands/ids.ts'

const ORG = idFrom('organization', 'a')
const NOW = Date.parse('2026-01-01T00:00:00Z')
const HOUR = 3_600_000

/** The door with a clock that stands still, but whose timers run. */
const open = async (t: Parameters<typeof openIngest>[0]) => {
  const clock = new FakeClock(NOW)
  const ingest = await openIngest(t, { clock, retentionMs: 30 * 24 * HOUR })
  ingest.trackers.add(ORG, 'bus')
  return { ...ingest, client: ingest.connect(ingestKey(ORG)) }
}
const fix = (more: object = {}) => ({ externalId: 'bus', recordedAt: NOW - 1000, lat: 52.2, lng: 21, ...more })

test('times: every form of RFC 3339 gives what Date gives, everything else is refused', async (t) => {
  for (const text of [
    '2026-05-04T09:30:00Z',
    '2026-05-04T09:30:00.1Z',
    '2026-05-04T09:30:00.123Z',
    '2026-05-04t09:30:00z',
    '2024-02-29T23:59:59.999+05:30',
    '1969-12-31T23:59:59.5Z',
    '0099-03-01T00:00:00Z',
    '9999-12-31T23:59:59-00:00',
    '2026-12-31T23:59:59.98-11:00',
  ])
    t.equal(parseTime(text), Date.parse(text.toUpperCase()), text)
  t.equal(parseTime('2026-05-04T09:30:00.1236Z'), Date.parse('2026-05-04T09:30:00.124Z'), 'rounded to 1 ms')
  t.equal(parseTime('2026-05-04T09:30:59.9999999999Z'), Date.parse('2026-05-04T09:31:00Z'))
  t.equal(parseTime('2016-12-31T23:59:60Z'), Date.parse('2017-01-01T00:00:00Z'), 'a leap second')
  for (const text of [
    '',
    'NaN',
    'now',
    '2026-05-04',
    '2026-05-04T09:30:00',
    '2026-02-29T00:00:00Z',
    '2026-13-01T00:00:00Z',
    '2026-00-10T00:00:00Z',
    '2026-05-04T24:00:00Z',
    '2026-05-04T09:60:00Z',
    '2026-05-04T09:30:61Z',
    '2026-05-04T09:30:60Z',
    '2026-05-04T09:30:00.Z',
    '2026-05-04T09:30:00+0200',
    '2026-05-04T09:30:00Z ',
    '2026-05-04T09:30:00+24:00',
    '2026/05/04T09:30:00Z',
    '2026-05-04X09:30:00Z',
    '+026-05-04T09:30:00Z',
    '2026-05-04T09:30:00ZZ',
    '２026-05-04T09:30:00Z',
    '2026-05-04\u000009:30:00Z',
  ])
    t.ok(Number.isNaN(parseTime(text)), text)
})

test('each rule of a point names its index, code and field, and loses no neighbour', async (t) => {
  const { client, logged } = await open(t)
  const bad: [object, string, RegExp][] = [
    [fix({ lat: 90.1 }), 'invalid', /\/lat/],
    [fix({ lat: '52' }), 'invalid', /^\/lat must be a number$/],
    [fix({ lat: 'NaN' }), 'invalid', /\/lat/],
    [fix({ lng: 'Infinity' }), 'invalid', /\/lng/],
    [fix({ lng: -180.0001 }), 'invalid', /\/lng/],
    [fix({ lat: null }), 'invalid', /\/lat/],
    [fix({ lat: undefined }), 'invalid', /\/lat is required/],
    [fix({ speed: null }), 'invalid', /\/speed/],
    [fix({ accuracy: -1 }), 'invalid', /\/accuracy/],
    [fix({ accuracy: 3e7 }), 'invalid', /\/accuracy/],
    [fix({ altitude: 1e9 }), 'invalid', /\/altitude/],
    [fix({ speed: -1e9 }), 'invalid', /\/speed/],
    [fix({ heading: 361 }), 'invalid', /\/heading/],
    [fix({ battery: 2 }), 'invalid', /\/battery/],
    [fix({ trip: 'stop' }), 'invalid', /\/trip/],
    [fix({ foo: 1 }), 'invalid', /\/foo/],
    [fix({ recordedAt: 'yesterday' }), 'invalid', /\/recordedAt/],
    [fix({ recordedAt: undefined }), 'invalid', /\/recordedAt/],
    [fix({ recordedAt: true }), 'invalid', /\/recordedAt/],
    [fix({ attributes: { a: [] } }), 'invalid', /\/attributes/],
    [fix({ attributes: 'x' }), 'invalid', /\/attributes/],
    [fix({ attributes: { a: 'ż'.repeat(600) } }), 'invalid', /\/attributes/],
    [fix({ recordedAt: NOW + 24 * HOUR + 1 }), 'too_far_ahead', /recordedAt/],
    [fix({ recordedAt: NOW - 30 * 24 * HOUR - 1 }), 'too_old', /recordedAt/],
    [fix({ recordedAt: -1 }), 'too_old', /./],
    [fix({ externalId: 'nobody' }), 'unknown_tracker', /./],
    [fix({ externalId: undefined }), 'invalid', /trackerId/],
    [[] as object, 'invalid', /^the point must be an object$/],
    [7 as unknown as object, 'invalid', /./],
  ]
  const good = fix({ recordedAt: NOW - 500 })
  client.send({ type: 'points', seq: 1, points: [...bad.map(([point]) => point), good] })
  await client.until(() => client.acked === 1)
  t.equal(client.rejected.length, bad.length)
  bad.forEach(([point, code, message], index) => {
    t.match(client.rejected[index], { index, code, message }, JSON.stringify(point))
  })
  t.equal(
    client.messages.findIndex(({ type }) => type === 'reject') <
      client.messages.findIndex(({ type }) => type === 'ack'),
    true,
    'reject comes before the ack',
  )
  t.match(pointsOf((await logged()).flat()), [{ recordedAt: NOW - 500 }])
})

test('what is kept is rounded, flagged and exact', async (t) => {
  const { client, logged } = await open(t)
  client.send([
    fix({
      recordedAt: '2025-12-31T23:00:00.0006Z',
      lat: -52.22967564999,
      lng: 179.99999996,
      accuracy: 4.567,
      altitude: -3.333,
      speed: -1,
      heading: 359.97,
      battery: 0.555,
      trip: 'start',
      attributes: { a: 'x', b: 1.5, c: true, d: null },
    }),
    fix({ recordedAt: NOW + 10 * 60_000 }),
    fix({ recordedAt: NOW + 10 * 60_000 + 1 }),
  ])
  await client.until(() => client.acked === 1)
  const [batch] = (await logged()).flat() as [PointBatch]
  t.same([...batch.recordedAt], [Date.parse('2025-12-31T23:00:00.001Z'), NOW + 600_000, NOW + 600_001])
  t.equal(batch.lat[0], -522296756)
  t.equal(batch.lng[0], 1800000000)
  t.same(
    [batch.accuracy[0], batch.altitude[0], batch.speed[0], batch.heading[0], batch.battery[0]],
    [457, -333, -100, 3600, 56],
  )
  t.ok(batch.flags[0] & TRIP_START)
  t.equal(batch.attributes.get(0), '{"a":"x","b":1.5,"c":true,"d":null}')
  t.same([batch.flags[1] & AHEAD, batch.flags[2] & AHEAD], [0, AHEAD])
})

test('a binary frame means the same as its JSON, valid or not', async (t) => {
  const { client, logged, trackers } = await open(t)
  trackers.add(ORG, 'tram')
  const points: BinaryPoint[] = Array.from({ length: 50 }, (_, i) => ({
    externalId: i % 3 === 0 ? 'tram' : 'bus',
    recordedAt: NOW - 60_000 + i,
    lat: 50 + i / 1000,
    lng: 20 - i / 1000,
    ...(i % 2 === 0 && { speed: i / 10, heading: i, accuracy: 3.25, altitude: -i, battery: 0.5 }),
    ...(i % 7 === 0 && { attributes: { i } }),
  }))
  client.send({ type: 'points', seq: 1, points })
  await client.until(() => client.acked === 1)
  const asJson = await logged()
  client.sendBinary(writeBinaryFrame(2, points))
  await client.until(() => client.acked === 2)
  const both = await logged()
  both.forEach((batches, partition) => {
    if (asJson[partition].length > 0) t.same({ ...batches[1], loggedAt: 0 }, { ...batches[0], loggedAt: 0 })
  })
  const flags = both.flat()[0].flags
  t.ok(
    flags.some((bits) => bits & HAS_SPEED && bits & HAS_HEADING && bits & HAS_ACCURACY && bits & HAS_BATTERY) &&
      flags.some((bits) => bits & HAS_ATTRIBUTES),
  )
  // The same columns, all rows alike: the path that packs whole columns.
  client.sendBinary(
    writeBinaryFrame(
      3,
      points.map(({ externalId, recordedAt, lat, lng }) => ({
        externalId,
        recordedAt: recordedAt + 100,
        lat,
        lng,
        speed: 3,
      })),
    ),
  )
  await client.until(() => client.acked === 3)
  t.equal(pointsOf((await logged()).flat()).length, 150)
  client.sendBinary(
    writeBinaryFrame(4, [
      fix({ lat: 95 }),
      fix({ recordedAt: NOW + 25 * HOUR }),
      fix({ externalId: 'nobody' }),
      fix({ battery: 1.2 }),
      fix({ attributes: { deep: {} } }),
      fix(),
    ]),
  )
  await client.until(() => client.acked === 4)
  t.same(
    client.rejected.map(({ index, code }) => [index, code]),
    [
      [0, 'invalid'],
      [1, 'too_far_ahead'],
      [2, 'unknown_tracker'],
      [3, 'invalid'],
      [4, 'invalid'],
    ],
  )
})

test('repeats within what comes together are kept once, the first wins, and one ahead of the clock loses', async (t) => {
  const { client, logged, counts, clock } = await open(t)
  client.send({
    type: 'points',
    seq: 1,
    points: [fix({ lat: 1 }), fix({ lat: 2 }), fix({ recordedAt: NOW - 5000, lat: 3 }), fix({ lat: 4 })],
  })
  client.send(fix({ lat: 5 }))
  client.send(fix({ recordedAt: NOW + 11 * 60_000, lat: 6 }))
  clock instanceof FakeClock && clock.advance(2 * 60_000)
  client.send(fix({ recordedAt: NOW + 11 * 60_000, lat: 7 }))
  await client.until(() => client.acked === 4)
  t.same(
    pointsOf((await logged()).flat()).map(({ recordedAt, lat, flags }) => [recordedAt - NOW, lat, flags]),
    [
      [-5000, 3, 0],
      [-1000, 1, 0],
      [660_000, 7, 0],
    ],
  )
  t.same(counts, { accepted: 5, duplicate: 2, rejected: 0 })
})
