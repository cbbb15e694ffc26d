import type { TableStore } from '../../engines/table-store.ts'
import type { UserCaller } from '../../kernel/caller.ts'
import { invalid } from '../../kernel/errors.ts'
import type { Row } from '../../kernel/table.ts'
import { answerList, chooseFields, LIMIT_DEFAULT, LIMIT_MAX, type ListQuery, type ListShape } from '../../kit/list-query.ts'
import { nextLink } from '../../kit/next-link.ts'
import { formatTime } from '../../kit/request-context.ts'
import { listShape } from '../../kit/resource-routes.ts'
import type { Reply } from '../../kit/route.ts'
import { trackerDeclaration } from './declaration.ts'
import { statusAt, type StatusAges, type TrackerStatus } from './views.ts'

/** When the last position of each tracker was taken, undefined for never seen; in the order of the ids. */
export type LastSeen = (organizationId: string, trackerIds: readonly string[]) => Promise<(number | undefined)[]>

export interface TrackerListServices {
  tables: Pick<TableStore, 'find'>
  lastSeen: LastSeen
  ages: StatusAges
}

export type TrackerListQuery = ListQuery & { hubId?: string; status?: TrackerStatus }

const { hubIds: _hubIds, ...filters } = listShape(trackerDeclaration).filters
const { hubId: _hubId, ...askedFilters } = filters

/** What the route declares: `hubId` and `status` filter too, but not by one field of the row. */
export const declaredShape: ListShape = {
  ...listShape(trackerDeclaration),
  filters: { ...filters, status: { type: 'string', enum: ['online', 'stale', 'offline'] } },
}

const askedShape: ListShape = { ...declaredShape, filters: askedFilters }

interface ListCall {
  caller: UserCaller
  query: TrackerListQuery
  now: number
}

/** A page of trackers with their status as it is now. */
export const listTrackers = async (services: TrackerListServices, call: ListCall): Promise<Reply> => {
  const { query } = call
  if (query.status !== undefined) return listByStatus(services, call, query.status)
  const reply = await askPage(services, call, { ...query, fields: undefined })
  const choose = chooseFields(declaredShape.members, query.fields)
  const data = await withStatus(services, call.caller.organizationId, reply.body?.data as Row[], call.now)
  return { ...reply, headers: linkWith(reply.headers, query.fields), body: { ...reply.body, data: data.map(choose) } }
}

/** The page was asked for without `fields`, since the status is no member of its rows; the next one is asked for with them. */
const linkWith = (headers: Reply['headers'], fields: string | undefined): Reply['headers'] =>
  headers?.link === undefined || fields === undefined ? headers : { ...headers, link: headers.link.replace('?', `?${new URLSearchParams({ fields })}&`) }

/** Rows with `lastSeenAt` and `status` as they are now. */
export const withStatus = async ({ lastSeen, ages }: Pick<TrackerListServices, 'lastSeen' | 'ages'>, organizationId: string, rows: readonly Row[], now: number): Promise<Row[]> => {
  const times = await lastSeen(organizationId, rows.map(({ _id }) => _id as string))
  return rows.map((row, i) => ({ ...row, ...(times[i] !== undefined && { lastSeenAt: formatTime(times[i]) }), status: statusAt(times[i], now, ages) }))
}

const askPage = ({ tables }: Pick<TrackerListServices, 'tables'>, { caller, query: { hubId } }: ListCall, query: ListQuery): Promise<Reply> =>
  answerList(askedShape, {
    tables,
    scope: caller.organizationId,
    caller,
    query,
    path: '/api/v3/trackers',
    where: hubId === undefined ? undefined : { hubIds: hubId },
    present: (row) => trackerDeclaration.present?.(row, { caller, now: 0 }) ?? row,
  })

/**
 * A status changes by time alone and by every point, so no index has it: the organization's trackers (at most
 * `--trackers-max`) are walked in the order asked for. The cursor is how many matches were answered already.
 */
const listByStatus = async (services: TrackerListServices, call: ListCall, status: TrackerStatus): Promise<Reply> => {
  const { query, caller, now } = call
  const limit = query.limit ?? LIMIT_DEFAULT
  if (query.page !== undefined && query.cursor !== undefined) throw invalid('/page', 'must not be sent together with cursor')
  const skip = query.cursor === undefined ? ((query.page ?? 1) - 1) * limit : offsetOf(query.cursor)
  const choose = chooseFields(declaredShape.members, query.fields)
  const { status: _status, page: _page, fields: _fields, ...rest } = query
  const data: Row[] = []
  let total = 0
  let cursor: string | undefined
  do {
    const page = await askPage(services, call, { ...rest, limit: LIMIT_MAX, cursor })
    for (const row of await withStatus(services, caller.organizationId, page.body?.data as Row[], now)) {
      if (row.status !== status) continue
      if (total >= skip && data.length < limit) data.push(choose(row))
      total++
    }
    cursor = (page.body?.nextCursor as string | null) ?? undefined
  } while (cursor !== undefined)
  const nextCursor = total > skip + data.length ? Buffer.from(`status:${skip + data.length}`).toString('base64url') : null
  const link = nextCursor === null ? undefined : nextLink('/api/v3/trackers', query, nextCursor)
  return { body: { data, total, page: query.cursor === undefined ? (query.page ?? 1) : null, limit, nextCursor }, ...(link !== undefined && { headers: { link } }) }
}

const offsetOf = (cursor: string): number => {
  const found = /^status:(\d{1,9})$/.exec(Buffer.from(cursor, 'base64url').toString())
  if (found === null) throw invalid('/cursor', 'is not a cursor of this list and these filters')
  return Number(found[1])
}
