// A position as it comes to the page, and as the worker hands it on.

/** As the API and the live channel say it. */
export interface LivePosition {
  trackerId: string
  name: string
  userId?: string
  vehicleId?: string
  recordedAt: string
  lat: number
  lng: number
  speed?: number
  heading?: number
  altitude?: number
  accuracy?: number
  battery?: number
  lastSeenAt: string
  status: 'online' | 'stale' | 'offline'
}

/** One position as the worker hands it over. */
export type Fix = Omit<LivePosition, 'recordedAt' | 'lastSeenAt' | 'status'> & { at: number; seenAt: number }
