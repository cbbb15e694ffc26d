import { readUuid } from '../../../engines/clickhouse-sql/native-block.ts'
import { NativeReader, type NativeRows } from '../../../engines/clickhouse-sql/native-reader.ts'

/** Points in answers of the history, column by column. Columns of optional values hold 0 where the flag is not set. */
export interface PointRows {
  count: number
  /** 16 bytes each, as the engine lays out a UUID; see `trackerIdAt`. */
  tracker: Uint8Array
  /** ms since the epoch. */
  recordedAt: Float64Array
  /** 1e-7 degree. */
  lat: Int32Array
  lng: Int32Array
  /** Same bits as in a batch of points. */
  flags: Uint16Array
  /** 0.01 m. */
  accuracy: Int32Array
  altitude: Int32Array
  /** 0.01 m/s. */
  speed: Int32Array
  /** 0.1 degree. */
  heading: Uint16Array
  /** 0.01 of full. */
  battery: Uint8Array
  /** JSON text, empty for none. */
  attributes: string[]
}

export const trackerIdAt = (rows: PointRows, row: number): string => readUuid(rows.tracker, row * 16)

export const sameTracker = (a: PointRows, i: number, b: PointRows, j: number): boolean => {
  for (let byte = 0; byte < 16; byte++) if (a.tracker[i * 16 + byte] !== b.tracker[j * 16 + byte]) return false
  return true
}

/** Compares two trackers in the engine's order of UUIDs: by the second half, then by the first. */
export const compareTrackers = (a: PointRows, i: number, b: PointRows, j: number): number => {
  for (let byte = 15; byte >= 8; byte--) {
    const difference = a.tracker[i * 16 + byte] - b.tracker[j * 16 + byte]
    if (difference !== 0) return difference
  }
  for (let byte = 7; byte >= 0; byte--) {
    const difference = a.tracker[i * 16 + byte] - b.tracker[j * 16 + byte]
    if (difference !== 0) return difference
  }
  return 0
}

/** Decodes an answer in the Native format with the columns of `SELECT_POINTS`. */
export class PointRowsReader {
  private readonly native = new NativeReader()

  push(chunk: Uint8Array): PointRows[] {
    return this.native
      .push(chunk)
      .filter(({ rows }) => rows > 0)
      .map(pointRowsOf)
  }

  end(): void {
    this.native.end()
  }
}

export const pointRowsOf = (block: NativeRows): PointRows => {
  const bytes = (name: string): Uint8Array => block.columns.get(name) as Uint8Array
  const aligned = (name: string): ArrayBuffer => bytes(name).slice().buffer as ArrayBuffer
  return {
    count: block.rows,
    tracker: bytes('trackerId'),
    recordedAt: millisecondsOf(new Int32Array(aligned('recordedAt'))),
    lat: new Int32Array(aligned('latE7')),
    lng: new Int32Array(aligned('lngE7')),
    flags: new Uint16Array(aligned('flags')),
    accuracy: new Int32Array(aligned('accuracyCm')),
    altitude: new Int32Array(aligned('altitudeCm')),
    speed: new Int32Array(aligned('speedCms')),
    heading: new Uint16Array(aligned('headingTenths')),
    battery: bytes('batteryPercent'),
    attributes: block.columns.get('attributes') as string[],
  }
}

/** Rows added run by run; the columns grow as needed and are reused after `clear`. */
export class PointBuffer {
  readonly rows: PointRows

  constructor(capacity: number) {
    this.rows = empty(capacity)
  }

  /** Adds the rows from `from` to `to` (exclusive). */
  append(source: PointRows, from: number, to: number): void {
    const { rows } = this
    this.makeRoom(rows.count + to - from)
    rows.tracker.set(source.tracker.subarray(from * 16, to * 16), rows.count * 16)
    for (const name of COLUMNS) rows[name].set(source[name].subarray(from, to), rows.count)
    for (let i = from; i < to; i++) rows.attributes[rows.count + i - from] = source.attributes[i]
    rows.count += to - from
  }

  clear(): void {
    this.rows.count = 0
    this.rows.attributes.length = 0
  }

  private makeRoom(needed: number): void {
    const { rows } = this
    if (needed <= rows.lat.length) return
    const larger = empty(Math.max(needed, rows.lat.length * 2))
    larger.tracker.set(rows.tracker)
    for (const name of COLUMNS) larger[name].set(rows[name] as never)
    Object.assign(rows, { ...larger, count: rows.count, attributes: rows.attributes })
  }
}

/** The rows at these indexes, in that order, in new memory. */
export const pick = (source: PointRows, places: Uint32Array): PointRows => {
  const picked = empty(places.length)
  picked.count = places.length
  for (let i = 0; i < places.length; i++) {
    const place = places[i]
    for (let byte = 0; byte < 16; byte++) picked.tracker[i * 16 + byte] = source.tracker[place * 16 + byte]
    picked.attributes[i] = source.attributes[place]
  }
  for (const name of COLUMNS) {
    const from = source[name]
    const to = picked[name]
    for (let i = 0; i < places.length; i++) to[i] = from[places[i]]
  }
  return picked
}

const COLUMNS = ['recordedAt', 'lat', 'lng', 'flags', 'accuracy', 'altitude', 'speed', 'heading', 'battery'] as const

const empty = (capacity: number): PointRows => ({
  count: 0,
  tracker: new Uint8Array(capacity * 16),
  recordedAt: new Float64Array(capacity),
  lat: new Int32Array(capacity),
  lng: new Int32Array(capacity),
  flags: new Uint16Array(capacity),
  accuracy: new Int32Array(capacity),
  altitude: new Int32Array(capacity),
  speed: new Int32Array(capacity),
  heading: new Uint16Array(capacity),
  battery: new Uint8Array(capacity),
  attributes: [],
})

const millisecondsOf = (halves: Int32Array): Float64Array => {
  const times = new Float64Array(halves.length / 2)
  for (let i = 0; i < times.length; i++) times[i] = halves[i * 2 + 1] * 0x1_0000_0000 + (halves[i * 2] >>> 0)
  return times
}
