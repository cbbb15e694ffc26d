import { firstOf } from '../../kernel/columns.ts'
import {
  HAS_ACCURACY,
  HAS_ALTITUDE,
  HAS_ATTRIBUTES,
  HAS_BATTERY,
  HAS_HEADING,
  HAS_SPEED,
  type PointBatch,
} from './events.ts'
import { checksum, HEADER_BYTES, layoutOf, OPTIONAL, type Layout } from './point-batch-layout.ts'
import { readUuid, writeUuid } from '../../kernel/uuid-bytes.ts'

/**
 * The bytes of `pointsRecorded.v1`, little-endian: a header of 48 bytes, then columns, widest first, each absent where no
 * point has its value. Trackers are run lengths, times 32-bit distances from the earliest while they span under 49 days:
 * 14 bytes for a plain point. A checksum over all that follows it tells corrupted bytes.
 *
 *     u32 magic · u32 checksum · u32 points · u32 columns | WIDE_TIMES · u32 trackers · u32 organizations ·
 *     u32 bytes of attributes · u32 0 · f64 loggedAt · f64 earliest recordedAt
 *     times u32 (or f64) · lat i32 · lng i32 · accuracy i32? · altitude i32? · speed i32? · points of each tracker u32 ·
 *     flags u16 · heading u16? · organization of each tracker u16 · battery u8? · trackers 16 · organizations 16 ·
 *     attributes (u16 length, UTF-8 JSON, for each point that has them) · zeros up to a multiple of 4
 */
const MAGIC = 0x31425057
const WIDE_TIMES = 0x1_0000
const TRACKERS_MAX = 0x1_0000

export const encodedBytes = (batch: PointBatch): number => {
  const { count, flags, recordedAt, trackers } = batch
  let attributesBytes = 0
  for (const text of batch.attributes.values()) attributesBytes += 2 + Buffer.byteLength(text)
  return layoutOf(
    count,
    columnsOf(flags, count),
    timesOf(recordedAt, count).wide,
    trackers.length,
    organizationsOf(batch).size,
    attributesBytes,
  ).end
}

/** Memory to write a batch into, as arrays of each width. */
const roomOf = (bytes: number) => {
  const buffer = new ArrayBuffer(Math.ceil(bytes / 8) * 8)
  return {
    buffer,
    f64: new Float64Array(buffer),
    u32: new Uint32Array(buffer, 0, bytes >> 2),
    i32: new Int32Array(buffer, 0, bytes >> 2),
    u16: new Uint16Array(buffer, 0, bytes >> 1),
    u8: new Uint8Array(buffer, 0, bytes),
  }
}

/** Small batches are written here and copied: an array for each column of each would take longer than its points. */
const SMALL_BYTES = 4_096
const small = roomOf(SMALL_BYTES)

/** @throws Error if the batch is not sorted by tracker, or an id is no UUID: a fault of its builder. */
export const encodePointBatch = (batch: PointBatch): Uint8Array => {
  const { count, trackers } = batch
  const organizations = organizationsOf(batch)
  const columns = columnsOf(batch.flags, count)
  const { earliest, wide } = timesOf(batch.recordedAt, count)
  const attributes = (columns & HAS_ATTRIBUTES) !== 0 ? encodeAttributes(batch) : undefined
  const layout = layoutOf(count, columns, wide, trackers.length, organizations.size, attributes?.length ?? 0)
  const isSmall = layout.end <= SMALL_BYTES
  const room = isSmall ? small : roomOf(layout.end)
  const { f64, u32, i32, u16, u8 } = room
  if (isSmall) u8.fill(0, 0, layout.end)
  u32[0] = MAGIC
  u32[2] = count
  u32[3] = columns | (wide ? WIDE_TIMES : 0)
  u32[4] = trackers.length
  u32[5] = organizations.size
  u32[6] = attributes?.length ?? 0
  f64[4] = batch.loggedAt
  f64[5] = earliest

  if (wide) f64.set(firstOf(batch.recordedAt, count), layout.times / 8)
  else writeDistances(u32, layout.times / 4, batch, earliest)
  i32.set(firstOf(batch.lat, count), layout.lat / 4)
  i32.set(firstOf(batch.lng, count), layout.lng / 4)
  if (columns & HAS_ACCURACY) i32.set(firstOf(batch.accuracy, count), layout.accuracy / 4)
  if (columns & HAS_ALTITUDE) i32.set(firstOf(batch.altitude, count), layout.altitude / 4)
  if (columns & HAS_SPEED) i32.set(firstOf(batch.speed, count), layout.speed / 4)
  writeRuns(u32, layout.runs / 4, batch)
  u16.set(firstOf(batch.flags, count), layout.flags / 2)
  if (columns & HAS_HEADING) u16.set(firstOf(batch.heading, count), layout.heading / 2)
  if (columns & HAS_BATTERY) u8.set(firstOf(batch.battery, count), layout.battery)
  for (let i = 0; i < trackers.length; i++) {
    u16[layout.organizationOf / 2 + i] = organizations.get(trackers[i].organizationId) as number
    writeUuid(trackers[i].trackerId, u8, layout.trackers + i * 16)
  }
  for (const [organizationId, i] of organizations) writeUuid(organizationId, u8, layout.organizations + i * 16)
  if (attributes !== undefined) u8.set(attributes, layout.attributes)
  u32[1] = checksum(room.buffer, 0, layout.end)
  return isSmall ? u8.slice(0, layout.end) : u8
}

/** Columns are views on the bytes if these are aligned. @throws Error if the bytes are no whole, intact batch. */
export const decodePointBatch = (data: Uint8Array): PointBatch => {
  if (data.byteLength < HEADER_BYTES || data.byteLength % 4 !== 0) throw corrupted('its length')
  const bytes = data.byteOffset % 8 === 0 ? data : data.slice()
  const { buffer, byteOffset: start } = bytes as Uint8Array<ArrayBuffer>
  const [magic, sum, count, kinds, trackersCount, organizationsCount, attributesBytes] = new Uint32Array(
    buffer,
    start,
    8,
  )
  if (magic !== MAGIC) throw corrupted('its version')
  if (sum !== checksum(buffer, start, bytes.byteLength)) throw corrupted('its checksum')
  const columns = kinds & OPTIONAL
  const layout = layoutOf(
    count,
    columns,
    (kinds & WIDE_TIMES) !== 0,
    trackersCount,
    organizationsCount,
    attributesBytes,
  )
  if (layout.end !== bytes.byteLength || (kinds & ~(OPTIONAL | WIDE_TIMES)) !== 0) throw corrupted('its length')
  const [loggedAt, earliest] = new Float64Array(buffer, start + 32, 2)
  const int32 = (has: number, at: number) =>
    has === 0 ? new Int32Array(count) : new Int32Array(buffer, start + at, count)
  const flags = new Uint16Array(buffer, start + layout.flags, count)
  return {
    loggedAt,
    count,
    trackers: readTrackers(bytes, layout, trackersCount, organizationsCount),
    tracker: readRuns(new Uint32Array(buffer, start + layout.runs, trackersCount), count),
    recordedAt:
      (kinds & WIDE_TIMES) !== 0
        ? new Float64Array(buffer, start + layout.times, count)
        : readDistances(new Uint32Array(buffer, start + layout.times, count), earliest),
    lat: int32(1, layout.lat),
    lng: int32(1, layout.lng),
    flags,
    accuracy: int32(columns & HAS_ACCURACY, layout.accuracy),
    altitude: int32(columns & HAS_ALTITUDE, layout.altitude),
    speed: int32(columns & HAS_SPEED, layout.speed),
    heading: columns & HAS_HEADING ? new Uint16Array(buffer, start + layout.heading, count) : new Uint16Array(count),
    battery: columns & HAS_BATTERY ? new Uint8Array(buffer, start + layout.battery, count) : new Uint8Array(count),
    attributes: readAttributes(bytes.subarray(layout.attributes, layout.attributes + attributesBytes), flags),
  }
}

const organizationsOf = ({ trackers }: PointBatch): Map<string, number> => {
  if (trackers.length > TRACKERS_MAX) throw new Error(`${trackers.length} trackers in one batch`)
  const organizations = new Map<string, number>()
  for (const { organizationId } of trackers)
    if (!organizations.has(organizationId)) organizations.set(organizationId, organizations.size)
  return organizations
}

const columnsOf = (flags: Uint16Array, count: number): number => {
  let any = 0
  for (let i = 0; i < count; i++) any |= flags[i]
  return any & OPTIONAL
}

const timesOf = (recordedAt: Float64Array, count: number): { earliest: number; wide: boolean } => {
  let earliest = count === 0 ? 0 : recordedAt[0]
  let latest = earliest
  for (let i = 1; i < count; i++) {
    const time = recordedAt[i]
    if (time < earliest) earliest = time
    else if (time > latest) latest = time
  }
  return { earliest, wide: latest - earliest > 0xffff_ffff }
}

const writeDistances = (u32: Uint32Array, from: number, { recordedAt, count }: PointBatch, earliest: number): void => {
  for (let i = 0; i < count; i++) u32[from + i] = recordedAt[i] - earliest
}

const readDistances = (distances: Uint32Array, earliest: number): Float64Array => {
  const recordedAt = new Float64Array(distances.length)
  for (let i = 0; i < distances.length; i++) recordedAt[i] = earliest + distances[i]
  return recordedAt
}

const writeRuns = (u32: Uint32Array, from: number, { tracker, count, trackers }: PointBatch): void => {
  let last = 0
  for (let i = 0; i < count; i++) {
    const at = tracker[i]
    if (at < last || at >= trackers.length) throw new Error('a batch of points is not sorted by tracker')
    u32[from + at]++
    last = at
  }
}

const readRuns = (runs: Uint32Array, count: number): Uint16Array => {
  const tracker = new Uint16Array(count)
  let from = 0
  for (let i = 0; i < runs.length; i++) {
    const to = from + runs[i]
    if (to > count) throw corrupted('its trackers')
    if (i !== 0) tracker.fill(i, from, to)
    from = to
  }
  if (from !== count) throw corrupted('its trackers')
  return tracker
}

const readTrackers = (
  bytes: Uint8Array,
  layout: Layout,
  count: number,
  organizationsCount: number,
): PointBatch['trackers'] => {
  const organizationOf = new Uint16Array(bytes.buffer, bytes.byteOffset + layout.organizationOf, count)
  const organizations = Array.from({ length: organizationsCount }, (_, i) =>
    readUuid(bytes, layout.organizations + i * 16),
  )
  const trackers: PointBatch['trackers'] = []
  for (let i = 0; i < count; i++) {
    if (organizationOf[i] >= organizationsCount) throw corrupted('its organizations')
    trackers.push({
      trackerId: readUuid(bytes, layout.trackers + i * 16),
      organizationId: organizations[organizationOf[i]],
    })
  }
  return trackers
}

const encodeAttributes = ({ attributes, flags, count }: PointBatch): Uint8Array => {
  const parts: Buffer[] = []
  for (let i = 0; i < count; i++) {
    if ((flags[i] & HAS_ATTRIBUTES) === 0) continue
    const text = Buffer.from(attributes.get(i) ?? '{}')
    const length = Buffer.allocUnsafe(2)
    length.writeUInt16LE(text.length)
    parts.push(length, text)
  }
  return Buffer.concat(parts)
}

const readAttributes = (bytes: Uint8Array, flags: Uint16Array): Map<number, string> => {
  const attributes = new Map<number, string>()
  if (bytes.length === 0) return attributes
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  let at = 0
  for (let i = 0; i < flags.length; i++) {
    if ((flags[i] & HAS_ATTRIBUTES) === 0) continue
    if (at + 2 > text.length) throw corrupted('its attributes')
    const end = at + 2 + text.readUInt16LE(at)
    if (end > text.length) throw corrupted('its attributes')
    attributes.set(i, text.toString('utf8', at + 2, end))
    at = end
  }
  if (at !== text.length) throw corrupted('its attributes')
  return attributes
}

const corrupted = (what: string): Error => new Error(`the bytes of a batch of points are corrupted: ${what}`)
