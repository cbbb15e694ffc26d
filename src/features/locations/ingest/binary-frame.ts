import { HAS_ACCURACY, HAS_ALTITUDE, HAS_ATTRIBUTES, HAS_BATTERY, HAS_HEADING, HAS_SPEED } from '../events.ts'
import type { TrackerName } from '../../trackers/views.ts'
import { readUuid } from '../../../kernel/uuid-bytes.ts'

/** "WP", version 1, as the first four bytes. The layout is in docs/binary-frame.md. */
export const BINARY_MAGIC = 0x0001_5057
export const BINARY_HEADER_BYTES = 24
/** Ways in which a frame names a tracker. */
const NAMED_BY_ID = 0
export const NAMED_BY_EXTERNAL_ID = 1
const COLUMNS = HAS_ACCURACY | HAS_ALTITUDE | HAS_SPEED | HAS_HEADING | HAS_BATTERY | HAS_ATTRIBUTES

export interface BinaryFrame {
  /** 0: the next number. */
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
 * Reads the columns of a binary frame; undefined if the bytes are no whole frame. `pointsMax` bounds the work before
 * the size is known to be allowed: for a larger frame only its `count` is returned.
 */
export const readBinaryFrame = (data: ArrayBuffer, pointsMax: number): BinaryFrame | { count: number } | undefined => {
  if (data.byteLength < BINARY_HEADER_BYTES) return undefined
  const view = new DataView(data)
  if (view.getUint32(0, true) !== BINARY_MAGIC) return undefined
  const count = view.getUint32(8, true)
  const kinds = view.getUint16(12, true)
  const trackersCount = view.getUint16(14, true)
  const baseTime = view.getFloat64(16, true)
  if (count > pointsMax) return { count }
  if ((kinds & ~COLUMNS) !== 0 || !Number.isInteger(baseTime)) return undefined
  let at = BINARY_HEADER_BYTES
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

/** A cursor over the bytes after the columns. Reads return undefined beyond the end. */
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
