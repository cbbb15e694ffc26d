import type { PointValue, Transition } from './events.ts'

/** A transition as it is stored, times in ms since the epoch. */
export type TransitionRow = Omit<Transition, 'kind' | 'organizationId'>

/** Members of a transition as it is answered. */
export const TRANSITION_MEMBERS = [
  '_id',
  'trackerId',
  'geofenceId',
  'geofenceGroupId',
  'type',
  'at',
  'cause',
  'point',
] as const

export type TransitionMember = (typeof TRANSITION_MEMBERS)[number]

/** A row of history. */
export type PointShown = Omit<PointValue, 'recordedAt'> & { _id: string; trackerId: string; recordedAt: string }

/** A point of a tracker as every answer shows it. */
export const pointShown = (trackerId: string, point: PointValue): PointShown => ({
  _id: `${trackerId}.${point.recordedAt.toString(36)}`,
  trackerId,
  ...point,
  recordedAt: new Date(point.recordedAt).toISOString(),
})

/** A transition as its GET and the live channel show it. */
export const transitionShown = ({
  _id,
  trackerId,
  geofenceId,
  geofenceGroupId,
  type,
  at,
  cause,
  point,
}: TransitionRow): { [member: string]: unknown } => ({
  _id,
  trackerId,
  geofenceId,
  geofenceGroupId,
  type,
  at: new Date(at).toISOString(),
  cause,
  point: pointShown(trackerId, point),
})
