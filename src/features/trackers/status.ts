import type { Row } from '../../kernel/table.ts'
import type { LastSeen } from '../locations/views.ts'

export type TrackerStatus = 'online' | 'stale' | 'offline'

/** Ages of the last sighting above which a tracker is stale and offline, ms. */
export interface StatusAges {
  staleAfterMs: number
  offlineAfterMs: number
}

/** Rows with their present `lastSeenAt` and `status`. */
export const withStatus = async (
  lastSeen: LastSeen,
  ages: StatusAges,
  organizationId: string,
  rows: readonly Row[],
  now: number,
): Promise<Row[]> => {
  const times = await lastSeen(
    organizationId,
    rows.map(({ _id }) => _id as string),
  )
  return rows.map((row, i) => ({
    ...row,
    ...(times[i] !== undefined && { lastSeenAt: new Date(times[i]).toISOString() }),
    status: statusAt(times[i], now, ages),
  }))
}

/** Trackers never seen are offline. */
export const statusAt = (lastSeenAt: number | undefined, now: number, ages: StatusAges): TrackerStatus => {
  if (lastSeenAt === undefined || now - lastSeenAt > ages.offlineAfterMs) return 'offline'
  return now - lastSeenAt > ages.staleAfterMs ? 'stale' : 'online'
}
