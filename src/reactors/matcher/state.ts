import type { Fences } from './fences.ts'
import type { PointValue } from '../../features/transitions/events.ts'

/**
 * The matcher's state of the trackers of one partition: records in two typed arrays, one for each tracker and one for
 * each of its lanes (a lane judges the fixes that one `maxAccuracy` lets pass). The slots of 32 trackers make a page,
 * which is the unit of storage.
 */
export const PAGE_TRACKERS = 32

/** A tracker's record is 9 doubles, or 18 integers (the last one is room to align it). */
export const TRACKER_DOUBLES = 9
export const TRACKER_INTS = 18
/** Doubles: last point's time, trip's start and metres, time since it is near its anchor, trip's metres there. */
export const T_LAST_AT = 0
export const T_TRIP_AT = 1
export const T_DISTANCE = 2
export const T_ANCHOR_AT = 3
export const T_ANCHOR_DISTANCE = 4
/** Integers: coordinates in E7, index of its organization, trip mode, its first lane. */
export const T_ANCHOR_LAT = 10
export const T_ANCHOR_LNG = 11
export const T_LAST_LAT = 12
export const T_LAST_LNG = 13
export const T_ORGANIZATION = 14
export const T_TRIP_MODE = 15
export const T_RECORD = 16

/** A lane's record is 16 integers, or 8 doubles: one cache line. */
export const RECORD_INTS = 16
export const RECORD_DOUBLES = 8
/** The safe box: while a fix is in it, the set stays. */
export const L_WEST = 0
export const L_SOUTH = 1
export const L_EAST = 2
export const L_NORTH = 3
/** The fences around the last decided point, as the lane's index numbers such sets. */
export const L_SET = 4
/** The flags of the last decided point, DECIDED and PENDING. */
export const L_BITS = 5
export const L_LAT = 6
export const L_LNG = 7
export const L_ACCURACY = 8
export const L_ALTITUDE = 9
export const L_SPEED = 10
/** Heading in the lower 16 bits, battery above. */
export const L_HEADING = 11
/** As a double: time of the last decided point. */
export const L_AT = 6
/** The lane's `maxAccuracy` in 0.01 m, -1 for none. */
export const L_KEY = 14
export const L_NEXT = 15

export const DECIDED = 1 << 16
export const PENDING = 1 << 17

/** A change that a debounce holds back: the fence's side is the other one since `count` fixes. */
export interface PendingChange {
  geofenceId: string
  count: number
  /** The first fix on the new side. */
  point: PointValue
}

export interface OrganizationState {
  organizationId: string
  fences: Fences
}

export class MatcherState {
  readonly slots = new Map<string, number>()
  /** By slot; undefined for a deleted tracker. */
  readonly trackerIds: (string | undefined)[] = []
  readonly organizations: OrganizationState[] = []
  readonly organizationIndexes = new Map<string, number>()
  /** JSON of the attributes of last decided points, by lane record; few have any. */
  readonly attributes = new Map<number, string>()
  readonly pending = new Map<number, PendingChange[]>()
  readonly dirtyPages = new Set<number>()
  trackers = new Int32Array(0)
  trackersF = new Float64Array(0)
  records = new Int32Array(0)
  recordsF = new Float64Array(0)
  private recordCount = 0
  private freeSlots: number[] = []
  private readonly freeRecords: number[] = []
  /** Pages are still being restored: no slot that one of them may have is assigned. */
  private isRestoring = false

  organizationIndex(organizationId: string, fences: Fences): number {
    let index = this.organizationIndexes.get(organizationId)
    if (index === undefined) {
      index = this.organizations.push({ organizationId, fences }) - 1
      this.organizationIndexes.set(organizationId, index)
    }
    return index
  }

  addTracker(trackerId: string, organization: number, slot = this.freeSlot()): number {
    while (this.trackerIds.length <= slot) this.trackerIds.push(undefined)
    this.reserveTrackers(this.trackerIds.length)
    // Copied: a text cut out of a larger one, or concatenated, may retain its source.
    const ownId = Buffer.from(trackerId, 'latin1').toString('latin1')
    this.trackerIds[slot] = ownId
    this.slots.set(ownId, slot)
    this.trackers.fill(0, slot * TRACKER_INTS, (slot + 1) * TRACKER_INTS)
    this.trackersF[slot * TRACKER_DOUBLES + T_LAST_AT] = Number.NEGATIVE_INFINITY
    this.trackers[slot * TRACKER_INTS + T_ORGANIZATION] = organization
    this.trackers[slot * TRACKER_INTS + T_RECORD] = -1
    return slot
  }

  removeTracker(slot: number): void {
    const trackerId = this.trackerIds[slot]
    if (trackerId === undefined) return
    for (const record of this.recordsOf(slot)) this.freeRecord(record)
    this.slots.delete(trackerId)
    this.trackerIds[slot] = undefined
    if (!this.isRestoring) this.freeSlots.push(slot)
    this.dirtyPages.add(pageOf(slot))
  }

  /** Reserves the slots of the first pages for restored ones, until `endRestore`. */
  beginRestore(pages: number): void {
    this.isRestoring = true
    this.freeSlots = []
    while (this.trackerIds.length < pages * PAGE_TRACKERS) this.trackerIds.push(undefined)
  }

  endRestore(): void {
    if (!this.isRestoring) return
    this.isRestoring = false
    this.trackerIds.forEach((trackerId, slot) => {
      if (trackerId === undefined) this.freeSlots.push(slot)
    })
  }

  /** A record of a lane that has decided nothing. */
  addRecord(key: number): number {
    const record = this.freeRecords.pop() ?? this.recordCount++
    this.reserveRecords(this.recordCount)
    const offset = record * RECORD_INTS
    this.records.fill(0, offset, offset + RECORD_INTS)
    this.records[offset + L_KEY] = key
    this.records[offset + L_NEXT] = -1
    this.forgetBox(record)
    return record
  }

  freeRecord(record: number): void {
    this.attributes.delete(record)
    this.pending.delete(record)
    this.freeRecords.push(record)
  }

  /** Makes the next fix query the index. */
  forgetBox(record: number): void {
    const offset = record * RECORD_INTS
    this.records[offset + L_WEST] = 1
    this.records[offset + L_EAST] = 0
  }

  /** A tracker's records, in the order of the lanes. */
  recordsOf(slot: number): number[] {
    const records: number[] = []
    for (
      let record = this.trackers[slot * TRACKER_INTS + T_RECORD];
      record >= 0;
      record = this.records[record * RECORD_INTS + L_NEXT]
    )
      records.push(record)
    return records
  }

  setRecords(slot: number, records: readonly number[]): void {
    this.trackers[slot * TRACKER_INTS + T_RECORD] = records[0] ?? -1
    records.forEach((record, i) => {
      this.records[record * RECORD_INTS + L_NEXT] = records[i + 1] ?? -1
    })
  }

  slotsOf(organization: number): number[] {
    const slots: number[] = []
    for (let slot = 0; slot < this.trackerIds.length; slot++) {
      if (this.trackerIds[slot] !== undefined && this.trackers[slot * TRACKER_INTS + T_ORGANIZATION] === organization)
        slots.push(slot)
    }
    return slots
  }

  private freeSlot(): number {
    return this.freeSlots.pop() ?? this.trackerIds.length
  }

  private reserveTrackers(count: number): void {
    if (count * TRACKER_INTS <= this.trackers.length) return
    const grown = new ArrayBuffer(sizeFor(count) * TRACKER_INTS * 4)
    new Int32Array(grown).set(this.trackers)
    this.trackers = new Int32Array(grown)
    this.trackersF = new Float64Array(grown)
  }

  private reserveRecords(count: number): void {
    if (count * RECORD_INTS <= this.records.length) return
    const grown = new ArrayBuffer(sizeFor(count) * RECORD_INTS * 4)
    new Int32Array(grown).set(this.records)
    this.records = new Int32Array(grown)
    this.recordsF = new Float64Array(grown)
  }
}

export const pageOf = (slot: number): number => Math.floor(slot / PAGE_TRACKERS)

/** A quarter of room to grow, at least a page. */
const sizeFor = (count: number): number => Math.max(PAGE_TRACKERS, Math.ceil(count * 1.25))
