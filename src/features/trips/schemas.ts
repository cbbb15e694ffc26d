import { answered, DATE_TIME, UUID } from '../../kit/http/page-members.ts'

export const TRIP = answered('Trip', {
  _id: UUID,
  trackerId: UUID,
  trackingToken: { type: 'string', description: 'For `GET /location-history/tracking/{token}`.' },
  state: { type: 'string', enum: ['running', 'finished'] },
  explicit: { type: 'boolean', description: 'Begun by a point with `trip: "start"`, not detected.' },
  startedAt: DATE_TIME,
  finishedAt: { type: ['string', 'null'], format: 'date-time', description: 'Null while it runs.' },
  distance: { type: 'number', description: 'Metres, so far while it runs.' },
})

export const TRIP_EXAMPLE = {
  _id: '3c0e9a52-6f3b-5c0a-8f0e-6b1f6a0c9d11',
  trackerId: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6a',
  trackingToken: 'AZDzonwefUuaVR8uPUxbagGUb1mHAHq2sS7x3kq0n2bq0vG7kO0',
  state: 'finished',
  explicit: false,
  startedAt: '2026-01-01T08:00:00.000Z',
  finishedAt: '2026-01-01T08:40:00.000Z',
  distance: 12_345.6,
}
