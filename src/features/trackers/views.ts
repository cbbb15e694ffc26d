import { pagesOf, type TableStore } from '../../engines/table-store.ts'
import { breathe } from '../../kernel/breath.ts'
import { type Caller, seesHubs, type UserCaller } from '../../kernel/caller.ts'
import type { Row, TableDeclaration } from '../../kernel/table.ts'
import { charsOf, lowerCase, textFault } from '../../kernel/text.ts'
import { isDerived } from '../../kit/commands/ids.ts'
import { ABSENT_VALUE } from '../../kit/http/list-query.ts'
import type { TrackerValues } from './events.ts'

export const TRACKERS_TABLE = 'trackers'
export const INGEST_KEYS_TABLE = 'ingestKeys'

/** A tracker as stored in its table; clients see it without `keyHash` and `hubIds`. */
export type TrackerRow = Row &
  TrackerValues & {
    _id: string
    organizationId: string
    version: number
    createdAt: string
    updatedAt: string
    /** All hubs whose users see it: its own, or for a phone those of its user. */
    hubIds: string[]
    /** Hubs of its user: they decide which callers with the permission see the user. */
    userHubIds?: string[]
    /** User whose phone it is. */
    ownerId?: string
  }

/** Hubs and names of users, for their phones. */
export const TRACKER_USERS: TableDeclaration = { name: 'tracker-users', version: 2 }

export type TrackerUserRow = Row & { hubIds: string[]; name?: string }

/** Name of phones before they got the names of their users. */
const FORMER_NAME = 'Phone'

/** Whether a phone still has its user's name. */
export const isNamedAfterUser = ({
  _id,
  kind,
  userId,
  name,
  externalId,
  isNamedAfterUser: said,
}: TrackerRow): boolean =>
  kind === 'phone' &&
  userId !== undefined &&
  (said ?? (name === FORMER_NAME && externalId === undefined && isDerived(_id)))

/** Trackers that are or were somebody's phone: including deleted ones, until they are erased. */
export const USER_PHONES: TableDeclaration = {
  name: 'user-phones',
  version: 1,
  equality: ['userId', 'trackerId'],
}

export type UserPhoneRow = Row & { userId: string; trackerId: string }

/** Credentials of trackers by the id before the dot, without organization. */
export const DEVICE_KEYS: TableDeclaration = { name: 'device-keys', version: 1 }

/** Credentials of gateways, likewise. */
export const GATEWAY_KEYS: TableDeclaration = { name: 'gateway-keys', version: 1 }

export type DeviceKeyRow = Row & {
  kind: 'tracker' | 'ingestKey'
  organizationId: string
  keyHash: string
  autoCreate?: boolean
  hubId?: string
}

const PAGE_ROWS = 500

/** A tracker that may receive points. `mark` and `index` are scratch members for building batches. */
export interface KnownTracker {
  /** UUID, lower case. */
  trackerId: string
  organizationId: string
  externalId?: string
  /** The only hub that it belongs to; absent if that needs a lookup (a phone has the hubs of its user). */
  hub?: { hubId?: string }
  partition: number
  mark: number
  index: number
}

/** Names of a point's tracker; neither with the credential of a tracker or a user. */
export interface TrackerName {
  trackerId?: string
  externalId?: string
}

export type TrackerRefusal = 'unknown_tracker' | 'forbidden_tracker' | 'tracker_limit' | 'invalid'

export const EXTERNAL_ID_LENGTH_MAX = 200

/** Counted only where it may be: it is asked for each point. */
export const isTooLong = (externalId: string): boolean =>
  externalId.length > EXTERNAL_ID_LENGTH_MAX && charsOf(externalId) > EXTERNAL_ID_LENGTH_MAX

/** Reason why a name is `invalid`, with the path of its field. */
export const nameFault = ({ trackerId, externalId }: TrackerName): string => {
  if (trackerId !== undefined || externalId === undefined) return '/trackerId or /externalId must name one tracker'
  if (isTooLong(externalId) || externalId === '')
    return `/externalId must have 1 to ${EXTERNAL_ID_LENGTH_MAX} characters`
  return `/externalId ${textFault(externalId, 'key')}`
}

/** Resolves a point's tracker, for the credential that it came with. */
export interface TrackerResolver {
  /** Synchronous; undefined if it needs a lookup or a creation. */
  known(
    caller: Caller,
    trackerId: string | undefined,
    externalId: string | undefined,
  ): KnownTracker | TrackerRefusal | undefined
  /** Looks up trackers, or creates them if allowed, in the order of the names. @throws Failure engine_down. */
  resolve(caller: Caller, names: readonly TrackerName[]): Promise<(KnownTracker | TrackerRefusal)[]>
  /** Resolves when lists have the trackers that `resolve` created. */
  listed(): Promise<void>
}

/** Most trackers that a filter names. */
export const TRACKERS_ASKED = { isAlwaysThere: true, most: 1_000 }

/** Filters by trackers, with the fields of a tracker's row that they compare. */
const COMPARED = { userId: 'userId', vehicleId: 'vehicleId', hubId: 'hubIds', teamId: 'teamId' } as const
export type ComparedField = (typeof COMPARED)[keyof typeof COMPARED]

export type TrackersAsked = { readonly [filter in 'trackerId' | keyof typeof COMPARED]?: readonly string[] }

/** Trackers among these that satisfy every filter; undefined for all. */
export const trackersAsked = async (
  trackersOf: (organizationId: string, field: ComparedField, ids: readonly string[]) => Promise<readonly string[]>,
  organizationId: string,
  asked: TrackersAsked,
  visible: 'all' | readonly string[] = 'all',
): Promise<string[] | undefined> => {
  const lists = visible === 'all' ? [] : [visible]
  if (asked.trackerId !== undefined) lists.push(lowerCase(asked.trackerId))
  for (const [filter, field] of Object.entries(COMPARED)) {
    const ids = asked[filter as keyof typeof COMPARED]
    if (ids !== undefined) lists.push(await trackersOf(organizationId, field, lowerCase(ids)))
  }
  const [first, ...others] = lists.map((list) => new Set(list)).sort((a, b) => a.size - b.size)
  return first && [...first].filter((id) => others.every((other) => other.has(id)))
}

/** Members of a tracker besides its points that the live view shows or filters by. */
export interface TrackerFacts {
  name: string
  hubIds: readonly string[]
  teamId?: string
  userId?: string
  userHubIds?: readonly string[]
  vehicleId?: string
  /** User whose phone it is: they see it whatever their role is. */
  ownerId?: string
}

/** Whether the caller sees locations of others' trackers, within their hubs. */
export const seesLocations = ({ permissions }: UserCaller): boolean => permissions.has('view/location-history')

/** Whether the caller sees the locations of a tracker. */
export const seesWhere = (
  caller: UserCaller,
  { hubIds, ownerId }: Pick<TrackerFacts, 'hubIds' | 'ownerId'>,
): boolean => (seesLocations(caller) ? seesHubs(caller, hubIds) : ownerId === caller.userId)

export const trackerLookups = (tables: Pick<TableStore, 'find' | 'scan' | 'getMany'>) => ({
  visibleTrackers: async ({
    organizationId,
    hubIds,
  }: Pick<UserCaller, 'organizationId' | 'hubIds'>): Promise<'all' | string[]> =>
    hubIds === 'all' ? 'all' : idsWhere(tables, organizationId, { hubIds }),

  /** Trackers whose positions, history and trips the caller may see: without the permission, their own phones. */
  locatedTrackers: async (caller: UserCaller): Promise<'all' | string[]> => {
    const { organizationId, hubIds, userId } = caller
    if (!seesLocations(caller)) return idsWhere(tables, organizationId, { ownerId: userId })
    return hubIds === 'all' ? 'all' : idsWhere(tables, organizationId, { hubIds })
  },

  /** Trackers of a user, vehicle, hub or team, or of any of several; `null` means those without one. */
  trackersOf: async (
    organizationId: string,
    field: ComparedField,
    id: string | readonly string[],
  ): Promise<string[]> => {
    const ids = [id].flat()
    const named = ids.filter((one) => one !== ABSENT_VALUE)
    const found = await idsWhere(tables, organizationId, { [field]: named })
    if (named.length < ids.length)
      for await (const page of pagesOf<TrackerRow>(tables, TRACKERS_TABLE, organizationId, { limit: PAGE_ROWS })) {
        await breathe()
        found.push(...page.flatMap((one) => ([one.row[field] ?? []].flat().length === 0 ? [one.id] : [])))
      }
    return found
  },

  trackerNames: async (organizationId: string, trackerIds: readonly string[]): Promise<(string | undefined)[]> => {
    const names: (string | undefined)[] = []
    for (let from = 0; from < trackerIds.length; from += PAGE_ROWS) {
      await breathe()
      const ids = trackerIds.slice(from, from + PAGE_ROWS)
      for (const row of await tables.getMany<TrackerRow>(TRACKERS_TABLE, organizationId, ids)) names.push(row?.name)
    }
    return names
  },

  /** Trackers that are, or ever were, this user's phone. */
  phonesOf: async (organizationId: string, userId: string): Promise<string[]> => {
    const ids: string[] = []
    const question = { where: { userId }, limit: PAGE_ROWS }
    for await (const page of pagesOf<UserPhoneRow>(tables, USER_PHONES.name, organizationId, question))
      ids.push(...page.map(({ row }) => row.trackerId))
    return ids
  },

  factsOfTrackers: async (organizationId: string, trackerIds: readonly string[]) => {
    const rows = await tables.getMany<TrackerRow>(TRACKERS_TABLE, organizationId, trackerIds)
    return rows.flatMap((row, i) => (row === undefined ? [] : [{ trackerId: trackerIds[i], facts: factsOf(row) }]))
  },

  async *trackerFacts(organizationId: string): AsyncGenerator<{ trackerId: string; facts: TrackerFacts }> {
    for await (const { id, row } of tables.scan<TrackerRow>(TRACKERS_TABLE, organizationId))
      yield { trackerId: id, facts: factsOf(row) }
  },
})

const factsOf = ({ name, hubIds, teamId, userId, userHubIds, vehicleId, ownerId }: TrackerRow): TrackerFacts => ({
  name,
  hubIds,
  teamId,
  userId,
  userHubIds,
  vehicleId,
  ownerId,
})

const idsWhere = async (
  tables: Pick<TableStore, 'find'>,
  organizationId: string,
  where: { [field: string]: string | readonly string[] },
): Promise<string[]> => {
  const ids: string[] = []
  if (Object.values(where).some((values) => values.length === 0)) return ids
  for await (const page of pagesOf(tables, TRACKERS_TABLE, organizationId, { where, limit: PAGE_ROWS }))
    ids.push(...page.map(({ id }) => id))
  return ids
}
