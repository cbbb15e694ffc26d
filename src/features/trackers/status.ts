export type TrackerStatus = 'online' | 'stale' | 'offline'

/** Ages of the last sight above which a tracker is stale and offline, ms. */
export interface StatusAges {
  staleAfterMs: number
  offlineAfterMs: number
}

/** Never seen is offline. */
export const statusAt = (lastSeenAt: number | undefined, now: number, ages: StatusAges): TrackerStatus => {
  if (lastSeenAt === undefined || now - lastSeenAt > ages.offlineAfterMs) return 'offline'
  return now - lastSeenAt > ages.staleAfterMs ? 'stale' : 'online'
}
