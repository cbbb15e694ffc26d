import { AHEAD, type PointBatch } from '../../src/features/locations/events.ts'
import { emptyBatch } from '../../src/features/locations/ingest/build-batch.ts'

export interface SimplePoint {
  trackerId: string
  organizationId?: string
  recordedAt: number
  lat: number
  lng: number
  ahead?: boolean
}

/** A batch from plain points, sorted as the log keeps them. */
export const batchOf = (points: readonly SimplePoint[], loggedAt: number): PointBatch => {
  const sorted = [...points].sort((a, b) =>
    a.trackerId < b.trackerId ? -1 : a.trackerId > b.trackerId ? 1 : a.recordedAt - b.recordedAt,
  )
  const ids = [...new Set(sorted.map((point) => point.trackerId))]
  const trackers = ids.map((trackerId) => ({
    trackerId,
    organizationId: sorted.find((point) => point.trackerId === trackerId)?.organizationId ?? 'org',
  }))
  const batch = emptyBatch(sorted.length, loggedAt, trackers)
  for (const [i, { trackerId, recordedAt, lat, lng, ahead }] of sorted.entries()) {
    batch.tracker[i] = ids.indexOf(trackerId)
    batch.recordedAt[i] = recordedAt
    batch.lat[i] = Math.round(lat * 1e7)
    batch.lng[i] = Math.round(lng * 1e7)
    if (ahead) batch.flags[i] = AHEAD
  }
  return batch
}
