import type { KnownTracker } from '../trackers/views.ts'

/** Memory of one row without attributes. */
export const ROW_BYTES = 56

/**
 * Points as growing columns, on their way from a frame to a batch: in units of `PointBatch`, each row with its tracker.
 * Rows from `head` to `count` are present; taking from the front moves `head`.
 */
export class PointColumns {
  head = 0
  count = 0
  tracker: KnownTracker[] = []
  /** JSON text, or empty. */
  attributes: string[] = []
  recordedAt: Float64Array
  lat: Int32Array
  lng: Int32Array
  flags: Uint16Array
  accuracy: Int32Array
  altitude: Int32Array
  speed: Int32Array
  heading: Uint16Array
  battery: Uint8Array

  constructor(capacity: number) {
    this.recordedAt = new Float64Array(capacity)
    this.lat = new Int32Array(capacity)
    this.lng = new Int32Array(capacity)
    this.flags = new Uint16Array(capacity)
    this.accuracy = new Int32Array(capacity)
    this.altitude = new Int32Array(capacity)
    this.speed = new Int32Array(capacity)
    this.heading = new Uint16Array(capacity)
    this.battery = new Uint8Array(capacity)
  }

  get capacity(): number {
    return this.recordedAt.length
  }

  /** Makes room for this many more rows; moves the present rows to the front if that is enough. */
  reserve(rows: number): void {
    if (this.count + rows <= this.capacity) return
    const held = this.count - this.head
    if (held + rows > this.capacity) this.resize(Math.max(held + rows, this.capacity * 2))
    else this.moveToFront()
  }

  /** Appends rows `from` to `to` of other columns; room for them is reserved. */
  append(other: PointColumns, from: number, to: number): void {
    if (to - from > 32) this.appendMany(other, from, to)
    else for (let row = from; row < to; row++) this.appendRow(other, row)
  }

  appendRow(other: PointColumns, row: number): void {
    const at = this.count++
    this.tracker[at] = other.tracker[row]
    this.attributes[at] = other.attributes[row]
    this.recordedAt[at] = other.recordedAt[row]
    this.lat[at] = other.lat[row]
    this.lng[at] = other.lng[row]
    this.flags[at] = other.flags[row]
    this.accuracy[at] = other.accuracy[row]
    this.altitude[at] = other.altitude[row]
    this.speed[at] = other.speed[row]
    this.heading[at] = other.heading[row]
    this.battery[at] = other.battery[row]
  }

  /** Removes rows from the front. Their content is released once all are removed. */
  dropTo(row: number): void {
    this.head = row
    if (row === this.count) this.clear()
  }

  /** Drops the rows but keeps their memory: for columns that are refilled at once. */
  rewind(): void {
    this.head = 0
    this.count = 0
  }

  clear(): void {
    this.head = 0
    this.count = 0
    this.tracker.length = 0
    this.attributes.length = 0
  }

  private appendMany(other: PointColumns, from: number, to: number): void {
    const at = this.count
    for (let row = from; row < to; row++) {
      this.tracker[at + row - from] = other.tracker[row]
      this.attributes[at + row - from] = other.attributes[row]
    }
    this.recordedAt.set(other.recordedAt.subarray(from, to), at)
    this.lat.set(other.lat.subarray(from, to), at)
    this.lng.set(other.lng.subarray(from, to), at)
    this.flags.set(other.flags.subarray(from, to), at)
    this.accuracy.set(other.accuracy.subarray(from, to), at)
    this.altitude.set(other.altitude.subarray(from, to), at)
    this.speed.set(other.speed.subarray(from, to), at)
    this.heading.set(other.heading.subarray(from, to), at)
    this.battery.set(other.battery.subarray(from, to), at)
    this.count += to - from
  }

  private resize(capacity: number): void {
    const larger = new PointColumns(capacity)
    const { head, count } = this
    this.recordedAt = copied(this.recordedAt, larger.recordedAt, head, count)
    this.lat = copied(this.lat, larger.lat, head, count)
    this.lng = copied(this.lng, larger.lng, head, count)
    this.flags = copied(this.flags, larger.flags, head, count)
    this.accuracy = copied(this.accuracy, larger.accuracy, head, count)
    this.altitude = copied(this.altitude, larger.altitude, head, count)
    this.speed = copied(this.speed, larger.speed, head, count)
    this.heading = copied(this.heading, larger.heading, head, count)
    this.battery = copied(this.battery, larger.battery, head, count)
    this.dropListsHead()
  }

  private moveToFront(): void {
    const { head, count } = this
    const columns = [
      this.recordedAt,
      this.lat,
      this.lng,
      this.flags,
      this.accuracy,
      this.altitude,
      this.speed,
      this.heading,
      this.battery,
    ]
    for (const column of columns) column.copyWithin(0, head, count)
    this.dropListsHead()
  }

  private dropListsHead(): void {
    if (this.head > 0) {
      this.tracker = this.tracker.slice(this.head, this.count)
      this.attributes = this.attributes.slice(this.head, this.count)
    }
    this.count -= this.head
    this.head = 0
  }
}

const copied = <Column extends Float64Array | Int32Array | Uint16Array | Uint8Array>(
  from: Column,
  into: Column,
  head: number,
  count: number,
): Column => {
  into.set(from.subarray(head, count))
  return into
}
