import { severalOf } from '../../kit/http/list-query.ts'
import { answered, DATE_TIME, UUID } from '../../kit/http/page-members.ts'
import { TRACKERS_ASKED } from '../trackers/views.ts'
import type { JsonSchema } from '../../kernel/json.ts'

const MEASURES: { [name: string]: JsonSchema } = {
  accuracy: { type: 'number', description: 'Metres.' },
  altitude: { type: 'number', description: 'Metres.' },
  speed: { type: 'number', description: 'Metres a second.' },
  heading: { type: 'number', description: 'Degrees clockwise from north.' },
  battery: { type: 'number', description: 'From 0 to 1.' },
}
const PLACE: { [name: string]: JsonSchema } = {
  lat: { type: 'number', description: 'Degrees, WGS 84.' },
  lng: { type: 'number', description: 'Degrees, WGS 84.' },
}
/** Parameters that select the trackers of a read of points or trips. */
export const TRACKER_FILTERS: { [name: string]: JsonSchema } = {
  trackerId: severalOf('trackerId', { ...UUID, description: 'Those of this tracker.' }, TRACKERS_ASKED),
  userId: severalOf('userId', { ...UUID, description: 'Those of the trackers that this user has now.' }),
  vehicleId: severalOf('vehicleId', { ...UUID, description: 'Those of the trackers that this vehicle has now.' }),
}

export const HUB_FILTER: { [name: string]: JsonSchema } = {
  hubId: severalOf('hubId', {
    ...UUID,
    description: 'Those of the trackers that this hub has now; phones of users who have the hub belong to it too.',
  }),
}

export const POINT_ROW = answered(
  'PointRow',
  {
    _id: { type: 'string', description: '`<trackerId>.<recordedAt in ms to the base 36>`.' },
    trackerId: UUID,
    recordedAt: DATE_TIME,
    ...PLACE,
    ...MEASURES,
    trip: { type: 'string', enum: ['start', 'finish'], description: 'An explicit boundary of a trip.' },
    attributes: {
      type: 'object',
      additionalProperties: { type: ['string', 'number', 'boolean', 'null'] },
      description: 'As sent.',
    },
  },
  [...Object.keys(MEASURES), 'trip', 'attributes'],
)

export const POSITION = answered(
  'Position',
  {
    trackerId: UUID,
    name: { type: 'string', description: 'Of the tracker.' },
    userId: { ...UUID, description: 'Whose tracker it is, for callers who may see that user.' },
    vehicleId: { ...UUID, description: 'The vehicle that it is in.' },
    recordedAt: DATE_TIME,
    ...PLACE,
    ...MEASURES,
    lastSeenAt: { ...DATE_TIME, description: 'The earlier of `recordedAt` and when the point was logged.' },
    status: { type: 'string', enum: ['online', 'stale', 'offline'], description: 'By the age of `lastSeenAt`.' },
  },
  ['userId', 'vehicleId', ...Object.keys(MEASURES)],
)

export const POINT_ROW_EXAMPLE = {
  _id: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6a.mor2ejuo',
  trackerId: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6a',
  recordedAt: '2026-05-04T09:30:00.000Z',
  lat: 52.2296756,
  lng: 21.0122287,
  accuracy: 4.5,
  speed: 11.2,
  heading: 270,
}

export const POSITION_EXAMPLE = {
  trackerId: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6a',
  name: 'Bus 12',
  recordedAt: '2026-05-04T09:30:00.000Z',
  lat: 52.2296756,
  lng: 21.0122287,
  speed: 11.2,
  lastSeenAt: '2026-05-04T09:30:00.000Z',
  status: 'online',
}
