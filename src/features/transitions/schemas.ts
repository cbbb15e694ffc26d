import { answered, DATE_TIME, UUID } from '../../kit/http/page-members.ts'
import { POINT_ROW, POINT_ROW_EXAMPLE } from '../locations/schemas.ts'

/** An entry into or exit from a geofence, as every answer shows it. */
export const TRANSITION = answered('Transition', {
  _id: UUID,
  trackerId: UUID,
  geofenceId: UUID,
  geofenceGroupId: UUID,
  type: { type: 'string', enum: ['entry', 'leave'] },
  at: DATE_TIME,
  cause: {
    type: 'string',
    enum: ['point', 'geofence', 'tracker'],
    description: 'A fix, an edit of the geofence, or the deletion of the tracker.',
  },
  point: POINT_ROW,
})

export const TRANSITION_EXAMPLE = {
  _id: '5d6a4c1e-29c6-5a0f-8d6e-6f0a3f0f9a01',
  trackerId: POINT_ROW_EXAMPLE.trackerId,
  geofenceId: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6b',
  geofenceGroupId: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6c',
  type: 'entry',
  at: POINT_ROW_EXAMPLE.recordedAt,
  cause: 'point',
  point: POINT_ROW_EXAMPLE,
}
