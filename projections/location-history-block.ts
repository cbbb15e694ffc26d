import { encodeNativeBlock, writeUuid, type NativeColumn } from '../src/engines/clickhouse-sql/native-block.ts'
import { versionOf } from '../src/engines/clickhouse-sql/history-tables.ts'
import { AHEAD, type PointBatch } from '../src/features/locations/events.ts'
import { firstOf } from '../src/kernel/columns.ts'

/** Rows for the table of points, column by column, until they are one block. */
export class PointBlock {
  rows = 0
  private organizations: Uint8Array
  private trackers: Uint8Array
  private recordedAt: Uint32Array
  private lat: Int32Array
  private lng: Int32Array
  private flags: Uint16Array
  private accuracy: Int32Array
  private altitude: Int32Array
  private speed: Int32Array
  private heading: Uint16Array
  private battery: Uint8Array
  private version: BigUint64Array
  private readonly attributes = new Map<number, string>()

  /** Room for `capacity` rows; more is made as it is needed. */
  constructor(capacity: number) {
    this.organizations = new Uint8Array(capacity * 16)
    this.trackers = new Uint8Array(capacity * 16)
    this.recordedAt = new Uint32Array(capacity * 2)
    this.lat = new Int32Array(capacity)
    this.lng = new Int32Array(capacity)
    this.flags = new Uint16Array(capacity)
    this.accuracy = new Int32Array(capacity)
    this.altitude = new Int32Array(capacity)
    this.speed = new Int32Array(capacity)
    this.heading = new Uint16Array(capacity)
    this.battery = new Uint8Array(capacity)
    this.version = new BigUint64Array(capacity)
  }

  /** Adds every point of a batch, which stands at this revision of its partition in a log of this epoch. */
  add(batch: PointBatch, epoch: number, revision: number): void {
    const from = this.rows
    this.makeRoom(from + batch.count)
    this.lat.set(firstOf(batch.lat, batch.count), from)
    this.lng.set(firstOf(batch.lng, batch.count), from)
    this.flags.set(firstOf(batch.flags, batch.count), from)
    this.accuracy.set(firstOf(batch.accuracy, batch.count), from)
    this.altitude.set(firstOf(batch.altitude, batch.count), from)
    this.speed.set(firstOf(batch.speed, batch.count), from)
    this.heading.set(firstOf(batch.heading, batch.count), from)
    this.battery.set(firstOf(batch.battery, batch.count), from)
    this.addTimes(batch, from)
    this.addIdentities(batch, from)
    this.version.fill(versionOf(epoch, revision, false), from, from + batch.count)
    const versionAhead = versionOf(epoch, revision, true)
    for (let i = 0; i < batch.count; i++) if ((batch.flags[i] & AHEAD) !== 0) this.version[from + i] = versionAhead
    for (const [place, text] of batch.attributes) this.attributes.set(from + place, text)
    this.rows = from + batch.count
  }

  /** The bytes of the block, in the order of the table's columns. */
  encode(): Uint8Array {
    const { rows } = this
    const columns: NativeColumn[] = [
      { name: 'organizationId', type: 'UUID', values: this.organizations.subarray(0, rows * 16) },
      { name: 'trackerId', type: 'UUID', values: this.trackers.subarray(0, rows * 16) },
      { name: 'recordedAt', type: "DateTime64(3, 'UTC')", values: this.recordedAt.subarray(0, rows * 2) },
      { name: 'latE7', type: 'Int32', values: this.lat.subarray(0, rows) },
      { name: 'lngE7', type: 'Int32', values: this.lng.subarray(0, rows) },
      { name: 'flags', type: 'UInt16', values: this.flags.subarray(0, rows) },
      { name: 'accuracyCm', type: 'Int32', values: this.accuracy.subarray(0, rows) },
      { name: 'altitudeCm', type: 'Int32', values: this.altitude.subarray(0, rows) },
      { name: 'speedCms', type: 'Int32', values: this.speed.subarray(0, rows) },
      { name: 'headingTenths', type: 'UInt16', values: this.heading.subarray(0, rows) },
      { name: 'batteryPercent', type: 'UInt8', values: this.battery.subarray(0, rows) },
      { name: 'attributes', type: 'String', values: { rows, texts: this.attributes } },
      { name: 'version', type: 'UInt64', values: this.version.subarray(0, rows) },
    ]
    return encodeNativeBlock(columns, rows)
  }

  /** Ready for the next rows, in the same memory. */
  clear(): void {
    this.rows = 0
    this.attributes.clear()
  }

  private addTimes(batch: PointBatch, from: number): void {
    for (let i = 0; i < batch.count; i++) {
      const time = batch.recordedAt[i]
      this.recordedAt[(from + i) * 2] = time >>> 0
      this.recordedAt[(from + i) * 2 + 1] = Math.floor(time / 0x1_0000_0000)
    }
  }

  /** The points of one tracker lie together in a batch, so its ids are written once and copied. */
  private addIdentities(batch: PointBatch, from: number): void {
    for (let i = 0; i < batch.count; i++) {
      const at = (from + i) * 16
      if (i > 0 && batch.tracker[i] === batch.tracker[i - 1]) {
        this.organizations.copyWithin(at, at - 16, at)
        this.trackers.copyWithin(at, at - 16, at)
        continue
      }
      const { organizationId, trackerId } = batch.trackers[batch.tracker[i]]
      writeUuid(organizationId, this.organizations, at)
      writeUuid(trackerId, this.trackers, at)
    }
  }

  private makeRoom(rows: number): void {
    if (rows <= this.lat.length) return
    const capacity = Math.max(rows, this.lat.length * 2)
    this.organizations = grown(this.organizations, new Uint8Array(capacity * 16))
    this.trackers = grown(this.trackers, new Uint8Array(capacity * 16))
    this.recordedAt = grown(this.recordedAt, new Uint32Array(capacity * 2))
    this.lat = grown(this.lat, new Int32Array(capacity))
    this.lng = grown(this.lng, new Int32Array(capacity))
    this.flags = grown(this.flags, new Uint16Array(capacity))
    this.accuracy = grown(this.accuracy, new Int32Array(capacity))
    this.altitude = grown(this.altitude, new Int32Array(capacity))
    this.speed = grown(this.speed, new Int32Array(capacity))
    this.heading = grown(this.heading, new Uint16Array(capacity))
    this.battery = grown(this.battery, new Uint8Array(capacity))
    this.version = grown(this.version, new BigUint64Array(capacity))
  }
}

const grown = <A extends { set(from: A): void }>(from: A, to: A): A => {
  to.set(from)
  return to
}
