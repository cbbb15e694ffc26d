// A position as the page receives it, and as the worker passes it on.

/** Form of the API and the live channel. */
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

/** Form that the worker passes on. */
export type Fix = Omit<LivePosition, 'recordedAt' | 'lastSeenAt' | 'status'> & { at: number; seenAt: number }
