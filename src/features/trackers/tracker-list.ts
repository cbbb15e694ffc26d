import type { TableStore } from '../../engines/table-store.ts'
import type { UserCaller } from '../../kernel/caller.ts'
import { invalid } from '../../kernel/errors.ts'
import type { Row } from '../../kernel/table.ts'
import {
  answerList,
  chooseFields,
  LIMIT_DEFAULT,
  LIMIT_MAX,
  type ListQuery,
  type ListShape,
} from '../../kit/http/list-query.ts'
import { nextLink } from '../../kit/http/next-link.ts'
import { formatTime } from '../../kit/http/request-context.ts'
import { listShape } from '../../kit/resource/routes.ts'
import type { Reply } from '../../kit/http/route.ts'
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
  headers?.link === undefined || fields === undefined
    ? headers
    : { ...headers, link: headers.link.replace('?', `?${new URLSearchParams({ fields })}&`) }

/** Rows with `lastSeenAt` and `status` as they are now. */
export const withStatus = async (
  { lastSeen, ages }: Pick<TrackerListServices, 'lastSeen' | 'ages'>,
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
    ...(times[i] !== undefined && { lastSeenAt: formatTime(times[i]) }),
    status: statusAt(times[i], now, ages),
  }))
}

const askPage = (
  { tables }: Pick<TrackerListServices, 'tables'>,
  { caller, query: { hubId } }: ListCall,
  query: ListQuery,
): Promise<Reply> =>
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
 * `--trackers-max`) are walked in the order asked for. The cursor is the place of the last one that was answered in that
 * order, so that none is passed over whose status stays, and the total that the first page counted.
 */
const listByStatus = async (services: TrackerListServices, call: ListCall, status: TrackerStatus): Promise<Reply> => {
  const { query, caller, now } = call
  const limit = query.limit ?? LIMIT_DEFAULT
  if (query.page !== undefined && query.cursor !== undefined)
    throw invalid('/page', 'must not be sent together with cursor')
  const start = query.cursor === undefined ? undefined : placeOf(query.cursor, status)
  const skip = start === undefined ? ((query.page ?? 1) - 1) * limit : 0
  const choose = chooseFields(declaredShape.members, query.fields)
  const { status: _status, page: _page, fields: _fields, ...rest } = query
  const data: Row[] = []
  let matches = 0
  let last: { cursor: string | undefined; rows: number } | undefined
  let cursor = start?.after
  do {
    const page = await askPage(services, call, { ...rest, limit: LIMIT_MAX, cursor })
    for (const [i, row] of (
      await withStatus(services, caller.organizationId, page.body?.data as Row[], now)
    ).entries()) {
      if (row.status !== status || matches++ < skip || data.length === limit) continue
      data.push(choose(row))
      last = { cursor, rows: i + 1 }
    }
    cursor = (page.body?.nextCursor as string | null) ?? undefined
  } while (cursor !== undefined && (start === undefined || matches <= limit))
  const total = start?.total ?? matches
  const nextCursor =
    last === undefined || matches <= skip + data.length
      ? null
      : cursorOf(status, total, await placeAfter(services, call, { ...rest, limit: last.rows, cursor: last.cursor }))
  const headers =
    nextCursor === null ? undefined : { link: nextLink('/api/v3/trackers', { ...query, limit }, nextCursor) }
  return {
    body: { data, total, page: start === undefined ? (query.page ?? 1) : null, limit, nextCursor },
    ...(headers && { headers }),
  }
}

/** The place behind the last row of a page that has others after it. */
const placeAfter = async (services: TrackerListServices, call: ListCall, query: ListQuery): Promise<string> =>
  (await askPage(services, call, query)).body?.nextCursor as string

const cursorOf = (status: TrackerStatus, total: number, after: string): string =>
  Buffer.from(`${status}:${total}:${after}`).toString('base64url')

const placeOf = (cursor: string, status: TrackerStatus): { total: number; after: string } => {
  const [itsStatus, total, after] = Buffer.from(cursor, 'base64url').toString().split(':')
  if (itsStatus !== status || !/^\d{1,9}$/.test(total ?? '') || !after)
    throw invalid('/cursor', 'is not a cursor of this list and these filters')
  return { total: Number(total), after }
}
