import type { PointValue, Transition } from './events.ts'

/** A stored transition, times in ms since the epoch. */
export type TransitionRow = Omit<Transition, 'kind' | 'organizationId'>

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

export const pointShown = (trackerId: string, point: PointValue): PointShown => ({
  _id: `${trackerId}.${point.recordedAt.toString(36)}`,
  trackerId,
  ...point,
  recordedAt: new Date(point.recordedAt).toISOString(),
})

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
