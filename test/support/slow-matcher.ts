import { booleanPointInPolygon } from '@turf/turf'
import type { Polygon } from 'geojson'
import { AHEAD } from '../../src/features/locations/events.ts'
import type { FenceState, Step } from './random-fleet.ts'
import { GROUPS } from './random-fleet.ts'

interface Fix {
  at: number
  lng: number
  lat: number
}

interface SlowTracker {
  lastAt: number
  /** Last decided fix by `maxAccuracy`. */
  decided: Map<number, Fix>
  inside: Set<string>
  held: Map<string, { count: number; first: Fix }>
}

export interface SlowTransition {
  step: number
  trackerId: string
  geofenceId: string
  type: string
  at: number
  cause: string
}

const EVERY = Number.POSITIVE_INFINITY

/** The same decisions, made the plainest way that there is: every fence asked for every fix, by turf. */
export const slowTransitions = (steps: readonly Step[]): SlowTransition[] => {
  const fences = new Map<string, FenceState>()
  const trackers = new Map<string, SlowTracker>()
  const made: SlowTransition[] = []
  const lanes = [...new Set([EVERY, ...Object.values(GROUPS).map(({ maxAccuracy }) => maxAccuracy ?? EVERY)])]
  const laneOf = (fence: FenceState): number => GROUPS[fence.geofenceGroupId].maxAccuracy ?? EVERY
  const holds = (fence: FenceState | undefined, fix: Fix | undefined): boolean =>
    fence?.isActive === true && fix !== undefined && booleanPointInPolygon([fix.lng, fix.lat], fence.shape as Polygon)

  const fix = (step: number, trackerId: string, point: Fix, accuracy: number): void => {
    const tracker = trackers.get(trackerId) ?? {
      lastAt: Number.NEGATIVE_INFINITY,
      decided: new Map(),
      inside: new Set(),
      held: new Map(),
    }
    trackers.set(trackerId, tracker)
    if (point.at <= tracker.lastAt) return
    tracker.lastAt = point.at
    for (const lane of lanes) {
      if (accuracy > lane) continue
      const isFirst = !tracker.decided.has(lane)
      tracker.decided.set(lane, point)
      for (const [geofenceId, fence] of fences) {
        if (laneOf(fence) !== lane) continue
        const isInside = holds(fence, point)
        if (isInside === tracker.inside.has(geofenceId)) {
          tracker.held.delete(geofenceId)
          continue
        }
        const held = tracker.held.get(geofenceId) ?? { count: 0, first: point }
        held.count++
        tracker.held.set(geofenceId, held)
        const debounce = GROUPS[fence.geofenceGroupId].debounce
        const isEnough =
          debounce === undefined ||
          isFirst ||
          held.count >= (debounce.fixes ?? EVERY) ||
          point.at - held.first.at >= (debounce.seconds ?? EVERY) * 1000
        if (!isEnough) continue
        tracker.held.delete(geofenceId)
        flip(tracker, geofenceId, isInside)
        made.push({
          step,
          trackerId,
          geofenceId,
          type: isInside ? 'entry' : 'leave',
          at: held.first.at,
          cause: 'point',
        })
      }
    }
  }

  steps.forEach((happening, step) => {
    if (happening.kind === 'deletion') {
      for (const geofenceId of trackers.get(happening.trackerId)?.inside ?? []) {
        made.push({
          step,
          trackerId: happening.trackerId,
          geofenceId,
          type: 'leave',
          at: happening.at,
          cause: 'tracker',
        })
      }
      trackers.delete(happening.trackerId)
    } else if (happening.kind === 'fences') {
      for (const { geofenceId, state } of happening.fences) {
        if (state === null) fences.delete(geofenceId)
        else fences.set(geofenceId, state)
        for (const [trackerId, tracker] of trackers) {
          const isInside = state !== null && holds(state, tracker.decided.get(laneOf(state)))
          tracker.held.delete(geofenceId)
          if (isInside === tracker.inside.has(geofenceId)) continue
          flip(tracker, geofenceId, isInside)
          made.push({
            step,
            trackerId,
            geofenceId,
            type: isInside ? 'entry' : 'leave',
            at: happening.at,
            cause: 'geofence',
          })
        }
      }
    } else {
      const { batch } = happening
      for (let i = 0; i < batch.count; i++) {
        if ((batch.flags[i] & AHEAD) !== 0) continue
        fix(
          step,
          batch.trackers[batch.tracker[i]].trackerId,
          { at: batch.recordedAt[i], lng: batch.lng[i] / 1e7, lat: batch.lat[i] / 1e7 },
          batch.accuracy[i] / 100,
        )
      }
    }
  })
  return made
}

const flip = ({ inside }: SlowTracker, geofenceId: string, isInside: boolean): void => {
  if (isInside) inside.add(geofenceId)
  else inside.delete(geofenceId)
}
