import type { EventLog } from '../engines/event-log.ts'
import type { HistoryStore } from '../engines/history-store.ts'
import type { BacktestQuestion, RunBacktest } from '../features/geofences/backtest-api.ts'
import { GROUP_NOUN, geofenceStream, groupStream, type GroupRules } from '../features/geofences/events.ts'
import { geofence } from '../features/geofences/geofence.ts'
import type { PointBatch } from '../features/locations/events.ts'
import { backtestPoints, estimatePoints } from '../features/locations/history-streams.ts'
import { type PointRows, sameTracker, trackerIdAt } from '../features/locations/point-rows.ts'
import type { Transition } from '../features/transitions/events.ts'
import { transitionShown } from '../features/transitions/views.ts'
import { FenceIndex } from '../geo/fence-index.ts'
import { makeShape, type ShapeInput } from '../geo/shape.ts'
import { loadState } from '../kit/handle-command.ts'
import { idFrom } from '../kit/ids.ts'
import { ABSENT, evolveResource } from '../kit/resource-rows.ts'
import type { UserCaller } from '../kernel/caller.ts'
import { Failure } from '../kernel/errors.ts'
import { decideBatch } from './matcher-decide.ts'
import { Decisions } from './matcher-decisions.ts'
import { groupInForce } from './matcher-fence-book.ts'
import { FenceNumbers, Fences, Lane } from './matcher-fences.ts'
import { MatcherState } from './matcher-state.ts'

export interface BacktestServices {
  log: Pick<EventLog, 'read'>
  history: HistoryStore
  visibleTrackers(caller: UserCaller): Promise<'all' | readonly string[]>
}

/** More points than this are not read for one answer. */
const BACKTEST_POINTS_MAX = 20_000_000
/** Transitions of one answer. */
const TRANSITIONS_MAX = 100_000
/** Rows that are decided before others get their turn: some milliseconds. */
const ROWS_PER_SLICE = 8_192

/** Runs a geofence over history with the same decisions as the matcher's, without making any transition. */
export const backtestOf =
  ({ log, history, visibleTrackers }: BacktestServices): RunBacktest =>
  async (question) => {
    const { caller, trackerIds, from, to, signal } = question
    const scope = { organizationId: caller.organizationId, trackerIds: await visibleTrackers(caller) }
    const estimate = await estimatePoints(history, scope, { trackerIds, from, to })
    if (estimate > BACKTEST_POINTS_MAX) {
      throw new Failure('too_large', { message: `The back-test would read some ${estimate} points, at most ${BACKTEST_POINTS_MAX} are; ask for less time or fewer trackers.` })
    }
    const shape = await shapeOf(log, question)
    const rules = { ...(await rulesOf(log, question.geofenceGroupId)), ...defined(question.rules) }
    const rows = backtestPoints(history, scope, { trackerIds, from, to }, signal)
    const transitions = await backtest({ ...question, organizationId: caller.organizationId, shape, rules }, rows)
    return transitions.map(transitionShown)
  }

export interface Backtest extends Pick<BacktestQuestion, 'geofenceId' | 'geofenceGroupId' | 'from'> {
  organizationId: string
  shape: ShapeInput
  rules: GroupRules
}

/**
 * The transitions at `from` or later, oldest first. The points come by tracker and time; those before `from` only say
 * on which side a tracker was.
 */
export const backtest = async (question: Backtest, points: AsyncIterable<PointRows>): Promise<Transition[]> => {
  const { organizationId, geofenceId, from } = question
  const fences = fencesOf(question)
  const state = new MatcherState()
  const place = state.organizationPlace(organizationId, fences)
  const settings = { tripStopMs: Number.POSITIVE_INFINITY, inRollout: () => true }
  const made: Transition[] = []
  for await (const rows of points) {
    for (let at = 0; at < rows.count; at += ROWS_PER_SLICE) {
      const decisions = new Decisions(0)
      decideBatch(state, batchOf(rows, at, Math.min(rows.count, at + ROWS_PER_SLICE), organizationId), settings, () => place, decisions)
      for (const decision of decisions.list) if (decision.kind === 'transition' && decision.at >= from) made.push(decision)
      if (made.length > TRANSITIONS_MAX) throw new Failure('too_large', { message: `Over ${TRANSITIONS_MAX} transitions; ask for less time or fewer trackers.` })
      await new Promise((resume) => setImmediate(resume))
    }
    state.dirtyPages.clear()
  }
  const named = made.map((transition) => ({ ...transition, _id: idFrom('backtest', geofenceId, transition.trackerId, transition.at, transition.type) }))
  return named.sort((a, b) => a.at - b.at)
}

const fencesOf = ({ organizationId, geofenceId, geofenceGroupId, shape, rules }: Backtest): Fences => {
  const group = groupInForce(rules, 0)
  const numbers = new FenceNumbers()
  const fence = numbers.of(geofenceId)
  const index = FenceIndex.empty().with({ add: [{ fence, shape: makeShape(shape) }] })
  const inForce = { geofenceId, revision: 0, geofenceGroupId, laneKey: group.laneKey, shapeVersion: 1 }
  return new Fences({ organizationId, through: 0, numbers, chunks: [[inForce]], groups: new Map([[geofenceGroupId, group]]), lanes: [new Lane(group.laneKey, index)] })
}

const shapeOf = async (log: Pick<EventLog, 'read'>, { geofenceId }: BacktestQuestion): Promise<ShapeInput> => {
  const { state } = await loadState(log as EventLog, geofenceStream(geofenceId), geofence)
  if (state.status !== 'live' || state.values === undefined) throw new Failure('not_found')
  return state.values.shape
}

const rulesOf = async (log: Pick<EventLog, 'read'>, geofenceGroupId: string): Promise<GroupRules> => {
  const { state } = await loadState(log as EventLog, groupStream(geofenceGroupId), { initial: ABSENT, decide: () => [], evolve: evolveResource(GROUP_NOUN) })
  return state.values as GroupRules
}

const defined = (rules: GroupRules): GroupRules => Object.fromEntries(Object.entries(rules).filter(([, value]) => value !== undefined))

/** Rows of history as a batch, its trackers numbered as they come. */
const batchOf = (rows: PointRows, from: number, to: number, organizationId: string): PointBatch => {
  const trackers: PointBatch['trackers'] = []
  const tracker = new Uint16Array(to - from)
  const attributes = new Map<number, string>()
  for (let row = from; row < to; row++) {
    if (row === from || !sameTracker(rows, row, rows, row - 1)) trackers.push({ trackerId: trackerIdAt(rows, row), organizationId })
    tracker[row - from] = trackers.length - 1
    if (rows.attributes[row] !== '') attributes.set(row - from, rows.attributes[row])
  }
  return {
    loggedAt: 0,
    count: to - from,
    trackers,
    tracker,
    recordedAt: rows.recordedAt.subarray(from, to),
    lat: rows.lat.subarray(from, to),
    lng: rows.lng.subarray(from, to),
    flags: rows.flags.subarray(from, to),
    accuracy: rows.accuracy.subarray(from, to),
    altitude: rows.altitude.subarray(from, to),
    speed: rows.speed.subarray(from, to),
    heading: rows.heading.subarray(from, to),
    battery: rows.battery.subarray(from, to),
    attributes,
  }
}
