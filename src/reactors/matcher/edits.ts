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
  LANE_DOUBLES,
  LANE_INTS,
  type MatcherState,
  pageOf,
  PENDING,
} from './state.ts'

interface Edit {
  before: Fences
  after: Fences
  touched: ReadonlySet<number>
  at: number
}

/**
 * Moves an organization's trackers to the next version of its fences, and judges the last decided points of those whom
 * the edit concerns. Not debounced; a change that a debounce held back for another geofence stays held back.
 */
export const decideEdit = async (
  state: MatcherState,
  organization: number,
  { fences, touched }: FencesStep,
  at: number,
  decisions: Decisions,
  isSettled: (trackerId: string) => boolean = () => false,
): Promise<void> => {
  const owner = state.organizations[organization]
  const edit: Edit = { before: owner.fences, after: fences, touched, at }
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

/** Moves an organization's trackers to a version that says the same, whose index numbers sets in another way. */
export const rebase = (state: MatcherState, organization: number, target: Fences): void => {
  const owner = state.organizations[organization]
  const before = owner.fences
  for (const slot of state.slotsOf(organization)) {
    for (const record of state.lanesOf(slot)) {
      const numbers = fencesAt(state, record, before).map((number) => target.numbers.of(before.numbers.idOf(number)))
      const index = target.lane(state.lanes[record * LANE_INTS + L_KEY])?.index
      state.lanes[record * LANE_INTS + L_SET] = index?.setOf(numbers) ?? 0
      state.forgetBox(record)
    }
  }
  target.retain()
  owner.fences = target
  before.release()
}

/** Where an organization leaves the rollout its trackers leave what they are in, and their next fix there is a first one. */
export const decideStop = (
  state: MatcherState,
  organization: number,
  at: number,
  decisions: Decisions,
  isSettled: (trackerId: string) => boolean,
): void => {
  const { organizationId, fences } = state.organizations[organization]
  const made: TrackerDrafts[] = []
  for (const slot of state.slotsOf(organization)) {
    const trackerId = state.trackerIds[slot] as string
    if (isSettled(trackerId)) continue
    const drafts: TransitionDraft[] = []
    for (const lane of state.lanesOf(slot)) {
      const point = storedPoint(state, lane)
      for (const number of committedFences(state, lane, fences)) {
        drafts.push(draftOf(fences, number, 'leave', at, 'geofence', point))
      }
      setPending(state, lane, [])
      state.lanes[lane * LANE_INTS + L_BITS] = 0
      state.lanes[lane * LANE_INTS + L_SET] = 0
      state.forgetBox(lane)
      state.attributes.delete(lane)
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

/** By tracker: which place each one has in memory is not the same at every replay. */
const addInOrder = (organizationId: string, made: TrackerDrafts[], decisions: Decisions): void => {
  for (const { trackerId, drafts } of made.sort((a, b) => (a.trackerId < b.trackerId ? -1 : 1))) {
    decisions.addTransitions(organizationId, trackerId, drafts.sort(inOrder))
  }
}

const moveTracker = (state: MatcherState, slot: number, edit: Edit): TransitionDraft[] => {
  const records = state.lanesOf(slot)
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
    const isDecided = (state.lanes[record * LANE_INTS + L_BITS] & DECIDED) !== 0
    for (const number of left.keys()) {
      if (isDecided && after.fence(number)?.laneKey === state.lanes[record * LANE_INTS + L_KEY]) left.set(number, point)
    }
    for (const number of fencesAt(state, record, after)) {
      if (touched.has(number) && !left.delete(number)) entered.set(number, point)
    }
  }
  return draftsOf(left, entered, edit)
}

/** Whether the edit changes nothing for this lane of a tracker: neither where it is nor anywhere in its safe box. */
const keeps = (state: MatcherState, record: number, before: Lane, after: Lane): boolean => {
  if (before === after) return true
  if (before.key !== after.key || before.family !== after.family) return false
  const at = record * LANE_INTS
  const { lanes } = state
  const boxes = after.index.changedBoxes
  const [lng, lat] = [lanes[at + L_LNG], lanes[at + L_LAT]]
  const west = Math.min(lng, lanes[at + L_WEST] > lanes[at + L_EAST] ? lng : lanes[at + L_WEST])
  const east = Math.max(lng, lanes[at + L_WEST] > lanes[at + L_EAST] ? lng : lanes[at + L_EAST])
  const south = Math.min(lat, lanes[at + L_WEST] > lanes[at + L_EAST] ? lat : lanes[at + L_SOUTH])
  const north = Math.max(lat, lanes[at + L_WEST] > lanes[at + L_EAST] ? lat : lanes[at + L_NORTH])
  for (let i = 0; i < boxes.length; i += 4) {
    if (boxes[i] <= east && boxes[i + 2] >= west && boxes[i + 1] <= north && boxes[i + 3] >= south) return false
  }
  return true
}

/** Gives the tracker one record for each lane of the new version, in their order, each with the set at its last decided point. */
const moveLanes = (state: MatcherState, slot: number, records: readonly number[], { after }: Edit): number[] => {
  const moved = after.lanes.map((lane) => {
    const kept = records.find((record) => state.lanes[record * LANE_INTS + L_KEY] === lane.key)
    const record = kept ?? beginLane(state, records, lane.key)
    const at = record * LANE_INTS
    state.forgetBox(record)
    const isDecided = (state.lanes[at + L_BITS] & DECIDED) !== 0
    state.lanes[at + L_SET] = isDecided
      ? lane.index.locateSafe(state.lanes[at + L_LNG], state.lanes[at + L_LAT], state.lanes, record * (LANE_INTS / 4))
      : 0
    return record
  })
  for (const record of records) if (!moved.includes(record)) state.freeLane(record)
  state.setLanes(slot, moved)
  return moved
}

/** A lane that is new begins with the newest point that other lanes have decided and that it lets pass. */
const beginLane = (state: MatcherState, records: readonly number[], key: number): number => {
  const record = state.addLane(key)
  let newest: number | undefined
  for (const other of records) {
    const at = other * LANE_INTS
    const bits = state.lanes[at + L_BITS]
    const passes = key < 0 || (bits & HAS_ACCURACY) === 0 || state.lanes[at + L_ACCURACY] <= key
    if ((bits & DECIDED) === 0 || !passes) continue
    if (newest === undefined || state.lanesF[other * LANE_DOUBLES + L_AT] > state.lanesF[newest * LANE_DOUBLES + L_AT])
      newest = other
  }
  if (newest === undefined) return record
  const from = newest * LANE_INTS
  state.lanes.copyWithin(record * LANE_INTS, from, from + LANE_INTS)
  state.lanes[record * LANE_INTS + L_KEY] = key
  state.lanes[record * LANE_INTS + L_BITS] &= ~PENDING
  const attributes = state.attributes.get(newest)
  if (attributes !== undefined) state.attributes.set(record, attributes)
  return record
}

const draftsOf = (
  left: ReadonlyMap<number, PointValue>,
  entered: ReadonlyMap<number, PointValue>,
  { before, after, at }: Edit,
): TransitionDraft[] => {
  const draft =
    (type: 'entry' | 'leave') =>
    ([number, point]: readonly [number, PointValue]): TransitionDraft =>
      draftOf(after.fence(number) === undefined ? before : after, number, type, at, 'geofence', point)
  return [...[...left].map(draft('leave')), ...[...entered].map(draft('entry'))]
}
