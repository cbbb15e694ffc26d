import {
  AHEAD,
  HAS_ACCURACY,
  HAS_ALTITUDE,
  HAS_ATTRIBUTES,
  HAS_BATTERY,
  HAS_HEADING,
  HAS_SPEED,
  TRIP_FINISH,
  TRIP_START,
} from './events.ts'
import { judgeTime, nameTracker, type PackContext, type PackedFrame } from './pack-points.ts'
import { ATTRIBUTES_BYTES_MAX, faultOf, HUNDREDTHS_MAX } from './point-schema.ts'
import type { TrackerName } from './tracker-resolver.ts'
import { readUuid, writeUuid } from './uuid-bytes.ts'

/** "WP", version 1, as the first four bytes. The layout is in docs/binary-frame.md. */
const MAGIC = 0x0001_5057
const HEADER_BYTES = 24
const COLUMNS = HAS_ACCURACY | HAS_ALTITUDE | HAS_SPEED | HAS_HEADING | HAS_BATTERY | HAS_ATTRIBUTES
const TRIPS = TRIP_START | TRIP_FINISH
const NAMED_BY_ID = 0
const NAMED_BY_EXTERNAL_ID = 1

export interface BinaryFrame {
  /** 0: the frame has the next number. */
  seq: number
  count: number
  times: Uint32Array
  baseTime: number
  lat: Int32Array
  lng: Int32Array
  accuracy?: Int32Array
  altitude?: Int32Array
  speed?: Int32Array
  flags: Uint16Array
  tracker?: Uint16Array
  heading?: Uint16Array
  battery?: Uint8Array
  trackers: TrackerName[]
  attributes: string[]
}

/**
 * Reads the columns of a binary frame; undefined when the bytes are no whole frame. `maxPoints` bounds what is read of it
 * before its size is known to be allowed: a larger frame is answered with its `count` alone.
 */
export const readBinaryFrame = (data: ArrayBuffer, pointsMax: number): BinaryFrame | { count: number } | undefined => {
  if (data.byteLength < HEADER_BYTES) return undefined
  const view = new DataView(data)
  if (view.getUint32(0, true) !== MAGIC) return undefined
  const count = view.getUint32(8, true)
  const kinds = view.getUint16(12, true)
  const trackersCount = view.getUint16(14, true)
  const baseTime = view.getFloat64(16, true)
  if (count > pointsMax) return { count }
  if ((kinds & ~COLUMNS) !== 0 || !Number.isInteger(baseTime)) return undefined
  let at = HEADER_BYTES
  const next = (bytes: number) => {
    const from = at
    at += bytes
    return from
  }
  const int32 = (kind: number) => ((kinds & kind) === 0 ? -1 : next(count * 4))
  const columns = {
    times: next(count * 4),
    lat: next(count * 4),
    lng: next(count * 4),
    accuracy: int32(HAS_ACCURACY),
    altitude: int32(HAS_ALTITUDE),
    speed: int32(HAS_SPEED),
    flags: next(count * 2),
    tracker: trackersCount === 0 ? -1 : next(count * 2),
    heading: (kinds & HAS_HEADING) === 0 ? -1 : next(count * 2),
    battery: (kinds & HAS_BATTERY) === 0 ? -1 : next(count),
  }
  if (at > data.byteLength) return undefined
  const rest = new Reader(data, at)
  const trackers = readTrackers(rest, trackersCount)
  const flags = new Uint16Array(data, columns.flags, count)
  const attributes = trackers === undefined ? undefined : readAttributes(rest, flags, kinds)
  if (trackers === undefined || attributes === undefined || !rest.isAtEnd()) return undefined
  const has32 = (from: number) => (from < 0 ? undefined : new Int32Array(data, from, count))
  return {
    seq: view.getUint32(4, true),
    count,
    baseTime,
    times: new Uint32Array(data, columns.times, count),
    lat: new Int32Array(data, columns.lat, count),
    lng: new Int32Array(data, columns.lng, count),
    accuracy: has32(columns.accuracy),
    altitude: has32(columns.altitude),
    speed: has32(columns.speed),
    flags,
    tracker: columns.tracker < 0 ? undefined : new Uint16Array(data, columns.tracker, count),
    heading: columns.heading < 0 ? undefined : new Uint16Array(data, columns.heading, count),
    battery: columns.battery < 0 ? undefined : new Uint8Array(data, columns.battery, count),
    trackers,
    attributes,
  }
}

/** Checks the points of a binary frame and packs the good ones. The packed frame is cleared first. */
export const packBinaryFrame = (binary: BinaryFrame, context: PackContext, frame: PackedFrame): void => {
  frame.clear()
  frame.columns.reserve(binary.count)
  const allowed = allowedFlags(binary)
  const { columns } = frame
  let named = 0
  for (let i = 0; i < binary.count; i++) {
    const flags = binary.flags[i]
    const attributes = (flags & HAS_ATTRIBUTES) === 0 ? '' : binary.attributes[named++]
    const fault = faultOfRow(binary, i, flags, allowed) ?? ((flags & HAS_ATTRIBUTES) === 0 ? undefined : faultOfAttributes(attributes))
    if (fault !== undefined) {
      frame.reject(i, 'invalid', fault)
      continue
    }
    const time = binary.baseTime + binary.times[i]
    const ahead = judgeTime(frame, i, context, time)
    if (ahead < 0) continue
    const name = binary.tracker === undefined ? undefined : binary.trackers[binary.tracker[i]]
    if (!nameTracker(frame, i, context, name?.trackerId, name?.externalId)) continue
    const row = columns.count++
    frame.index.push(i)
    frame.attributesBytes += attributes.length
    columns.attributes[row] = attributes
    columns.recordedAt[row] = time
    columns.lat[row] = binary.lat[i]
    columns.lng[row] = binary.lng[i]
    columns.flags[row] = flags | ahead
    columns.accuracy[row] = (flags & HAS_ACCURACY) === 0 || binary.accuracy === undefined ? 0 : binary.accuracy[i]
    columns.altitude[row] = (flags & HAS_ALTITUDE) === 0 || binary.altitude === undefined ? 0 : binary.altitude[i]
    columns.speed[row] = (flags & HAS_SPEED) === 0 || binary.speed === undefined ? 0 : binary.speed[i]
    columns.heading[row] = (flags & HAS_HEADING) === 0 || binary.heading === undefined ? 0 : binary.heading[i]
    columns.battery[row] = (flags & HAS_BATTERY) === 0 || binary.battery === undefined ? 0 : binary.battery[i]
  }
}

/** What a sender has of one point; units as in JSON. */
export interface BinaryPoint extends TrackerName {
  /** ms since the epoch. */
  recordedAt: number
  lat: number
  lng: number
  accuracy?: number
  altitude?: number
  speed?: number
  heading?: number
  battery?: number
  trip?: 'start' | 'finish'
  attributes?: { [name: string]: unknown }
}

/** The bytes of a frame: the reference for senders, used by tests, benches and the replay of traces. */
export const writeBinaryFrame = (seq: number, points: readonly BinaryPoint[]): Uint8Array<ArrayBuffer> => {
  const { trackers, tracker } = dictionaryOf(points)
  const flags = points.map(flagsOf)
  const kinds = flags.reduce((all, one) => all | one, 0) & COLUMNS
  const baseTime = points.reduce((least, { recordedAt }) => Math.min(least, recordedAt), points[0]?.recordedAt ?? 0)
  const parts: Uint8Array[] = []
  const column = (values: Uint32Array | Int32Array | Uint16Array | Uint8Array) =>
    parts.push(new Uint8Array(values.buffer, values.byteOffset, values.byteLength))
  const hundredths = (has: number, value: (point: BinaryPoint) => number | undefined) => {
    if (kinds & has) column(Int32Array.from(points, (point) => Math.round((value(point) ?? 0) * 100)))
  }
  column(Uint32Array.from(points, ({ recordedAt }) => recordedAt - baseTime))
  column(Int32Array.from(points, ({ lat }) => Math.round(lat * 1e7)))
  column(Int32Array.from(points, ({ lng }) => Math.round(lng * 1e7)))
  hundredths(HAS_ACCURACY, ({ accuracy }) => accuracy)
  hundredths(HAS_ALTITUDE, ({ altitude }) => altitude)
  hundredths(HAS_SPEED, ({ speed }) => speed)
  column(Uint16Array.from(flags))
  if (trackers.length > 0) column(Uint16Array.from(tracker))
  if (kinds & HAS_HEADING) column(Uint16Array.from(points, ({ heading }) => Math.round((heading ?? 0) * 10)))
  if (kinds & HAS_BATTERY) column(Uint8Array.from(points, ({ battery }) => Math.round((battery ?? 0) * 100)))
  for (const name of trackers) parts.push(nameBytes(name))
  for (const { attributes } of points) if (attributes !== undefined) parts.push(textBytes(JSON.stringify(attributes)))
  const header = Buffer.alloc(HEADER_BYTES)
  header.writeUInt32LE(MAGIC, 0)
  header.writeUInt32LE(seq, 4)
  header.writeUInt32LE(points.length, 8)
  header.writeUInt16LE(kinds, 12)
  header.writeUInt16LE(trackers.length, 14)
  header.writeDoubleLE(baseTime, 16)
  return Uint8Array.from(Buffer.concat([header, ...parts]))
}

/** A cursor over what follows the columns. Reads answer undefined beyond the end. */
class Reader {
  private readonly bytes: Buffer
  private at: number

  constructor(data: ArrayBuffer, at: number) {
    this.bytes = Buffer.from(data)
    this.at = at
  }

  byte(): number | undefined {
    return this.at < this.bytes.length ? this.bytes[this.at++] : undefined
  }

  uuid(): string | undefined {
    if (this.at + 16 > this.bytes.length) return undefined
    this.at += 16
    return readUuid(this.bytes, this.at - 16)
  }

  text(): string | undefined {
    if (this.at + 2 > this.bytes.length) return undefined
    const from = this.at + 2
    const to = from + this.bytes.readUInt16LE(this.at)
    if (to > this.bytes.length) return undefined
    this.at = to
    return this.bytes.toString('utf8', from, to)
  }

  isAtEnd(): boolean {
    return this.at === this.bytes.length
  }
}

const readTrackers = (rest: Reader, count: number): TrackerName[] | undefined => {
  const trackers: TrackerName[] = []
  for (let i = 0; i < count; i++) {
    const kind = rest.byte()
    const name = kind === NAMED_BY_ID ? rest.uuid() : kind === NAMED_BY_EXTERNAL_ID ? rest.text() : undefined
    if (name === undefined) return undefined
    trackers.push(kind === NAMED_BY_ID ? { trackerId: name } : { externalId: name })
  }
  return trackers
}

const readAttributes = (rest: Reader, flags: Uint16Array, kinds: number): string[] | undefined => {
  const attributes: string[] = []
  if ((kinds & HAS_ATTRIBUTES) === 0) return attributes
  for (let i = 0; i < flags.length; i++) {
    if ((flags[i] & HAS_ATTRIBUTES) === 0) continue
    const text = rest.text()
    if (text === undefined) return undefined
    attributes.push(text)
  }
  return attributes
}

/** A point may say that it has a value only where the frame has the column; AHEAD is for the server to say. */
const allowedFlags = (binary: BinaryFrame): number =>
  TRIPS |
  (binary.accuracy ? HAS_ACCURACY : 0) |
  (binary.altitude ? HAS_ALTITUDE : 0) |
  (binary.speed ? HAS_SPEED : 0) |
  (binary.heading ? HAS_HEADING : 0) |
  (binary.battery ? HAS_BATTERY : 0) |
  (binary.attributes.length > 0 ? HAS_ATTRIBUTES : 0)

const LAT_MAX = 900_000_000
const LNG_MAX = 1_800_000_000
const COLUMN_MAX = HUNDREDTHS_MAX * 100

const faultOfRow = (binary: BinaryFrame, i: number, flags: number, allowed: number): string | undefined => {
  const lat = binary.lat[i]
  const lng = binary.lng[i]
  if (lat < -LAT_MAX || lat > LAT_MAX) return '/lat must be >= -90 and <= 90'
  if (lng < -LNG_MAX || lng > LNG_MAX) return '/lng must be >= -180 and <= 180'
  if ((flags & ~allowed) !== 0 || (flags & AHEAD) !== 0) return '/flags name a value that the frame does not have'
  if ((flags & TRIPS) === TRIPS) return '/trip must be one of start, finish'
  if (binary.tracker !== undefined && binary.tracker[i] >= binary.trackers.length) return '/tracker is not in the list of trackers'
  if ((flags & COLUMNS) === 0) return undefined
  return faultOfOptional(binary, i, flags)
}

const faultOfOptional = (binary: BinaryFrame, i: number, flags: number): string | undefined => {
  const { accuracy, altitude, speed, heading, battery } = binary
  if (flags & HAS_ACCURACY && accuracy && (accuracy[i] < 0 || accuracy[i] > COLUMN_MAX)) return '/accuracy must be >= 0'
  if (flags & HAS_ALTITUDE && altitude && Math.abs(altitude[i]) > COLUMN_MAX) return `/altitude must be within ${HUNDREDTHS_MAX}`
  if (flags & HAS_SPEED && speed && Math.abs(speed[i]) > COLUMN_MAX) return `/speed must be within ${HUNDREDTHS_MAX}`
  if (flags & HAS_HEADING && heading && heading[i] > 3600) return '/heading must be <= 360'
  if (flags & HAS_BATTERY && battery && battery[i] > 100) return '/battery must be <= 1'
  return undefined
}

const faultOfAttributes = (text: string): string | undefined => {
  if (Buffer.byteLength(text) > ATTRIBUTES_BYTES_MAX) return `/attributes must be at most ${ATTRIBUTES_BYTES_MAX} bytes of JSON`
  let attributes: unknown
  try {
    attributes = JSON.parse(text)
  } catch {
    return '/attributes must be JSON'
  }
  return faultOf({ recordedAt: 0, lat: 0, lng: 0, attributes })
}

const dictionaryOf = (points: readonly BinaryPoint[]): { trackers: TrackerName[]; tracker: number[] } => {
  const places = new Map<string, number>()
  const trackers: TrackerName[] = []
  const tracker = points.map(({ trackerId, externalId }) => {
    if (trackerId === undefined && externalId === undefined) return 0
    const key = trackerId ?? `=${externalId}`
    const place = places.get(key)
    if (place !== undefined) return place
    places.set(key, trackers.length)
    return trackers.push(trackerId === undefined ? { externalId } : { trackerId }) - 1
  })
  return { trackers, tracker }
}

const flagsOf = (point: BinaryPoint): number =>
  (point.accuracy === undefined ? 0 : HAS_ACCURACY) |
  (point.altitude === undefined ? 0 : HAS_ALTITUDE) |
  (point.speed === undefined ? 0 : HAS_SPEED) |
  (point.heading === undefined ? 0 : HAS_HEADING) |
  (point.battery === undefined ? 0 : HAS_BATTERY) |
  (point.attributes === undefined ? 0 : HAS_ATTRIBUTES) |
  (point.trip === undefined ? 0 : point.trip === 'start' ? TRIP_START : TRIP_FINISH)

const textBytes = (text: string): Uint8Array => {
  const bytes = Buffer.from(text)
  return Buffer.concat([Uint8Array.of(bytes.length & 255, bytes.length >> 8), bytes])
}

const nameBytes = ({ trackerId, externalId }: TrackerName): Uint8Array => {
  if (trackerId === undefined) return Buffer.concat([Uint8Array.of(NAMED_BY_EXTERNAL_ID), textBytes(externalId ?? '')])
  const bytes = new Uint8Array(17)
  writeUuid(trackerId, bytes, 1)
  return bytes
}
