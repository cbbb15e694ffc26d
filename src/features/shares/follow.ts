import type { TableStore } from '../../engines/table-store.ts'
import { Failure } from '../../kernel/errors.ts'
import { NO_ORGANIZATION, type Row } from '../../kernel/table.ts'
import type { Keyring } from '../../kit/keys/keyring.ts'
import { ORGANIZATIONS_TABLE } from '../identity/views.ts'
import { LATEST_POSITIONS, type LatestPositionRow, positionOf } from '../locations/views.ts'
import { TASKS, type TaskRow } from '../tasks/views.ts'
import { TRACKERS_TABLE } from '../trackers/views.ts'
import { type Arrival, arrivalAt, visitsBefore } from './arrival.ts'
import type { Roads } from './roads.ts'
import type { Tracks } from './track.ts'
import { endOfShare, isThere, SHARE_TOKENS, SHARES, type ShareRow, type ShareTokenRow, tokenHashOf } from './views.ts'

export interface Followed {
  organization: { name: string; logo: string | null }
  task?: { title: string; state: string; window?: { from: string; to: string }; lat?: number; lng?: number }
  position?: { lat: number; lng: number; heading?: number; speed?: number; recordedAt: string }
  /** Longitude first. */
  trail?: [number, number][]
  eta?: Arrival
  /** Stops of the route before this one. */
  visitsBefore?: number
}

/** A share that has not ended, with its subject. */
export interface OpenShare {
  share: ShareRow
  organization: Row
  task?: TaskRow
}

export interface FollowServices {
  tables: Pick<TableStore, 'get' | 'getMany' | 'find'>
  keyring: Keyring
  tracks: Tracks
  /** Absent: arrivals are estimated from great circles. */
  roads?: Roads
}

/** Most trackers of one person that are considered. */
const TRACKERS_MAX = 50
const LAST_MINUTES_MS = 10 * 60_000

/** The share of a token; undefined if it ended, was deleted, or never existed. */
export const findShare = async (
  { tables, keyring }: FollowServices,
  token: string,
  now: number,
): Promise<OpenShare | undefined> => {
  const hash = tokenHashOf(keyring, token)
  const known = hash && (await tables.get<ShareTokenRow>(SHARE_TOKENS.name, NO_ORGANIZATION, hash))
  if (!known) return undefined
  const { organizationId, shareId } = known
  const share = await tables.get<ShareRow>(SHARES, organizationId, shareId)
  const organization = await tables.get(ORGANIZATIONS_TABLE, organizationId, organizationId)
  if (share === undefined || organization === undefined) return undefined
  const { taskId, trackerId } = share
  const [table, id] = taskId === undefined ? [TRACKERS_TABLE, trackerId as string] : [TASKS, taskId]
  const shared = await tables.get(table, organizationId, id)
  const task = taskId === undefined ? undefined : (shared as TaskRow | undefined)
  if (!isThere(share, shared) || endOfShare(share, task) <= now) return undefined
  return { share, organization, ...(task !== undefined && { task }) }
}

/** Present content of a share. While the history does not answer, trail and arrival are left out. */
export const followedBy = async (services: FollowServices, open: OpenShare, now: number): Promise<Followed> => {
  const { organization, task } = open
  const before = task && (await visitsBefore(services.tables, task))
  const shown = {
    organization: { name: organization.name as string, logo: (organization.logo as string | undefined) ?? null },
    ...(task !== undefined && { task: taskShown(task) }),
    ...(before !== undefined && { visitsBefore: before }),
  }
  const seen = await newestOf(services, open)
  if (seen === undefined) return shown
  const { lat, lng, heading, speed, recordedAt } = positionOf(seen.row, { name: '' }, 'online')
  const position = {
    ...{ lat, lng, recordedAt },
    ...(heading !== undefined && { heading }),
    ...(speed !== undefined && { speed }),
  }
  const [trail, eta] = await Promise.all([trailOf(services, open, seen, now), etaOf(services, open, seen, now)])
  return { ...shown, position, ...(trail !== undefined && { trail }), ...(eta !== undefined && { eta }) }
}

const taskShown = ({ title, state, window, lat, lng }: TaskRow): NonNullable<Followed['task']> => ({
  title,
  state,
  ...(window !== undefined && { window: { from: window.from, to: window.to } }),
  ...(lat !== undefined && lng !== undefined && { lat, lng }),
})

/** The newest position that may be shown, and the start of the time shown. */
interface Seen {
  row: LatestPositionRow
  /** ms since the epoch: nothing earlier is shown. */
  since: number
}

/** For a task: the position of its starter, while it is in progress and from its start on. */
const newestOf = async ({ tables }: FollowServices, { share, task }: OpenShare): Promise<Seen | undefined> => {
  const { organizationId, trackerId, createdAt } = share
  if (task === undefined) {
    const row = await tables.get<LatestPositionRow>(LATEST_POSITIONS.name, organizationId, trackerId as string)
    return row && { row, since: Date.parse(createdAt) }
  }
  const { state, startedAt, startedBy } = task
  if (state !== 'inProgress' || startedAt === undefined || startedBy === undefined) return undefined
  const since = Date.parse(startedAt)
  const ids = await trackersOf(tables, organizationId, startedBy)
  const rows =
    ids.length === 0 ? [] : await tables.getMany<LatestPositionRow>(LATEST_POSITIONS.name, organizationId, ids)
  const row = rows.reduce(
    (newest, one) =>
      one !== undefined && one.recordedAt >= since && one.recordedAt > (newest?.recordedAt ?? 0) ? one : newest,
    undefined,
  )
  return row && { row, since }
}

/** Trackers of a user, and of the vehicles that they drive. */
const trackersOf = async (
  tables: Pick<TableStore, 'find'>,
  organizationId: string,
  userId: string,
): Promise<string[]> => {
  const idsIn = async (table: string, where: { [field: string]: string | string[] }): Promise<string[]> =>
    (await tables.find(table, organizationId, { where, limit: TRACKERS_MAX })).rows.map(({ id }) => id)
  const vehicleId = await idsIn('vehicles', { userId })
  const own = await idsIn(TRACKERS_TABLE, { userId })
  return vehicleId.length === 0 ? own : [...new Set([...own, ...(await idsIn(TRACKERS_TABLE, { vehicleId }))])]
}

const trailOf = async (
  { tracks }: FollowServices,
  { share }: OpenShare,
  { row, since }: Seen,
  now: number,
): Promise<Followed['trail']> => {
  if (!share.showTrail) return undefined
  const { organizationId, _id } = share
  const question = { organizationId, trackerId: row.trackerId, from: since, to: now }
  const points = await answered(() => tracks.read(`trail ${_id} ${row.trackerId} ${since}`, question))
  return points?.map(({ latE7, lngE7 }) => [lngE7 / 1e7, latE7 / 1e7])
}

const etaOf = async (
  { tracks, roads }: FollowServices,
  { share, task }: OpenShare,
  { row, since }: Seen,
  now: number,
): Promise<Followed['eta']> => {
  if (task?.lat === undefined || task.lng === undefined) return undefined
  const { organizationId, _id } = share
  const name = `${_id} ${row.trackerId} ${since}`
  const goal = { lat: task.lat, lng: task.lng }
  return arrivalAt(goal, row, { now, roads, name: `${name} ${goal.lat} ${goal.lng}` }, () => {
    const from = Math.max(since, now - LAST_MINUTES_MS)
    return answered(() => tracks.read(`speed ${name}`, { organizationId, trackerId: row.trackerId, from, to: now }))
  })
}

/** Answer of the history; undefined while it fails, because the rest can be shown without. */
const answered = async <Answer>(ask: () => Promise<Answer>): Promise<Answer | undefined> => {
  try {
    return await ask()
  } catch (error) {
    if (error instanceof Failure && error.status >= 500) return undefined
    throw error
  }
}
