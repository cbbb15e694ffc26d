import type { TableStore } from '../../engines/table-store.ts'
import { seesHubs, type UserCaller } from '../../kernel/caller.ts'
import type { Piece } from '../../kernel/records.ts'
import type { Row, TableDeclaration } from '../../kernel/table.ts'
import { HAS_ACCURACY, HAS_ALTITUDE, HAS_BATTERY, HAS_HEADING, HAS_SPEED, type PointBatch } from './events.ts'
import { timeText } from './history/point-text.ts'

/** Newest point of each tracker, by organization and tracker; never points that are late or ahead of the clock. */
export const LATEST_POSITIONS: TableDeclaration = { name: 'latest_position', version: 1 }

/** Trackers with a row there, by partition: the new owner of a partition reads only its own rows. */
export const LATEST_TRACKERS: TableDeclaration = { name: 'latest_trackers', version: 1, lives: 'partition' }

export interface LatestTrackerRow extends Row {
  organizationId: string
}

/** Checkpoint up to which rows of a partition's trackers are stored; its source is the partition's number. */
export const latestPositionCheckpoint = (partition: number): string => `latest-position-${partition}`

/** Values of a point that a position shows; units as in `PointBatch`. */
export interface LatestPoint {
  trackerId: string
  recordedAt: number
  loggedAt: number
  lat: number
  lng: number
  flags: number
  accuracy: number
  altitude: number
  speed: number
  heading: number
  battery: number
}

/**
 * The values of one point of a batch that a position shows. Created with its values at once: an object that begins with
 * zeros changes its hidden class with the first time, and all code that uses such objects is slow from then on.
 */
export const latestPointAt = (batch: PointBatch, at: number, trackerId: string): LatestPoint => ({
  trackerId,
  recordedAt: batch.recordedAt[at],
  loggedAt: batch.loggedAt,
  lat: batch.lat[at],
  lng: batch.lng[at],
  flags: batch.flags[at],
  accuracy: batch.accuracy[at],
  altitude: batch.altitude[at],
  speed: batch.speed[at],
  heading: batch.heading[at],
  battery: batch.battery[at],
})

/**
 * A newest point in a record (`kernel/records.ts`): an object for each tracker would take several times as much. Whole
 * numbers of the record; the two times stand before these as doubles. Flags and heading share one; so do the battery, in
 * the low byte, and bits of the record's owner.
 */
const P_LAT = 4
const P_LNG = 5
const P_ACCURACY = 6
const P_ALTITUDE = 7
const P_SPEED = 8
const P_FLAGS = 9
export const P_STATE = 10
/** Length of a point in a record. */
export const POINT_INTS = 11
/** Bit of the state: there is a point. */
export const HAS_POINT = 1 << 8
const BATTERY = 255

/** Keeps the point at `i` in the batch in the record at `at`. */
export const keepPoint = ({ ints, doubles }: Piece, at: number, batch: PointBatch, i: number): void => {
  doubles[at >> 1] = batch.recordedAt[i]
  doubles[(at >> 1) + 1] = batch.loggedAt
  ints[at + P_LAT] = batch.lat[i]
  ints[at + P_LNG] = batch.lng[i]
  ints[at + P_ACCURACY] = batch.accuracy[i]
  ints[at + P_ALTITUDE] = batch.altitude[i]
  ints[at + P_SPEED] = batch.speed[i]
  ints[at + P_FLAGS] = batch.flags[i] | (batch.heading[i] << 16)
  ints[at + P_STATE] = (ints[at + P_STATE] & ~BATTERY) | batch.battery[i] | HAS_POINT
}

/** The same for a point that was read. */
export const keepLatest = ({ ints, doubles }: Piece, at: number, point: LatestPoint): void => {
  doubles[at >> 1] = point.recordedAt
  doubles[(at >> 1) + 1] = point.loggedAt
  ints[at + P_LAT] = point.lat
  ints[at + P_LNG] = point.lng
  ints[at + P_ACCURACY] = point.accuracy
  ints[at + P_ALTITUDE] = point.altitude
  ints[at + P_SPEED] = point.speed
  ints[at + P_FLAGS] = point.flags | (point.heading << 16)
  ints[at + P_STATE] = (ints[at + P_STATE] & ~BATTERY) | point.battery | HAS_POINT
}

export const hasPoint = ({ ints }: Piece, at: number): boolean => (ints[at + P_STATE] & HAS_POINT) !== 0

/** Whether a point of that time is newer than the kept one, if there is any. */
export const isNewer = (piece: Piece, at: number, recordedAt: number): boolean =>
  !hasPoint(piece, at) || recordedAt > piece.doubles[at >> 1]

export const latOf = ({ ints }: Piece, at: number): number => ints[at + P_LAT]
export const lngOf = ({ ints }: Piece, at: number): number => ints[at + P_LNG]

/** Time of the kept point as `lastSeenAt` has it. */
export const seenAtKept = ({ doubles }: Piece, at: number): number => Math.min(doubles[at >> 1], doubles[(at >> 1) + 1])

/** The kept point as an object, made to be sent or stored. */
export const latestKept = ({ ints, doubles }: Piece, at: number, trackerId: string): LatestPoint => ({
  trackerId,
  recordedAt: doubles[at >> 1],
  loggedAt: doubles[(at >> 1) + 1],
  lat: ints[at + P_LAT],
  lng: ints[at + P_LNG],
  flags: ints[at + P_FLAGS] & 65_535,
  accuracy: ints[at + P_ACCURACY],
  altitude: ints[at + P_ALTITUDE],
  speed: ints[at + P_SPEED],
  heading: ints[at + P_FLAGS] >>> 16,
  battery: ints[at + P_STATE] & BATTERY,
})

/** Numbers of a kept point, in the order in which `readKept` writes them. */
export const POINT_FIELDS = [
  'recordedAt',
  'loggedAt',
  'lat',
  'lng',
  'flags',
  'accuracy',
  'altitude',
  'speed',
  'heading',
  'battery',
] as const

/** Writes the numbers of the kept point from a place on, made to be stored with many others. */
export const readKept = ({ ints, doubles }: Piece, at: number, values: Float64Array, to: number): void => {
  values[to] = doubles[at >> 1]
  values[to + 1] = doubles[(at >> 1) + 1]
  values[to + 2] = ints[at + P_LAT]
  values[to + 3] = ints[at + P_LNG]
  values[to + 4] = ints[at + P_FLAGS] & 65_535
  values[to + 5] = ints[at + P_ACCURACY]
  values[to + 6] = ints[at + P_ALTITUDE]
  values[to + 7] = ints[at + P_SPEED]
  values[to + 8] = ints[at + P_FLAGS] >>> 16
  values[to + 9] = ints[at + P_STATE] & BATTERY
}

export type LatestPositionRow = Row & LatestPoint

/** Table of the directory in which positions find their tracker. */
export const TRACKERS_TABLE = 'trackers'

/** Members of a tracker's row that a position needs. */
export type PositionTracker = Row & ShownTracker & { hubIds: string[]; teamId?: string; ownerId?: string }

/** Members of a tracker that a position shows, and those that decide who sees them. */
export interface ShownTracker {
  name: string
  userId?: string
  /** Hubs of its user. */
  userHubIds?: readonly string[]
  vehicleId?: string
}

/** Whether the caller may see the user of a tracker. */
export const seesUserOf = (
  caller: UserCaller,
  { userId, userHubIds = [] }: Pick<ShownTracker, 'userId' | 'userHubIds'>,
): boolean => userId === caller.userId || (caller.permissions.has('view/user') && seesHubs(caller, userHubIds))

/** Time of the last point or, if its clock ran ahead, the time at which it was logged. */
export const lastSeenAt = ({ recordedAt, loggedAt }: Pick<LatestPoint, 'recordedAt' | 'loggedAt'>): number =>
  Math.min(recordedAt, loggedAt)

/** Time of each tracker's last position, undefined if never seen; in the order of the ids. */
export type LastSeen = (organizationId: string, trackerIds: readonly string[]) => Promise<(number | undefined)[]>

export const lastSeenIn =
  (tables: Pick<TableStore, 'getMany'>): LastSeen =>
  async (organizationId, trackerIds) => {
    const rows = await tables.getMany<LatestPositionRow>(LATEST_POSITIONS.name, organizationId, trackerIds)
    return rows.map((row) => row && lastSeenAt(row))
  }

export interface Position {
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

/** `userId` is absent for callers that may not see the user. */
export const positionOf = (
  row: LatestPoint,
  { name, userId, vehicleId }: Pick<ShownTracker, 'name' | 'userId' | 'vehicleId'>,
  status: Position['status'],
): Position => {
  const { flags } = row
  const position: Position = {
    trackerId: row.trackerId,
    name,
    ...(userId !== undefined && { userId }),
    ...(vehicleId !== undefined && { vehicleId }),
    recordedAt: new Date(row.recordedAt).toISOString(),
    lat: row.lat / 1e7,
    lng: row.lng / 1e7,
    lastSeenAt: new Date(lastSeenAt(row)).toISOString(),
    status,
  }
  if (flags & HAS_SPEED) position.speed = row.speed / 100
  if (flags & HAS_HEADING) position.heading = row.heading / 10
  if (flags & HAS_ALTITUDE) position.altitude = row.altitude / 100
  if (flags & HAS_ACCURACY) position.accuracy = row.accuracy / 100
  if (flags & HAS_BATTERY) position.battery = row.battery / 100
  return position
}

/** The same as JSON text, written directly: a quarter less time for the live view's work on every point. */
export const positionText = (
  point: LatestPoint,
  { name, userId, vehicleId }: Pick<ShownTracker, 'name' | 'userId' | 'vehicleId'>,
  status: Position['status'],
): string => {
  let text = `{"trackerId":"${point.trackerId}","name":${JSON.stringify(name)}`
  if (userId !== undefined) text += `,"userId":"${userId}"`
  if (vehicleId !== undefined) text += `,"vehicleId":"${vehicleId}"`
  text += `,"recordedAt":"${timeText(point.recordedAt)}","lat":${point.lat / 1e7},"lng":${point.lng / 1e7}`
  if (point.flags & HAS_SPEED) text += `,"speed":${point.speed / 100}`
  if (point.flags & HAS_HEADING) text += `,"heading":${point.heading / 10}`
  if (point.flags & HAS_ALTITUDE) text += `,"altitude":${point.altitude / 100}`
  if (point.flags & HAS_ACCURACY) text += `,"accuracy":${point.accuracy / 100}`
  if (point.flags & HAS_BATTERY) text += `,"battery":${point.battery / 100}`
  return `${text},"lastSeenAt":"${timeText(lastSeenAt(point))}","status":"${status}"}`
}
