import { TRIP_FINISH, TRIP_START, type PointBatch } from '../../features/locations/events.ts'
import type { PointValue, TripChange } from '../../features/transitions/events.ts'
import { distanceMeters } from '../../geo/distance.ts'
import { idFrom } from '../../kit/commands/ids.ts'
import { pointOfBatch } from './points.ts'
import {
  type MatcherState,
  T_ANCHOR_AT,
  T_ANCHOR_DISTANCE,
  T_ANCHOR_LAT,
  T_ANCHOR_LNG,
  T_DISTANCE,
  T_LAST_AT,
  T_LAST_LAT,
  T_LAST_LNG,
  T_TRIP_AT,
  T_TRIP_MODE,
  TRACKER_DOUBLES,
  TRACKER_INTS,
} from './state.ts'

/** Radius within which a tracker rests, or stops, around the place where that began. */
const REST_METERS = 100

const TRIP_UNKNOWN = 0
const TRIP_RESTING = 1
const TRIP_DETECTED = 2
const TRIP_EXPLICIT = 3

export interface TripRules {
  tripStopMs: number
  tripGapMs: number
}

export type TripDraft = Omit<TripChange, 'organizationId' | 'trackerId'>

/**
 * Effect of a point that is newer than its tracker's last one on trips; `previousAt` is the time of that last one. An
 * explicit trip runs from its start to a finish or the next start. Otherwise a trip begins with the first point over
 * 100 m from the place where the tracker rested, and ends where a stop began that is longer than `tripStopMs` (staying
 * within 100 m of one spot, or being silent so long that it cannot have left faster than that), or with the last point
 * before a gap that is longer than `tripGapMs`: then the tracker rested there.
 */
export const stepTrip = (
  state: MatcherState,
  slot: number,
  trackerId: string,
  batch: PointBatch,
  i: number,
  previousAt: number,
  { tripStopMs, tripGapMs }: TripRules,
  out: TripDraft[],
): void => {
  const ints = state.trackers
  const doubles = state.trackersF
  const offset = slot * TRACKER_INTS
  const offsetF = slot * TRACKER_DOUBLES
  const lat = batch.lat[i]
  const lng = batch.lng[i]
  const time = batch.recordedAt[i]
  const silentMs = time - previousAt
  if (ints[offset + T_TRIP_MODE] === TRIP_DETECTED && silentMs > tripGapMs)
    out.push(finishedBeforeGap(state, slot, trackerId, batch, i, previousAt, tripStopMs))
  const mode = ints[offset + T_TRIP_MODE]
  if (mode >= TRIP_DETECTED)
    doubles[offsetF + T_DISTANCE] += distanceMeters(ints[offset + T_LAST_LNG], ints[offset + T_LAST_LAT], lng, lat)
  ints[offset + T_LAST_LAT] = lat
  ints[offset + T_LAST_LNG] = lng
  const flags = batch.flags[i]
  if ((flags & TRIP_START) !== 0) {
    if (mode >= TRIP_DETECTED)
      out.push(finished(state, slot, trackerId, time, doubles[offsetF + T_DISTANCE], pointOfBatch(batch, i)))
    out.push(started(state, slot, trackerId, true, pointOfBatch(batch, i)))
  } else if (mode === TRIP_EXPLICIT) {
    if ((flags & TRIP_FINISH) === 0) return
    out.push(finished(state, slot, trackerId, time, doubles[offsetF + T_DISTANCE], pointOfBatch(batch, i)))
  } else if (mode === TRIP_UNKNOWN) {
    ints[offset + T_TRIP_MODE] = TRIP_RESTING
  } else {
    const away = distanceMeters(ints[offset + T_ANCHOR_LNG], ints[offset + T_ANCHOR_LAT], lng, lat)
    if (mode === TRIP_DETECTED && hasStopped(away, time - doubles[offsetF + T_ANCHOR_AT], silentMs, tripStopMs))
      out.push(finishedAtAnchor(state, slot, trackerId))
    if (away <= REST_METERS) return
    if (ints[offset + T_TRIP_MODE] === TRIP_RESTING)
      out.push(started(state, slot, trackerId, false, pointOfBatch(batch, i)))
  }
  ints[offset + T_ANCHOR_LAT] = lat
  ints[offset + T_ANCHOR_LNG] = lng
  doubles[offsetF + T_ANCHOR_AT] = time
  doubles[offsetF + T_ANCHOR_DISTANCE] = doubles[offsetF + T_DISTANCE]
}

/** The tracker is gone: its running trip, if any, finishes with its last point. */
export const endTrip = (state: MatcherState, slot: number, trackerId: string): TripDraft | undefined => {
  const offset = slot * TRACKER_INTS
  if (state.trackers[offset + T_TRIP_MODE] < TRIP_DETECTED) return undefined
  const recordedAt = state.trackersF[slot * TRACKER_DOUBLES + T_LAST_AT]
  const point = pointAt(recordedAt, state.trackers[offset + T_LAST_LAT], state.trackers[offset + T_LAST_LNG])
  return finished(state, slot, trackerId, recordedAt, state.trackersF[slot * TRACKER_DOUBLES + T_DISTANCE], point)
}

/** Start of a tracker's running trip, and its metres so far, without those that a stop may take off again. */
export const runningTripAt = (state: MatcherState, slot: number): [startedAt: number, meters: number] | undefined => {
  if (state.trackers[slot * TRACKER_INTS + T_TRIP_MODE] < TRIP_DETECTED) return undefined
  const meters = state.trackersF[slot * TRACKER_DOUBLES + T_DISTANCE]
  return [state.trackersF[slot * TRACKER_DOUBLES + T_TRIP_AT], Math.round(meters * 100) / 100]
}

/** The trip's id, derived from tracker and start. */
export const tripId = (trackerId: string, startedAt: number): string => idFrom('trip', trackerId, startedAt)

const started = (
  state: MatcherState,
  slot: number,
  trackerId: string,
  explicit: boolean,
  point: PointValue,
): TripDraft => {
  state.trackers[slot * TRACKER_INTS + T_TRIP_MODE] = explicit ? TRIP_EXPLICIT : TRIP_DETECTED
  state.trackersF[slot * TRACKER_DOUBLES + T_TRIP_AT] = point.recordedAt
  state.trackersF[slot * TRACKER_DOUBLES + T_DISTANCE] = 0
  return {
    kind: 'tripStarted',
    _id: tripId(trackerId, point.recordedAt),
    explicit,
    startedAt: point.recordedAt,
    distance: 0,
    point,
  }
}

const finished = (
  state: MatcherState,
  slot: number,
  trackerId: string,
  finishedAt: number,
  meters: number,
  point: PointValue,
): TripDraft => {
  const explicit = state.trackers[slot * TRACKER_INTS + T_TRIP_MODE] === TRIP_EXPLICIT
  const startedAt = state.trackersF[slot * TRACKER_DOUBLES + T_TRIP_AT]
  state.trackers[slot * TRACKER_INTS + T_TRIP_MODE] = TRIP_RESTING
  const distance = Math.round(meters * 100) / 100
  return { kind: 'tripFinished', _id: tripId(trackerId, startedAt), explicit, startedAt, finishedAt, distance, point }
}

/** Whether a tracker this far from its anchor stopped there: it stayed near, or was silent too long to leave sooner. */
const hasStopped = (awayMeters: number, nearMs: number, silentMs: number, tripStopMs: number): boolean =>
  awayMeters <= REST_METERS
    ? nearMs > tripStopMs
    : silentMs > tripStopMs && awayMeters * tripStopMs < REST_METERS * silentMs

/** Finishes a detected trip before a gap that ends with point i, at a stop's start or the last point, the new rest. */
const finishedBeforeGap = (
  state: MatcherState,
  slot: number,
  trackerId: string,
  batch: PointBatch,
  i: number,
  previousAt: number,
  tripStopMs: number,
): TripDraft => {
  const ints = state.trackers
  const doubles = state.trackersF
  const offset = slot * TRACKER_INTS
  const offsetF = slot * TRACKER_DOUBLES
  const away = distanceMeters(ints[offset + T_ANCHOR_LNG], ints[offset + T_ANCHOR_LAT], batch.lng[i], batch.lat[i])
  const time = batch.recordedAt[i]
  if (!hasStopped(away, time - doubles[offsetF + T_ANCHOR_AT], time - previousAt, tripStopMs)) {
    ints[offset + T_ANCHOR_LAT] = ints[offset + T_LAST_LAT]
    ints[offset + T_ANCHOR_LNG] = ints[offset + T_LAST_LNG]
    doubles[offsetF + T_ANCHOR_AT] = previousAt
    doubles[offsetF + T_ANCHOR_DISTANCE] = doubles[offsetF + T_DISTANCE]
  }
  return finishedAtAnchor(state, slot, trackerId)
}

/** Finishes a detected trip at the start of its stop; the tracker rests there. */
const finishedAtAnchor = (state: MatcherState, slot: number, trackerId: string): TripDraft => {
  const offset = slot * TRACKER_INTS
  const offsetF = slot * TRACKER_DOUBLES
  const stoppedAt = state.trackersF[offsetF + T_ANCHOR_AT]
  const point = pointAt(stoppedAt, state.trackers[offset + T_ANCHOR_LAT], state.trackers[offset + T_ANCHOR_LNG])
  return finished(state, slot, trackerId, stoppedAt, state.trackersF[offsetF + T_ANCHOR_DISTANCE], point)
}

const pointAt = (recordedAt: number, lat: number, lng: number): PointValue => ({
  recordedAt,
  lat: lat / 1e7,
  lng: lng / 1e7,
})
