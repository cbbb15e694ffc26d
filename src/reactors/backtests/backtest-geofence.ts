import type { PointBatch } from '../../features/locations/events.ts'
import { type PointRows, sameTracker, trackerIdAt } from '../../features/locations/history/point-rows.ts'
import type { GroupRules } from '../../features/geofences/events.ts'
import type { Transition } from '../../features/transitions/events.ts'
import { FenceIndex } from '../../geo/fence-index.ts'
import { makeShape, type ShapeInput } from '../../geo/shape.ts'
import { breathe } from '../../kernel/breath.ts'
import { idFrom } from '../../kit/commands/ids.ts'
import { decideBatch } from '../matcher/decide.ts'
import { Decisions } from '../matcher/decisions.ts'
import { FenceNumbers, Fences, groupInForce, Lane } from '../matcher/fences.ts'
import { MatcherState } from '../matcher/state.ts'

/** Rows that are decided before others may get their turn. */
const ROWS_PER_SLICE = 1_024

export interface Backtest {
  organizationId: string
  geofenceId: string
  geofenceGroupId: string
  shape: ShapeInput
  rules: GroupRules
  /** ms since the epoch: transitions before it are left out. */
  from: number
}

export interface BacktestSlice {
  /** By tracker, each one's in the order of time. */
  transitions: Transition[]
  processed: number
}

/**
 * Runs a geofence over history with the same decisions as the matcher's, without making any transition. The points come
 * by tracker and time; those before `from` only set a tracker's side. Between two slices others get their turn.
 */
export async function* backtest(question: Backtest, points: AsyncIterable<PointRows>): AsyncGenerator<BacktestSlice> {
  const { organizationId, geofenceId, from } = question
  const fences = fencesOf(question)
  const state = new MatcherState()
  const place = state.organizationIndex(organizationId, fences)
  const settings = { tripStopMs: Number.POSITIVE_INFINITY, tripGapMs: Number.POSITIVE_INFINITY, inRollout: () => true }
  let processed = 0
  for await (const rows of points) {
    for (let at = 0; at < rows.count; at += ROWS_PER_SLICE) {
      const end = Math.min(rows.count, at + ROWS_PER_SLICE)
      const decisions = new Decisions(0)
      decideBatch(state, batchOf(rows, at, end, organizationId), settings, () => place, decisions)
      processed += end - at
      const transitions = decisions.list.filter(
        (decision) => decision.kind === 'transition' && decision.at >= from,
      ) as Transition[]
      for (const transition of transitions)
        transition._id = idFrom('backtest', geofenceId, transition.trackerId, transition.at, transition.type)
      yield { transitions, processed }
      await breathe()
    }
    state.dirtyPages.clear()
  }
}

const fencesOf = ({ organizationId, geofenceId, geofenceGroupId, shape, rules }: Backtest): Fences => {
  const group = groupInForce(rules, 0)
  const numbers = new FenceNumbers()
  const fence = numbers.of(geofenceId)
  const index = FenceIndex.empty().with({ add: [{ fence, shape: makeShape(shape) }] })
  const inForce = { geofenceId, revision: 0, geofenceGroupId, laneKey: group.laneKey, shapeVersion: 1 }
  return new Fences({
    organizationId,
    through: 0,
    numbers,
    chunks: [[inForce]],
    groups: new Map([[geofenceGroupId, group]]),
    lanes: [new Lane(group.laneKey, index)],
  })
}

/** Rows of history as a batch, its trackers numbered as they come. */
const batchOf = (rows: PointRows, from: number, to: number, organizationId: string): PointBatch => {
  const trackers: PointBatch['trackers'] = []
  const tracker = new Uint16Array(to - from)
  const attributes = new Map<number, string>()
  for (let row = from; row < to; row++) {
    if (row === from || !sameTracker(rows, row, rows, row - 1))
      trackers.push({ trackerId: trackerIdAt(rows, row), organizationId })
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
