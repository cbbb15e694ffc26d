import { breathe } from '../../kernel/breath.ts'
import { HAS_ACCURACY } from '../../features/locations/events.ts'
import type { PointValue } from '../../features/transitions/events.ts'
import { committedFences, fencesAt, setPending } from './decide.ts'
import { type Decisions, draftOf, inOrder, type TransitionDraft } from './decisions.ts'
import type { Fences, FencesStep, Lane } from './fences.ts'
import { storedPoint } from './points.ts'
import {
  DECIDED,
  L_ACCURACY,
  L_AT,
  L_BITS,
  L_EAST,
  L_KEY,
  L_LAT,
  L_LNG,
  L_NORTH,
  L_SET,
  L_SOUTH,
  L_WEST,
  RECORD_DOUBLES,
  RECORD_INTS,
  type MatcherState,
  pageOf,
  PENDING,
} from './state.ts'

interface Edit {
  before: Fences
  after: Fences
  touched: ReadonlySet<number>
  /** Time of its transitions, ms since the epoch. */
  atMs: number
}

/**
 * Moves an organization's trackers to the next version of its fences, and judges again the last decided points of those
 * that the edit concerns. That is not debounced; changes held back for other geofences stay held back.
 */
export const decideEdit = async (
  state: MatcherState,
  organization: number,
  { fences, touched }: FencesStep,
  atMs: number,
  decisions: Decisions,
  isSettled: (trackerId: string) => boolean = () => false,
): Promise<void> => {
  const owner = state.organizations[organization]
  const edit: Edit = { before: owner.fences, after: fences, touched, atMs }
  const made: TrackerDrafts[] = []
  for (const slot of state.slotsOf(organization)) {
    const pause = breathe()
    if (pause !== undefined) await pause
    const trackerId = state.trackerIds[slot] as string
    if (isSettled(trackerId)) continue
    const drafts = moveTracker(state, slot, edit)
    if (drafts.length > 0) made.push({ trackerId, drafts })
  }
  addInOrder(owner.organizationId, made, decisions)
  fences.retain()
  owner.fences = fences
  edit.before.release()
}

/** Moves an organization's trackers to an equal version whose index has other numbers for sets of fences. */
export const rebase = (state: MatcherState, organization: number, target: Fences): void => {
  const owner = state.organizations[organization]
  const before = owner.fences
  for (const slot of state.slotsOf(organization)) {
    for (const record of state.recordsOf(slot)) {
      const numbers = fencesAt(state, record, before).map((number) => target.numbers.of(before.numbers.idOf(number)))
      const index = target.lane(state.records[record * RECORD_INTS + L_KEY])?.index
      state.records[record * RECORD_INTS + L_SET] = index?.setOf(numbers) ?? 0
      state.forgetBox(record)
    }
  }
  target.retain()
  owner.fences = target
  before.release()
}

/** When an organization leaves the rollout, its trackers leave all geofences; their next fix counts as the first. */
export const decideStop = (
  state: MatcherState,
  organization: number,
  atMs: number,
  decisions: Decisions,
  isSettled: (trackerId: string) => boolean,
): void => {
  const { organizationId, fences } = state.organizations[organization]
  const made: TrackerDrafts[] = []
  for (const slot of state.slotsOf(organization)) {
    const trackerId = state.trackerIds[slot] as string
    if (isSettled(trackerId)) continue
    const drafts: TransitionDraft[] = []
    for (const record of state.recordsOf(slot)) {
      const point = storedPoint(state, record)
      for (const number of committedFences(state, record, fences)) {
        drafts.push(draftOf(fences, number, 'leave', atMs, 'geofence', point))
      }
      setPending(state, record, [])
      state.records[record * RECORD_INTS + L_BITS] = 0
      state.records[record * RECORD_INTS + L_SET] = 0
      state.forgetBox(record)
      state.attributes.delete(record)
    }
    state.dirtyPages.add(pageOf(slot))
    if (drafts.length > 0) made.push({ trackerId, drafts })
  }
  addInOrder(organizationId, made, decisions)
}

interface TrackerDrafts {
  trackerId: string
  drafts: TransitionDraft[]
}

/** Sorted by tracker, since slots differ from replay to replay. */
const addInOrder = (organizationId: string, made: TrackerDrafts[], decisions: Decisions): void => {
  for (const { trackerId, drafts } of made.sort((a, b) => (a.trackerId < b.trackerId ? -1 : 1))) {
    decisions.addTransitions(organizationId, trackerId, drafts.sort(inOrder))
  }
}

const moveTracker = (state: MatcherState, slot: number, edit: Edit): TransitionDraft[] => {
  const records = state.recordsOf(slot)
  const { before, after, touched } = edit
  const holdsBack = records.some((record) =>
    state.pending.get(record)?.some((change) => touched.has(before.numbers.of(change.geofenceId))),
  )
  const isSame =
    before.lanes.length === after.lanes.length &&
    records.every((record, i) => keeps(state, record, before.lanes[i], after.lanes[i]))
  if (isSame && !holdsBack) return []
  state.dirtyPages.add(pageOf(slot))
  const left = new Map<number, PointValue>()
  for (const record of records) {
    for (const number of committedFences(state, record, before))
      if (touched.has(number)) left.set(number, storedPoint(state, record))
    setPending(
      state,
      record,
      (state.pending.get(record) ?? []).filter((change) => !touched.has(before.numbers.of(change.geofenceId))),
    )
  }
  const entered = new Map<number, PointValue>()
  for (const record of moveLanes(state, slot, records, edit)) {
    const point = storedPoint(state, record)
    const isDecided = (state.records[record * RECORD_INTS + L_BITS] & DECIDED) !== 0
    for (const number of left.keys()) {
      if (isDecided && after.fence(number)?.laneKey === state.records[record * RECORD_INTS + L_KEY])
        left.set(number, point)
    }
    for (const number of fencesAt(state, record, after)) {
      if (touched.has(number) && !left.delete(number)) entered.set(number, point)
    }
  }
  return draftsOf(left, entered, edit)
}

/** Whether the edit changes nothing for a tracker in this lane: neither at its last point nor anywhere in its safe box. */
const keeps = (state: MatcherState, record: number, before: Lane, after: Lane): boolean => {
  if (before === after) return true
  if (before.key !== after.key || before.family !== after.family) return false
  const offset = record * RECORD_INTS
  const { records } = state
  const boxes = after.index.changedBoxes
  const [lng, lat] = [records[offset + L_LNG], records[offset + L_LAT]]
  const west = Math.min(lng, records[offset + L_WEST] > records[offset + L_EAST] ? lng : records[offset + L_WEST])
  const east = Math.max(lng, records[offset + L_WEST] > records[offset + L_EAST] ? lng : records[offset + L_EAST])
  const south = Math.min(lat, records[offset + L_WEST] > records[offset + L_EAST] ? lat : records[offset + L_SOUTH])
  const north = Math.max(lat, records[offset + L_WEST] > records[offset + L_EAST] ? lat : records[offset + L_NORTH])
  for (let i = 0; i < boxes.length; i += 4) {
    if (boxes[i] <= east && boxes[i + 2] >= west && boxes[i + 1] <= north && boxes[i + 3] >= south) return false
  }
  return true
}

/** Gives the tracker a record for each lane of the new version, in that order, with the fences at its last decided point. */
const moveLanes = (state: MatcherState, slot: number, records: readonly number[], { after }: Edit): number[] => {
  const moved = after.lanes.map((lane) => {
    const kept = records.find((record) => state.records[record * RECORD_INTS + L_KEY] === lane.key)
    const record = kept ?? beginLane(state, records, lane.key)
    const offset = record * RECORD_INTS
    state.forgetBox(record)
    const isDecided = (state.records[offset + L_BITS] & DECIDED) !== 0
    state.records[offset + L_SET] = isDecided
      ? lane.index.locateSafe(
          state.records[offset + L_LNG],
          state.records[offset + L_LAT],
          state.records,
          record * (RECORD_INTS / 4),
        )
      : 0
    return record
  })
  for (const record of records) if (!moved.includes(record)) state.freeRecord(record)
  state.setRecords(slot, moved)
  return moved
}

/** The record of a new lane begins with the newest point of the other lanes that it lets pass. */
const beginLane = (state: MatcherState, records: readonly number[], key: number): number => {
  const record = state.addRecord(key)
  let newest: number | undefined
  for (const other of records) {
    const offset = other * RECORD_INTS
    const bits = state.records[offset + L_BITS]
    const passes = key < 0 || (bits & HAS_ACCURACY) === 0 || state.records[offset + L_ACCURACY] <= key
    if ((bits & DECIDED) === 0 || !passes) continue
    if (
      newest === undefined ||
      state.recordsF[other * RECORD_DOUBLES + L_AT] > state.recordsF[newest * RECORD_DOUBLES + L_AT]
    )
      newest = other
  }
  if (newest === undefined) return record
  const from = newest * RECORD_INTS
  state.records.copyWithin(record * RECORD_INTS, from, from + RECORD_INTS)
  state.records[record * RECORD_INTS + L_KEY] = key
  state.records[record * RECORD_INTS + L_BITS] &= ~PENDING
  const attributes = state.attributes.get(newest)
  if (attributes !== undefined) state.attributes.set(record, attributes)
  return record
}

const draftsOf = (
  left: ReadonlyMap<number, PointValue>,
  entered: ReadonlyMap<number, PointValue>,
  { before, after, atMs }: Edit,
): TransitionDraft[] => {
  const draft =
    (type: 'entry' | 'leave') =>
    ([number, point]: readonly [number, PointValue]): TransitionDraft =>
      draftOf(after.fence(number) === undefined ? before : after, number, type, atMs, 'geofence', point)
  return [...[...left].map(draft('leave')), ...[...entered].map(draft('entry'))]
}
