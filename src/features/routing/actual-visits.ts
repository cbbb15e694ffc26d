import { selectStays } from '../../engines/clickhouse-sql/stays.ts'
import type { HistoryReader } from '../../engines/history-store.ts'
import type { TableStore } from '../../engines/table-store.ts'
import type { UserCaller } from '../../kernel/caller.ts'
import type { Row } from '../../kernel/table.ts'
import { severalAtOnce } from '../../kit/commands/several-at-once.ts'
import { formatTime } from '../../kit/http/request-context.ts'
import { TASKS, type TaskRow } from '../tasks/views.ts'
import { TRACKERS_TABLE } from '../trackers/views.ts'
import { rowsOf } from './check-plan.ts'
import type { RouteValues, RoutingRow, VisitValues } from './views.ts'

interface ActualServices {
  tables: Pick<TableStore, 'find' | 'getMany'>
  history: HistoryReader
}

/** A vehicle within this distance of a task is there. */
const RADIUS_METERS = 100
/** Fixes further apart belong to two stays. */
const GAP_MS = 600_000
/** Fixes this long before the dispatch and after the end count. */
const MARGIN_MS = 3_600_000
const DAYS_MAX_MS = 7 * 86_400_000
/** Fixes this long after the last planned time count: a task that stays open for weeks must not hide the drive. */
const LATE_MAX_MS = 3 * 86_400_000
const TRACKERS_MAX = 20
const AT_ONCE = 4

/** One row of `selectStays`: the fixes of a minute at a place. */
interface Minute {
  stop: number
  since: number
  until: number
}

/** A result with the times of its vehicles at its tasks, as far as the history has them. */
export const withActualVisits = async (
  services: ActualServices,
  caller: UserCaller,
  result: RoutingRow,
  now: number,
): Promise<Row> => {
  const { state, dispatchedAt, completedAt, organizationId } = result
  const isDriven = state === 'dispatched' || state === 'completed'
  if (!isDriven || dispatchedAt === undefined || !caller.permissions.has('view/location-history')) return result
  const planned = result.routes.flatMap(({ visits }) => visits.flatMap(plannedTimes)).sort((a, b) => a - b)
  const dispatched = Date.parse(dispatchedAt)
  const first = Math.min(dispatched, ...planned.slice(0, 1))
  const end = completedAt === undefined ? now : Math.min(now, Date.parse(completedAt) + MARGIN_MS)
  const to = planned.length === 0 ? end : Math.min(end, Math.max(dispatched, planned[planned.length - 1]) + LATE_MAX_MS)
  const span = { from: Math.max(first - MARGIN_MS, to - DAYS_MAX_MS), to }
  const routes = [...result.routes]
  await severalAtOnce(routes.keys(), AT_ONCE, async (i) => {
    routes[i] = await actualRoute(services, organizationId, routes[i], span)
  })
  return { ...result, routes }
}

const plannedTimes = ({ arrivalAt, departureAt }: VisitValues): number[] =>
  [arrivalAt, departureAt].flatMap((time) => (time === undefined ? [] : [Date.parse(time)]))

const actualRoute = async (
  { tables, history }: ActualServices,
  organizationId: string,
  route: RouteValues,
  span: { from: number; to: number },
): Promise<RouteValues> => {
  const trackerIds = await trackersOf(tables, organizationId, route)
  const tasks = await rowsOf<TaskRow>(
    tables,
    TASKS,
    organizationId,
    route.visits.map(({ taskId }) => taskId),
  )
  const stops = tasks.flatMap((task, visit) =>
    task?.lat === undefined || task.lng === undefined ? [] : [{ visit, lat: task.lat, lng: task.lng }],
  )
  if (trackerIds.length === 0 || stops.length === 0) return route
  const { sql, parameters } = selectStays({ organizationId, trackerIds, ...span }, stops, RADIUS_METERS)
  const minutes = await history.rows<Minute>(sql, parameters)
  const visits = [...route.visits]
  for (const [i, { visit }] of stops.entries()) {
    const stay = longestStay(minutes.filter(({ stop }) => stop === i + 1))
    if (stay === undefined) continue
    visits[visit] = {
      ...visits[visit],
      actualArrivalAt: formatTime(stay.since),
      actualDepartureAt: formatTime(stay.until),
    }
  }
  return { ...route, visits }
}

const trackersOf = async (
  tables: Pick<TableStore, 'find'>,
  organizationId: string,
  { vehicleId, userId }: RouteValues,
): Promise<string[]> => {
  const questions: { [field: string]: string }[] = [{ vehicleId }, ...(userId === undefined ? [] : [{ userId }])]
  const pages = await Promise.all(
    questions.map((where) => tables.find(TRACKERS_TABLE, organizationId, { where, limit: TRACKERS_MAX })),
  )
  return [...new Set(pages.flatMap(({ rows }) => rows.map(({ id }) => id)))]
}

/** The longest of several stays: passing by is short. */
const longestStay = (minutes: readonly Minute[]): Minute | undefined => {
  let longest: Minute | undefined
  let open: Minute | undefined
  for (const minute of minutes) {
    open = open !== undefined && minute.since - open.until <= GAP_MS ? { ...open, until: minute.until } : { ...minute }
    if (longest === undefined || open.until - open.since > longest.until - longest.since) longest = open
  }
  return longest
}
