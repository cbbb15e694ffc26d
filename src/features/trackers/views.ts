import type { Row, TableDeclaration } from '../../kernel/table.ts'
import type { TrackerValues } from './events.ts'

export const TRACKERS_TABLE = 'trackers'
export const INGEST_KEYS_TABLE = 'ingestKeys'

/** A tracker as its table keeps it; clients see it without `keyHash` and `hubIds`. */
export type TrackerRow = Row &
  TrackerValues & {
    _id: string
    organizationId: string
    version: number
    createdAt: string
    updatedAt: string
    /** Every hub whose users see it: its own, and for a phone those of its user. */
    hubIds: string[]
  }

/** Credentials of trackers and gateways by the id in front of the dot, without organization. */
export const DEVICE_KEYS: TableDeclaration = { name: 'device-keys', version: 1 }

export type DeviceKeyRow = Row & {
  kind: 'tracker' | 'ingestKey'
  organizationId: string
  keyHash: string
  autoCreate?: boolean
  hubId?: string
}

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
