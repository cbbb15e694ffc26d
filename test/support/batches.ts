import { AHEAD, type PointBatch } from '../../src/features/locations/events.ts'

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
  const count = sorted.length
  return {
    loggedAt,
    count,
    trackers: ids.map((trackerId) => ({
      trackerId,
      organizationId: sorted.find((point) => point.trackerId === trackerId)?.organizationId ?? 'org',
    })),
    tracker: Uint16Array.from(sorted, (point) => ids.indexOf(point.trackerId)),
    recordedAt: Float64Array.from(sorted, (point) => point.recordedAt),
    lat: Int32Array.from(sorted, (point) => Math.round(point.lat * 1e7)),
    lng: Int32Array.from(sorted, (point) => Math.round(point.lng * 1e7)),
    flags: Uint16Array.from(sorted, (point) => (point.ahead ? AHEAD : 0)),
    accuracy: new Int32Array(count),
    altitude: new Int32Array(count),
    speed: new Int32Array(count),
    heading: new Uint16Array(count),
    battery: new Uint8Array(count),
    attributes: new Map(),
  }
}
