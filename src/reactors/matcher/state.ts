import type { Fences } from './fences.ts'
import type { PointValue } from '../../features/transitions/events.ts'

/**
 * What the matcher knows of the trackers of one partition: records in two typed arrays, one for each tracker and one for
 * each of its lanes (a lane judges the fixes that one `maxAccuracy` lets pass). Places of 32 trackers make a page, which
 * is what is stored.
 */
export const PAGE_TRACKERS = 32

/** A tracker's record is 9 doubles, or 18 integers (the last one is room to align it). */
export const TRACKER_DOUBLES = 9
export const TRACKER_INTS = 18
/** Doubles: when its last point was recorded, when its trip started, the trip's metres, since when it is near its anchor, the trip's metres there. */
export const T_LAST_AT = 0
export const T_TRIP_AT = 1
export const T_DISTANCE = 2
export const T_ANCHOR_AT = 3
export const T_ANCHOR_DISTANCE = 4
/** Integers: positions in E7, place of its organization, trip mode, its first lane. */
export const T_ANCHOR_LAT = 10
export const T_ANCHOR_LNG = 11
export const T_LAST_LAT = 12
export const T_LAST_LNG = 13
export const T_ORGANIZATION = 14
export const T_TRIP_MODE = 15
export const T_LANE = 16

/** A lane's record is 16 integers, or 8 doubles: one cache line. */
export const LANE_INTS = 16
export const LANE_DOUBLES = 8
/** The safe box: as long as a fix is in it, the set stays. */
export const L_WEST = 0
export const L_SOUTH = 1
export const L_EAST = 2
export const L_NORTH = 3
/** The fences that hold the last decided point, as the lane's index numbers such sets. */
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
/** As a double: when the last decided point was recorded. */
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
  /** By slot; undefined where a deleted tracker was. */
  readonly trackerIds: (string | undefined)[] = []
  readonly organizations: OrganizationState[] = []
  readonly organizationPlaces = new Map<string, number>()
  /** JSON of the attributes of last decided points, by lane record; few have any. */
  readonly attributes = new Map<number, string>()
  readonly pending = new Map<number, PendingChange[]>()
  readonly dirtyPages = new Set<number>()
  trackers = new Int32Array(0)
  trackersF = new Float64Array(0)
  lanes = new Int32Array(0)
  lanesF = new Float64Array(0)
  private laneRecords = 0
  private freeSlots: number[] = []
  private readonly freeLanes: number[] = []
  /** Pages are still being restored: no place that one of them may have is given away. */
  private isRestoring = false

  organizationPlace(organizationId: string, fences: Fences): number {
    let place = this.organizationPlaces.get(organizationId)
    if (place === undefined) {
      place = this.organizations.push({ organizationId, fences }) - 1
      this.organizationPlaces.set(organizationId, place)
    }
    return place
  }

  /** The slot of a tracker that has none yet. */
  addTracker(trackerId: string, organization: number, slot = this.freeSlot()): number {
    while (this.trackerIds.length <= slot) this.trackerIds.push(undefined)
    this.reserveTrackers(this.trackerIds.length)
    // Copied: a text that was cut out of a larger one, or put together, may hold on to what it came from.
    const ownId = Buffer.from(trackerId, 'latin1').toString('latin1')
    this.trackerIds[slot] = ownId
    this.slots.set(ownId, slot)
    this.trackers.fill(0, slot * TRACKER_INTS, (slot + 1) * TRACKER_INTS)
    this.trackersF[slot * TRACKER_DOUBLES + T_LAST_AT] = Number.NEGATIVE_INFINITY
    this.trackers[slot * TRACKER_INTS + T_ORGANIZATION] = organization
    this.trackers[slot * TRACKER_INTS + T_LANE] = -1
    return slot
  }

  removeTracker(slot: number): void {
    const trackerId = this.trackerIds[slot]
    if (trackerId === undefined) return
    for (const lane of this.lanesOf(slot)) this.freeLane(lane)
    this.slots.delete(trackerId)
    this.trackerIds[slot] = undefined
    if (!this.isRestoring) this.freeSlots.push(slot)
    this.dirtyPages.add(pageOf(slot))
  }

  /** Keeps the places of the first pages for what is restored, until `endRestore`. */
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

  /** A record that has decided nothing. */
  addLane(key: number): number {
    const lane = this.freeLanes.pop() ?? this.laneRecords++
    this.reserveLanes(this.laneRecords)
    const at = lane * LANE_INTS
    this.lanes.fill(0, at, at + LANE_INTS)
    this.lanes[at + L_KEY] = key
    this.lanes[at + L_NEXT] = -1
    this.forgetBox(lane)
    return lane
  }

  freeLane(lane: number): void {
    this.attributes.delete(lane)
    this.pending.delete(lane)
    this.freeLanes.push(lane)
  }

  /** The next fix asks the index. */
  forgetBox(lane: number): void {
    const at = lane * LANE_INTS
    this.lanes[at + L_WEST] = 1
    this.lanes[at + L_EAST] = 0
  }

  lanesOf(slot: number): number[] {
    const lanes: number[] = []
    for (
      let lane = this.trackers[slot * TRACKER_INTS + T_LANE];
      lane >= 0;
      lane = this.lanes[lane * LANE_INTS + L_NEXT]
    )
      lanes.push(lane)
    return lanes
  }

  setLanes(slot: number, lanes: readonly number[]): void {
    this.trackers[slot * TRACKER_INTS + T_LANE] = lanes[0] ?? -1
    lanes.forEach((lane, i) => {
      this.lanes[lane * LANE_INTS + L_NEXT] = lanes[i + 1] ?? -1
    })
  }

  /** Slots of an organization's trackers. */
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

  private reserveLanes(count: number): void {
    if (count * LANE_INTS <= this.lanes.length) return
    const grown = new ArrayBuffer(sizeFor(count) * LANE_INTS * 4)
    new Int32Array(grown).set(this.lanes)
    this.lanes = new Int32Array(grown)
    this.lanesF = new Float64Array(grown)
  }
}

export const pageOf = (slot: number): number => Math.floor(slot / PAGE_TRACKERS)

/** A quarter of room to grow, at least a page. */
const sizeFor = (count: number): number => Math.max(PAGE_TRACKERS, Math.ceil(count * 1.25))
