import { test } from 'tap'
import { encodeJson } from '../../../src/kernel/event.ts'
import {
  HAS_ACCURACY,
  HAS_ALTITUDE,
  HAS_ATTRIBUTES,
  HAS_BATTERY,
  HAS_HEADING,
  HAS_SPEED,
  type PointBatch,
} from '../../../src/features/locations/events.ts'
import { locationEntry } from '../../../src/features/locations/location-entry.ts'
import { decodePointBatch, encodedBytes, encodePointBatch } from '../../../src/features/locations/point-batch-codec.ts'
import { idFrom } from '../../../src/kit/commands/ids.ts'
import { seeded } from '../../support/random.ts'

const makeBatch = (seed: number, options: { trackers?: number; wide?: boolean; plain?: boolean } = {}): PointBatch => {
  const next = seeded(seed)
  const trackers = Array.from({ length: options.trackers ?? 1 + Math.floor(next() * 20) }, (_, i) => ({
    trackerId: idFrom('tracker', seed, i),
    organizationId: idFrom('organization', i % 3),
  }))
  const rows: { tracker: number; recordedAt: number }[] = []
  trackers.forEach((_, tracker) => {
    let recordedAt = 1_700_000_000_000 + Math.floor(next() * 1e6)
    for (let n = 1 + Math.floor(next() * 8); n > 0; n--)
      rows.push({ tracker, recordedAt: (recordedAt += 1 + Math.floor(next() * (options.wide ? 4e9 : 1e5))) })
  })
  const count = rows.length
  const int = (low: number, high: number) => Math.floor(low + next() * (high - low + 1))
  const flags = Uint16Array.from({ length: count }, () => (options.plain ? 0 : int(0, 511)))
  const where = (flag: number, low: number, high: number) =>
    Array.from(flags, (bits) => (bits & flag ? int(low, high) : 0))
  const attributes = new Map<number, string>()
  flags.forEach((bits, i) => {
    if (bits & HAS_ATTRIBUTES) attributes.set(i, JSON.stringify({ name: 'żółć 🚌'.repeat(int(0, 3)), n: int(0, 9) }))
  })
  return {
    loggedAt: 1_700_000_100_000.0,
    count,
    trackers,
    tracker: Uint16Array.from(rows, ({ tracker }) => tracker),
    recordedAt: Float64Array.from(rows, ({ recordedAt }) => recordedAt),
    lat: Int32Array.from({ length: count }, () => int(-9e8, 9e8)),
    lng: Int32Array.from({ length: count }, () => int(-18e8, 18e8)),
    flags,
    accuracy: Int32Array.from(where(HAS_ACCURACY, 0, 2147483600)),
    altitude: Int32Array.from(where(HAS_ALTITUDE, -1e6, 1e6)),
    speed: Int32Array.from(where(HAS_SPEED, -100, 10000)),
    heading: Uint16Array.from(where(HAS_HEADING, 0, 3600)),
    battery: Uint8Array.from(where(HAS_BATTERY, 0, 100)),
    attributes,
  }
}

test('what is encoded is decoded, whatever columns and times a batch has', async (t) => {
  for (let seed = 1; seed <= 200; seed++) {
    const batch = makeBatch(seed, { wide: seed % 3 === 0, plain: seed % 5 === 0 })
    const bytes = encodePointBatch(batch)
    t.same(decodePointBatch(bytes), batch, `seed ${seed}`)
    t.equal(encodedBytes(batch), bytes.length)
  }
})

test('an unaligned view on other bytes is read all the same', async (t) => {
  const batch = makeBatch(7)
  const bytes = encodePointBatch(batch)
  for (let shift = 1; shift < 8; shift++) {
    const around = new Uint8Array(bytes.length + 16)
    around.set(bytes, shift)
    t.same(decodePointBatch(around.subarray(shift, shift + bytes.length)), batch)
  }
})

test('a plain point takes at most 20 bytes where trackers have some points each', async (t) => {
  const batch = makeBatch(3, { plain: true, trackers: 100 })
  t.ok(
    encodePointBatch(batch).length / batch.count <= 20,
    `${encodePointBatch(batch).length / batch.count} bytes a point`,
  )
})

test('corrupted bytes are an error, wherever the fault lies', async (t) => {
  const bytes = encodePointBatch(makeBatch(11))
  for (let at = 0; at < bytes.length; at++) {
    const broken = bytes.slice()
    broken[at] ^= 1 << (at % 8)
    t.throws(() => decodePointBatch(broken), /corrupted/, `byte ${at}`)
  }
  for (const length of [0, 4, 47, 48, bytes.length - 4, bytes.length - 1])
    t.throws(() => decodePointBatch(bytes.slice(0, length)), /corrupted/)
  t.throws(() => decodePointBatch(new Uint8Array([...bytes, 0, 0, 0, 0])), /corrupted/)
})

test('an empty batch is one, and a batch that is not sorted by tracker is refused', async (t) => {
  const empty = { ...makeBatch(1, { trackers: 0 }), trackers: [] }
  t.same(decodePointBatch(encodePointBatch(empty)), empty)
  const batch = makeBatch(2, { trackers: 3 })
  batch.tracker.reverse()
  t.throws(() => encodePointBatch(batch), /not sorted/)
})

test('what was encoded before, or refused half-way, leaves nothing in the bytes of a batch', async (t) => {
  const batch = makeBatch(3, { trackers: 2, plain: true })
  const bytes = encodePointBatch(batch)
  const kept = bytes.slice()
  encodePointBatch(makeBatch(4, { trackers: 8 }))
  const unsorted = makeBatch(2, { trackers: 3 })
  unsorted.tracker.reverse()
  t.throws(() => encodePointBatch(unsorted), /not sorted/)
  t.same(bytes, kept)
  t.same(encodePointBatch(batch), kept)
})

test('an event of a location stream becomes its entry; an unknown type is an error', async (t) => {
  const event = { id: 'e', isJson: true, metadata: {}, stream: 'locations-3', revision: 5, position: 99, loggedAt: 1 }
  const batch = makeBatch(5)
  t.same(locationEntry({ ...event, type: 'pointsRecorded.v1', data: encodePointBatch(batch) }, 3), {
    partition: 3,
    revision: 5,
    position: 99,
    kind: 'points',
    batch,
  })
  const deletion = { organizationId: 'o', trackerId: 't', at: 1 }
  t.same(locationEntry({ ...event, type: 'trackerDeleted.v1', data: encodeJson(deletion) }, 3), {
    partition: 3,
    revision: 5,
    position: 99,
    kind: 'trackerDeleted',
    deletion,
  })
  t.throws(() => locationEntry({ ...event, type: 'somethingElse.v9', data: encodeJson({}) }, 3), /unknown type/)
})
