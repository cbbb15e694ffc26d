import { pagesOf, type TableStore } from '../../engines/table-store.ts'
import type { UserCaller } from '../../kernel/caller.ts'
import { invalid } from '../../kernel/errors.ts'
import { timeBounds } from '../../kit/http/time-parameter.ts'
import { TRACKERS_TABLE } from '../trackers/views.ts'
import type { ReportScope } from './tracker-walk.ts'

/** Trackers and times of a request. */
export interface ScopeQuery {
  from: string
  to: string
  trackerId?: string[]
  userId?: string[]
  vehicleId?: string[]
  hubId?: string[]
  teamId?: string[]
}

const DAYS_MAX = 400
const DAY_MS = 86_400_000
const PAGE_ROWS = 500

/** Filters, with the fields of a tracker's row that they compare. */
const FIELDS = { userId: 'userId', vehicleId: 'vehicleId', hubId: 'hubIds', teamId: 'teamId' } as const

/** Requested trackers and times that the caller may see. @throws Failure invalid for times invalid or too far apart. */
export const scopeOf = async (
  tables: Pick<TableStore, 'find'>,
  visibleTrackers: (caller: UserCaller) => Promise<'all' | readonly string[]>,
  caller: UserCaller,
  query: ScopeQuery,
): Promise<ReportScope> => {
  const { organizationId } = caller
  const bounds = reportBounds(query)
  const lists: (readonly string[])[] = []
  if (query.trackerId !== undefined) lists.push(idsOf(query.trackerId))
  for (const [name, field] of Object.entries(FIELDS)) {
    const values = query[name as keyof typeof FIELDS]
    if (values !== undefined) lists.push(await trackersWhere(tables, organizationId, field, idsOf(values)))
  }
  const visible = await visibleTrackers(caller)
  if (visible !== 'all') lists.push(visible)
  const [first, ...others] = lists.map((list) => new Set(list))
  const trackerIds = first === undefined ? 'all' : [...first].filter((id) => others.every((other) => other.has(id)))
  return { organizationId, trackerIds, ...bounds }
}

/** Bounds of a report, inclusive, ms since the epoch. */
export const reportBounds = (query: { from: string; to: string }): { from: number; to: number } => {
  const { from, to } = timeBounds(query) as { from: number; to: number }
  if (to - from > DAYS_MAX * DAY_MS) throw invalid('/to', `must be at most ${DAYS_MAX} days after from`)
  return { from, to }
}

export const idsOf = (values: readonly string[]): string[] => values.map((one) => one.toLowerCase())

const trackersWhere = async (
  tables: Pick<TableStore, 'find'>,
  organizationId: string,
  field: string,
  values: readonly string[],
): Promise<string[]> => {
  const ids: string[] = []
  const question = { where: { [field]: values }, limit: PAGE_ROWS }
  for await (const page of pagesOf(tables, TRACKERS_TABLE, organizationId, question))
    ids.push(...page.map(({ id }) => id))
  return ids
}
