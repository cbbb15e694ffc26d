import type { Caller } from '../../kernel/caller.ts'
import { invalid } from '../../kernel/errors.ts'
import type { Row, TableDeclaration } from '../../kernel/table.ts'
import type { LastSeen } from '../locations/views.ts'
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

/** Hubs of users, for their phones. */
export const TRACKER_USERS: TableDeclaration = { name: 'tracker-users', version: 1 }

export type TrackerUserRow = Row & { hubIds: string[] }

/** Credentials of trackers by the id in front of the dot, without organization. */
export const DEVICE_KEYS: TableDeclaration = { name: 'device-keys', version: 1 }

/** The same of gateways. */
export const GATEWAY_KEYS: TableDeclaration = { name: 'gateway-keys', version: 1 }

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

/** Rows with `lastSeenAt` and `status` as they are now. */
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

/** Never seen is offline. */
export const statusAt = (lastSeenAt: number | undefined, now: number, ages: StatusAges): TrackerStatus => {
  if (lastSeenAt === undefined || now - lastSeenAt > ages.offlineAfterMs) return 'offline'
  return now - lastSeenAt > ages.staleAfterMs ? 'stale' : 'online'
}

/** A tracker that may receive points. `mark` and `index` are scratch of whoever builds a batch. */
export interface KnownTracker {
  /** UUID, lower case. */
  trackerId: string
  organizationId: string
  externalId?: string
  partition: number
  mark: number
  index: number
}

/** How a point names its tracker; neither for a credential that is a tracker's or a user's. */
export interface TrackerName {
  trackerId?: string
  externalId?: string
}

export type TrackerRefusal = 'unknown_tracker' | 'forbidden_tracker' | 'tracker_limit' | 'invalid'

/** Answers which tracker a point is of, for the credential that it came with. */
export interface TrackerResolver {
  /** Without asking anyone; undefined when that takes a lookup or a creation. */
  known(
    caller: Caller,
    trackerId: string | undefined,
    externalId: string | undefined,
  ): KnownTracker | TrackerRefusal | undefined
  /** Looks up and, where the credential allows it, makes what is not known. Answers in the order of the names. @throws Failure engine_down. */
  resolve(caller: Caller, names: readonly TrackerName[]): Promise<(KnownTracker | TrackerRefusal)[]>
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** The ids in the parameter `trackerId`, which are separated by commas. @throws Failure invalid for what is no UUID. */
export const trackerIdsOf = (text: string): string[] => {
  const ids = text.split(',').map((id) => id.trim().toLowerCase())
  if (!ids.every((id) => UUID.test(id)))
    throw invalid('/trackerId', 'must be the id of a tracker, or several separated by commas')
  return ids
}
