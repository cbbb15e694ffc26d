import {
  AHEAD,
  HAS_ACCURACY,
  type MatchingSettings,
  type PointBatch,
  type TrackerDeleted,
} from '../../features/locations/events.ts'
import type { PointValue } from '../../features/transitions/events.ts'
import { endTrip, stepTrip, type TripRules } from './detect-trips.ts'
import { type Decisions, draftOf, inOrder, type TransitionDraft } from './decisions.ts'
import type { Fences, Lane } from './fences.ts'
import { pointOfBatch, storedPoint, storePoint } from './points.ts'
import {
  DECIDED,
  L_BITS,
  L_EAST,
  L_KEY,
  L_NEXT,
  L_NORTH,
  L_SET,
  L_SOUTH,
  L_WEST,
  RECORD_INTS,
  type MatcherState,
  pageOf,
  PENDING,
  type PendingChange,
  T_RECORD,
  T_LAST_AT,
  TRACKER_DOUBLES,
  TRACKER_INTS,
} from './state.ts'

export interface MatcherSettings extends TripRules {
  /** Whether the organization's fences are matched. If not, its state is kept as it was, and nothing is decided. */
  inRollout(organizationId: string): boolean
}

export const settingsOf = ({ tripStopMs, tripGapMs, rollout }: MatchingSettings): MatcherSettings => {
  const chosen = rollout === '*' ? undefined : new Set(rollout)
  return {
    tripStopMs,
    tripGapMs: tripGapMs ?? Number.POSITIVE_INFINITY,
    inRollout: (organizationId) => chosen?.has(organizationId) ?? true,
  }
}

export interface PointCounts {
  /** Points that were decided on, and late ones. */
  decided: number
  late: number
}

/** Answers the index of the organization in the state; adds it with the fences in force where it is new. */
export type OrganizationOf = (organizationId: string) => number

/**
 * Decides the points of one batch: for each tracker in `recordedAt` order, leaving out those that were ahead of the clock,
 * and those not newer than the last one that was logged before. Reads no clock; the same events give the same decisions.
 * With `pointsMax` only about that many from index `from` on; `next` is the index where it stopped.
 */
export const decideBatch = (
  state: MatcherState,
  batch: PointBatch,
  settings: MatcherSettings,
  organizationOf: OrganizationOf,
  decisions: Decisions,
  isSettled: (trackerId: string) => boolean = () => false,
  from = 0,
  pointsMax = Number.POSITIVE_INFINITY,
): PointCounts & { next: number } => {
  const counts = { decided: 0, late: 0, next: from }
  while (counts.next < batch.count && counts.next - from < pointsMax) {
    const first = counts.next
    const tracker = batch.tracker[first]
    let to = first + 1
    while (to < batch.count && batch.tracker[to] === tracker) to++
    const { trackerId, organizationId } = batch.trackers[tracker]
    if (!isSettled(trackerId))
      decideRun(state, batch, first, to, trackerId, organizationOf(organizationId), settings, decisions, counts)
    counts.next = to
  }
  return counts
}

/** A deleted tracker leaves its geofences, its trip finishes, and it is forgotten. */
export const decideDeletion = (
  state: MatcherState,
  { organizationId, trackerId, at: atMs }: TrackerDeleted,
  decisions: Decisions,
): void => {
  const slot = state.slots.get(trackerId)
  if (slot === undefined) return
  const organization = state.organizations[state.organizationIndexes.get(organizationId) ?? -1]
  if (organization === undefined) return
  const drafts: TransitionDraft[] = []
  for (const record of state.recordsOf(slot)) {
    const inside = committedFences(state, record, organization.fences)
    if (inside.size === 0) continue
    const point = storedPoint(state, record)
    for (const number of inside) drafts.push(draftOf(organization.fences, number, 'leave', atMs, 'tracker', point))
  }
  decisions.addTransitions(organizationId, trackerId, drafts.sort(inOrder))
  const trip = endTrip(state, slot, trackerId)
  if (trip !== undefined) decisions.addTrips(organizationId, trackerId, [trip])
  state.removeTracker(slot)
}

/** The fences that hold the last decided point of a lane, by number. */
export const fencesAt = (state: MatcherState, record: number, fences: Fences): readonly number[] =>
  fences
    .lane(state.records[record * RECORD_INTS + L_KEY])
    ?.index.members(state.records[record * RECORD_INTS + L_SET]) ?? []

/** The fences in which a lane has reported its tracker: those at its last decided point, without changes held back. */
export const committedFences = (state: MatcherState, record: number, fences: Fences): Set<number> => {
  const inside = new Set(fencesAt(state, record, fences))
  for (const { geofenceId } of state.pending.get(record) ?? []) {
    const number = fences.numbers.of(geofenceId)
    if (!inside.delete(number)) inside.add(number)
  }
  return inside
}

export const setPending = (state: MatcherState, record: number, changes: PendingChange[]): void => {
  if (changes.length > 0) {
    state.pending.set(record, changes)
    state.records[record * RECORD_INTS + L_BITS] |= PENDING
  } else if ((state.records[record * RECORD_INTS + L_BITS] & PENDING) !== 0) {
    state.pending.delete(record)
    state.records[record * RECORD_INTS + L_BITS] &= ~PENDING
  }
}

const decideRun = (
  state: MatcherState,
  batch: PointBatch,
  from: number,
  to: number,
  trackerId: string,
  organizationIndex: number,
  settings: MatcherSettings,
  decisions: Decisions,
  counts: PointCounts,
): void => {
  const { organizationId, fences } = state.organizations[organizationIndex]
  let slot = state.slots.get(trackerId)
  const matches = settings.inRollout(organizationId)
  const { drafts, tripDrafts } = decisions
  for (let i = from; i < to; i++) {
    if ((batch.flags[i] & AHEAD) !== 0) continue
    slot ??= addTracker(state, trackerId, organizationIndex, fences)
    const lastAt = state.trackersF[slot * TRACKER_DOUBLES + T_LAST_AT]
    if (batch.recordedAt[i] <= lastAt) {
      counts.late++
      continue
    }
    state.trackersF[slot * TRACKER_DOUBLES + T_LAST_AT] = batch.recordedAt[i]
    counts.decided++
    stepTrip(state, slot, trackerId, batch, i, lastAt, settings, tripDrafts)
    if (tripDrafts.length > 0) decisions.addTrips(organizationId, trackerId, tripDrafts.splice(0))
    if (!matches) continue
    decidePoint(state, slot, batch, i, fences, drafts)
    if (drafts.length === 0) continue
    decisions.addTransitions(organizationId, trackerId, drafts.length === 1 ? drafts : drafts.sort(inOrder))
    drafts.length = 0
  }
  if (slot !== undefined) state.dirtyPages.add(pageOf(slot))
}

const addTracker = (state: MatcherState, trackerId: string, organizationIndex: number, fences: Fences): number => {
  const slot = state.addTracker(trackerId, organizationIndex)
  state.setRecords(
    slot,
    fences.lanes.map((lane) => state.addRecord(lane.key)),
  )
  return slot
}

/** The hot path: four comparisons if the fix is in the safe box of its lane. */
const decidePoint = (
  state: MatcherState,
  slot: number,
  batch: PointBatch,
  i: number,
  fences: Fences,
  drafts: TransitionDraft[],
): void => {
  const lng = batch.lng[i]
  const lat = batch.lat[i]
  const states = (batch.flags[i] & HAS_ACCURACY) !== 0
  let nth = 0
  for (let record = state.trackers[slot * TRACKER_INTS + T_RECORD]; record >= 0; nth++) {
    const { records } = state
    const offset = record * RECORD_INTS
    const key = records[offset + L_KEY]
    if (key < 0 || !states || batch.accuracy[i] <= key) {
      const safe =
        lng >= records[offset + L_WEST] &&
        lng <= records[offset + L_EAST] &&
        lat >= records[offset + L_SOUTH] &&
        lat <= records[offset + L_NORTH]
      if (!safe || (records[offset + L_BITS] & PENDING) !== 0)
        decideSlowly(state, record, fences.lanes[nth], batch, i, fences, drafts)
      storePoint(state, record, batch, i)
    }
    record = records[offset + L_NEXT]
  }
}

/** Queries the index, and compares its answer with the one before. */
const decideSlowly = (
  state: MatcherState,
  record: number,
  { index }: Lane,
  batch: PointBatch,
  i: number,
  fences: Fences,
  drafts: TransitionDraft[],
): void => {
  const offset = record * RECORD_INTS
  const before = state.records[offset + L_SET]
  const bits = state.records[offset + L_BITS]
  const after = index.locateSafe(batch.lng[i], batch.lat[i], state.records, record * (RECORD_INTS / 4))
  state.records[offset + L_SET] = after
  if (before === after && (bits & PENDING) === 0) return
  const point = pointOfBatch(batch, i)
  if ((bits & DECIDED) !== 0)
    return decideChange(state, record, index.members(before), index.members(after), point, fences, drafts)
  // A tracker's first decided fix waits for no other.
  for (const number of index.members(after)) {
    drafts.push(draftOf(fences, number, 'entry', point.recordedAt, 'point', point))
  }
}

const decideChange = (
  state: MatcherState,
  record: number,
  before: readonly number[],
  after: readonly number[],
  point: PointValue,
  fences: Fences,
  drafts: TransitionDraft[],
): void => {
  const held = state.pending.get(record) ?? []
  const keep: PendingChange[] = []
  for (const number of differing(before, after, held, fences)) {
    const geofenceId = fences.numbers.idOf(number)
    const pending = held.find((change) => change.geofenceId === geofenceId)
    const committed = before.includes(number) !== (pending !== undefined)
    const inside = after.includes(number)
    if (committed === inside) continue
    const change = { geofenceId, count: (pending?.count ?? 0) + 1, point: pending?.point ?? point }
    const debounce = fences.debounceOf(number)
    const counts =
      debounce === undefined ||
      change.count >= debounce.fixes ||
      point.recordedAt - change.point.recordedAt >= debounce.ms
    if (counts)
      drafts.push(draftOf(fences, number, inside ? 'entry' : 'leave', change.point.recordedAt, 'point', change.point))
    else keep.push(change)
  }
  setPending(state, record, keep)
}

/** Fences whose side differs between two sets, and those with a change held back. */
const differing = (
  before: readonly number[],
  after: readonly number[],
  held: readonly PendingChange[],
  fences: Fences,
): Set<number> => {
  const numbers = new Set(held.map((change) => fences.numbers.of(change.geofenceId)))
  if (before === after) return numbers
  for (const number of before) if (!after.includes(number)) numbers.add(number)
  for (const number of after) if (!before.includes(number)) numbers.add(number)
  return numbers
}
