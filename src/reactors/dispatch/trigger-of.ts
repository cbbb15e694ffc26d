import type { RunTrigger } from '../../features/automations/events.ts'
import type { Decision } from '../../features/transitions/events.ts'

/** The event of an automation that a decision is. */
export const triggerOf = (decision: Decision): RunTrigger => {
  const { _id: sourceId, organizationId, trackerId, point } = decision
  const subject = { type: 'tracker', id: trackerId } as const
  if (decision.kind === 'transition') {
    const { type, geofenceId, geofenceGroupId, cause, at } = decision
    return {
      sourceId,
      event: type === 'entry' ? 'onGeofenceEntry' : 'onGeofenceLeave',
      organizationId,
      subject,
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
    subject,
    at: started ? startedAt : (finishedAt ?? point.recordedAt),
    trip: { explicit, startedAt, ...(finishedAt !== undefined && { finishedAt }), distance },
    point: { ...point },
  }
}

/** How old an event was when it was logged; what an edit decided is as old as the point that it decided on. */
export const ageMs = (decision: Decision, loggedAt: number): number => {
  const { at } = triggerOf(decision)
  const fromEdit = decision.kind === 'transition' && decision.cause === 'geofence'
  return loggedAt - (fromEdit ? Math.min(at, decision.point.recordedAt) : at)
}
