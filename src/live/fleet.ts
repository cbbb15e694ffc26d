import { AHEAD, type LocationEntry, type PointBatch } from '../features/locations/events.ts'
import {
  latestPointAt,
  lastSeenAt,
  type LatestPoint,
  movePoint,
  positionText,
  seesUserOf,
} from '../features/locations/views.ts'
import { statusAt, type StatusAges, type TrackerStatus } from '../features/trackers/status.ts'
import type { TrackerFacts } from '../features/trackers/views.ts'
import type { Box } from '../geo/box.ts'
import type { UserCaller } from '../kernel/caller.ts'
import { cellAt, Cells } from './cells.ts'

interface Unit {
  trackerId: string
  facts: TrackerFacts | undefined
  /** Undefined: never seen, or deleted since. */
  point: LatestPoint | undefined
  /** JSON of the position, made on first use after a change. */
  text: string | undefined
  /** The same for callers that may see the tracker's user. */
  userText: string | undefined
  textStatus: TrackerStatus | undefined
  /** 1e-7 degree: its place when subscriptions were last informed; NaN for none. */
  toldLat: number
  toldLng: number
  /** Its cell; NaN for none. */
  cell: number
}

/** The last positions of one organization's trackers, each at a slot: a small number that stays the tracker's. */
export class Fleet {
  private readonly units: Unit[] = []
  private readonly slots = new Map<string, number>()
  private readonly cells = new Cells()
  private changed: number[] = []
  private readonly changedMarks = new Set<number>()
  private readonly ages: StatusAges

  constructor(ages: StatusAges) {
    this.ages = ages
  }

  get size(): number {
    return this.units.length
  }

  slotOf(trackerId: string): number {
    const known = this.slots.get(trackerId)
    if (known !== undefined) return known
    this.slots.set(trackerId, this.units.length)
    this.units.push({
      trackerId,
      facts: undefined,
      point: undefined,
      text: undefined,
      userText: undefined,
      textStatus: undefined,
      toldLat: Number.NaN,
      toldLng: Number.NaN,
      cell: Number.NaN,
    })
    return this.units.length - 1
  }

  unit(slot: number): Readonly<Unit> {
    return this.units[slot]
  }

  /** Slots that may be in the viewport; undefined: look at every slot. */
  slotsWithin(viewport: Box): number[] | undefined {
    return this.cells.within(viewport)
  }

  /** Slots of the known ones of these trackers. */
  slotsOf(trackerIds: Iterable<string>): number[] {
    return [...trackerIds].flatMap((trackerId) => this.slots.get(trackerId) ?? [])
  }

  /** Undefined for an unknown tracker. */
  factsOf(trackerId: string): TrackerFacts | undefined {
    const slot = this.slots.get(trackerId)
    return slot === undefined ? undefined : this.units[slot].facts
  }

  /** Takes a point, which belongs to the fleet from then on, unless a newer one is known. */
  move(point: LatestPoint): void {
    const slot = this.slotOf(point.trackerId)
    const unit = this.units[slot]
    if (unit.point !== undefined && unit.point.recordedAt >= point.recordedAt) return
    unit.point = point
    this.moved(slot)
  }

  /** Takes the newest point of one tracker of a batch, whose points stand from `from` to before `to`. */
  take(batch: PointBatch, from: number, to: number): void {
    let at = to - 1
    while (at >= from && (batch.flags[at] & AHEAD) !== 0) at--
    if (at < from) return
    const { trackerId } = batch.trackers[batch.tracker[at]]
    const slot = this.slotOf(trackerId)
    const unit = this.units[slot]
    if (unit.point !== undefined && unit.point.recordedAt >= batch.recordedAt[at]) return
    if (unit.point === undefined) unit.point = latestPointAt(batch, at, trackerId)
    else movePoint(unit.point, batch, at)
    this.moved(slot)
  }

  knowUnlessKnown(trackerId: string, facts: TrackerFacts): void {
    if (this.units[this.slotOf(trackerId)].facts === undefined) this.know(trackerId, facts)
  }

  know(trackerId: string, facts: TrackerFacts): void {
    const slot = this.slotOf(trackerId)
    this.units[slot].facts = facts
    this.touch(slot)
  }

  forget(trackerId: string): void {
    const slot = this.slots.get(trackerId)
    if (slot === undefined) return
    this.units[slot].point = undefined
    this.moved(slot)
  }

  /** Slots that changed since the last call. */
  takeChanged(): number[] {
    const changed = this.changed
    this.changed = []
    this.changedMarks.clear()
    return changed
  }

  /** Notes that subscriptions know the present place of the unit. */
  told(slot: number): void {
    const unit = this.units[slot]
    unit.toldLat = unit.point === undefined ? Number.NaN : unit.point.lat
    unit.toldLng = unit.point === undefined ? Number.NaN : unit.point.lng
  }

  /** The position as JSON text, as this caller may see it. The unit must have a point. */
  text(slot: number, now: number, caller: UserCaller): string {
    const unit = this.units[slot]
    const point = unit.point as LatestPoint
    const facts = unit.facts ?? NO_FACTS
    const status = statusAt(lastSeenAt(point), now, this.ages)
    if (unit.textStatus !== status) unit.text = unit.userText = undefined
    unit.textStatus = status
    if (facts.userId !== undefined && seesUserOf(caller, facts))
      return (unit.userText ??= flat(positionText(point, facts, status)))
    return (unit.text ??= flat(positionText(point, { name: facts.name, vehicleId: facts.vehicleId }, status)))
  }

  private moved(slot: number): void {
    const unit = this.units[slot]
    const cell = unit.point === undefined ? Number.NaN : cellAt(unit.point.lat, unit.point.lng)
    if (!Object.is(cell, unit.cell)) {
      this.cells.move(slot, unit.cell, cell)
      unit.cell = cell
    }
    this.touch(slot)
  }

  private touch(slot: number): void {
    this.units[slot].text = this.units[slot].userText = undefined
    if (this.changedMarks.has(slot)) return
    this.changedMarks.add(slot)
    this.changed.push(slot)
  }
}

const NO_FACTS: TrackerFacts = { name: '', hubIds: [] }

/** A concatenated text is a tree until its characters are read: joining flat ones takes a fifth of the time. */
const flat = (text: string): string => {
  text.charCodeAt(0)
  return text
}

/** Calls `visit` for each tracker's points of a batch. */
export const forEachRun = (
  batch: PointBatch,
  visit: (organizationId: string, from: number, to: number) => void,
): void => {
  for (let from = 0; from < batch.count; ) {
    const tracker = batch.tracker[from]
    let to = from + 1
    while (to < batch.count && batch.tracker[to] === tracker) to++
    visit(batch.trackers[tracker].organizationId, from, to)
    from = to
  }
}

/** Applies an entry of the log to one organization's fleet. */
export const applyEntry = (organizationId: string, fleet: Fleet, entry: LocationEntry): void => {
  if (entry.kind === 'trackerDeleted' && entry.deletion.organizationId === organizationId)
    fleet.forget(entry.deletion.trackerId)
  if (entry.kind !== 'points') return
  forEachRun(entry.batch, (id, from, to) => {
    if (id === organizationId) fleet.take(entry.batch, from, to)
  })
}
