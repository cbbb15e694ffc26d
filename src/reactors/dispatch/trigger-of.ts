import type { RunTrigger } from '../../features/automations/events.ts'
import type { Decision } from '../../features/transitions/events.ts'

/** The event of an automation that a decision is. */
export const triggerOf = (decision: Decision): RunTrigger => {
  const { _id: sourceId, organizationId, trackerId, point } = decision
  if (decision.kind === 'transition') {
    const { type, geofenceId, geofenceGroupId, cause, at } = decision
    return {
      sourceId,
      event: type === 'entry' ? 'onGeofenceEntry' : 'onGeofenceLeave',
      organizationId,
      trackerId,
      at,
      geofence: { geofenceId, geofenceGroupId, cause },
      point: { ...point },
    }
  }
  const { explicit, startedAt, finishedAt, distance } = decision
  const started = decision.kind === 'tripStarted'
  return {
    sourceId,
    event: started ? 'onStartTrip' : 'onFinishTrip',
    organizationId,
    trackerId,
    at: started ? startedAt : (finishedAt ?? point.recordedAt),
    trip: { explicit, startedAt, ...(finishedAt !== undefined && { finishedAt }), distance },
    point: { ...point },
  }
}

/** How old an event was when it was logged; what an edit decided is as old as the point that it decided on. */
export const ageMs = (decision: Decision, loggedAt: number): number => {
  const { at, point } = triggerOf(decision)
  const fromEdit = decision.kind === 'transition' && decision.cause === 'geofence'
  return loggedAt - (fromEdit ? Math.min(at, point.recordedAt) : at)
}
