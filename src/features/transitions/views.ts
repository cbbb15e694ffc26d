import type { JsonSchema } from '../../kernel/json.ts'
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

/** Its schema. */
export const POINT_SCHEMA: JsonSchema = {
  type: 'object',
  description: 'A row of the location history.',
  properties: {
    _id: { type: 'string' },
    trackerId: { type: 'string', format: 'uuid' },
    recordedAt: { type: 'string', format: 'date-time' },
    lat: { type: 'number', description: 'Degrees, WGS 84.' },
    lng: { type: 'number', description: 'Degrees, WGS 84.' },
    accuracy: { type: 'number', description: 'Metres.' },
    altitude: { type: 'number', description: 'Metres.' },
    speed: { type: 'number', description: 'Metres per second.' },
    heading: { type: 'number', description: 'Degrees, clockwise from north.' },
    battery: { type: 'number', description: '0 to 1.' },
    attributes: { type: 'object', description: 'As sent.' },
  },
}

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
