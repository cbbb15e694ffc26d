import type { HistoryReader } from '../../engines/history-store.ts'
import type { TableStore } from '../../engines/table-store.ts'
import type { UserCaller } from '../../kernel/caller.ts'
import { invalid } from '../../kernel/errors.ts'
import type { JsonSchema } from '../../kernel/json.ts'
import { lowerCase } from '../../kernel/text.ts'
import { chosenFields } from '../../kit/http/list-query.ts'
import { userOf } from '../../kit/http/request-context.ts'
import { type Reply, type Route, route, type RouteRequest } from '../../kit/http/route.ts'
import { answerReport, type ReportFormat, type ReportRows } from './answer.ts'
import type { LimitAt, PlacesOf } from './fences.ts'
import type { Per } from './periods.ts'
import {
  answerOf,
  EXAMPLES,
  GEOFENCE_FILTERS,
  GROUPS_OF_LIMITS,
  membersOf,
  PEOPLE_FILTERS,
  querySchema,
  SPEEDING_ROW,
  STOP_ROW,
  SUMMARY_ROW,
  TASK_ROW,
  TIME_ZONE,
  timesOf,
  TRACKER_FILTERS,
  VISIT_ROW,
} from './schemas.ts'
import { reportBounds, scopeOf, type ScopeQuery } from './scope.ts'
import { speedingRows } from './speeding.ts'
import { stopRows } from './stops.ts'
import { type NamesOf, summaryRows } from './summary.ts'
import { type GroupBy, taskRows } from './task-report.ts'
import { visitRows } from './visits.ts'

export interface ReportServices {
  history: HistoryReader
  tables: Pick<TableStore, 'find' | 'getMany' | 'scan'>
  /** Trackers visible to the caller. */
  visibleTrackers(caller: UserCaller): Promise<'all' | readonly string[]>
  trackerNames: NamesOf
  timeZoneOf(organizationId: string): Promise<string>
  /** Points further apart make no leg. */
  gapMs: number
  seesGeofences(caller: UserCaller): boolean
  placesOf(organizationId: string): PlacesOf
  limitsOf(organizationId: string, groupIds: readonly string[]): Promise<LimitAt>
}

type Common = ScopeQuery & {
  timeZone?: string
  format?: ReportFormat
  limit?: number
  cursor?: string
  fields?: string
}

interface Report<Query> {
  name: string
  operationId: string
  summary: string
  description?: string
  permission?: string
  row: JsonSchema
  example: unknown
  own: { [name: string]: JsonSchema }
  /** `timeZone` is the requested one, else the organization's. */
  rows(request: RouteRequest<Query>, caller: UserCaller, timeZone: string): Promise<ReportRows>
}

export const reportRoutes = (services: ReportServices): Route[] => [
  summaryRoute(services),
  stopsRoute(services),
  visitsRoute(services),
  speedingRoute(services),
  tasksRoute(services),
]

const reportRoute = <Query extends Common>(services: ReportServices, report: Report<Query>): Route =>
  route<Query>({
    method: 'GET',
    path: `/reports/${report.name}`,
    operationId: report.operationId,
    summary: report.summary,
    description: report.description,
    tag: 'Reports',
    access: { permission: report.permission ?? 'view/location-history' },
    query: querySchema({ ...report.own, timeZone: TIME_ZONE }),
    answers: { 200: answerOf(report.row, report.example) },
    handler: (request) => answered(services, report, request),
  })

const answered = async <Query extends Common>(
  services: ReportServices,
  report: Report<Query>,
  request: RouteRequest<Query>,
): Promise<Reply> => {
  const { query, signal } = request
  const { format = 'json', limit, cursor, fields } = query
  const columns = membersOf(report.row)
  const members = chosenFields(columns, fields, columns[0]) ?? columns
  const caller = userOf(request)
  const timeZone = query.timeZone ?? (await services.timeZoneOf(caller.organizationId))
  const rows = await report.rows(request, caller, timeZone)
  const times = timesOf(report.row)
  return answerReport({ name: report.name, members, format, limit, cursor, query, times, timeZone }, rows, signal)
}

const summaryRoute = (services: ReportServices): Route =>
  reportRoute<Common & { per?: Per }>(services, {
    name: 'summary',
    operationId: 'reportSummary',
    summary: 'Sum what each tracker drove, by day, week, month or in all',
    row: SUMMARY_ROW,
    example: EXAMPLES.summary,
    own: {
      per: { type: 'string', enum: ['day', 'week', 'month', 'total'], default: 'day', description: 'What a row sums.' },
      ...TRACKER_FILTERS,
    },
    rows: async ({ query }, caller, timeZone) => {
      const scope = await scopeOf(services.tables, services.visibleTrackers, caller, query)
      const question = { per: query.per ?? 'day', timeZone, gapMs: services.gapMs }
      return (after, signal) => summaryRows(services.history, services.trackerNames, scope, question, after, signal)
    },
  })

const stopsRoute = (services: ReportServices): Route =>
  reportRoute<Common & { minSeconds?: number; radiusMeters?: number }>(services, {
    name: 'stops',
    operationId: 'reportStops',
    summary: 'List where trackers stopped',
    description: 'The longest stretches of points within the radius of their first one.',
    row: STOP_ROW,
    example: EXAMPLES.stops,
    own: {
      minSeconds: {
        type: 'number',
        minimum: 1,
        maximum: 86_400,
        default: 300,
        description: 'Shorter ones are left out.',
      },
      radiusMeters: {
        type: 'number',
        minimum: 1,
        maximum: 10_000,
        default: 100,
        description: 'Around the first point of a stop.',
      },
      ...TRACKER_FILTERS,
    },
    rows: async ({ query }, caller) => {
      const { minSeconds = 300, radiusMeters = 100 } = query
      const scope = await scopeOf(services.tables, services.visibleTrackers, caller, query)
      const places = services.seesGeofences(caller) ? services.placesOf(caller.organizationId) : undefined
      return (after, signal) => stopRows(services.history, places, scope, { minSeconds, radiusMeters }, after, signal)
    },
  })

const visitsRoute = (services: ReportServices): Route =>
  reportRoute<Common & { geofenceId?: string[]; geofenceGroupId?: string[] }>(services, {
    name: 'visits',
    operationId: 'reportVisits',
    summary: 'List stays in geofences, from entry to leave',
    description:
      'Those that reach into the time between `from` and `to`. A caller who may not see geofences gets none.',
    row: VISIT_ROW,
    example: EXAMPLES.visits,
    own: { ...GEOFENCE_FILTERS, ...TRACKER_FILTERS },
    rows: async ({ query, now }, caller) => {
      const { geofenceId, geofenceGroupId } = query
      const scope = await scopeOf(services.tables, services.visibleTrackers, caller, query)
      if (!services.seesGeofences(caller) || scope.trackerIds.length === 0) return nothing
      const filter = {
        ...scope,
        geofenceIds: geofenceId && lowerCase(geofenceId),
        geofenceGroupIds: geofenceGroupId && lowerCase(geofenceGroupId),
      }
      const limit = query.limit ?? (query.format === 'json' ? 500 : undefined)
      return (after, signal) => visitRows(services.history, filter, now, { after, limit }, signal)
    },
  })

async function* nothing(): AsyncGenerator<never[]> {
  // No rows.
}

const speedingRoute = (services: ReportServices): Route =>
  reportRoute<Common & { speedLimit?: number; geofenceGroupId?: string[] }>(services, {
    name: 'speeding',
    operationId: 'reportSpeeding',
    summary: 'List where trackers were faster than a limit',
    description:
      'Takes `speedLimit` or `geofenceGroupId`. The speed is the reported one; where a point has none, that from the point before it.',
    row: SPEEDING_ROW,
    example: EXAMPLES.speeding,
    own: {
      speedLimit: { type: 'number', exclusiveMinimum: 0, maximum: 1_000, description: 'Metres a second.' },
      geofenceGroupId: GROUPS_OF_LIMITS,
      ...TRACKER_FILTERS,
    },
    rows: async ({ query }, caller) => {
      const { speedLimit, geofenceGroupId } = query
      if ((speedLimit === undefined) === (geofenceGroupId === undefined))
        throw invalid('/speedLimit', 'must be sent, or geofenceGroupId in its place')
      const scope = await scopeOf(services.tables, services.visibleTrackers, caller, query)
      if (geofenceGroupId !== undefined && !services.seesGeofences(caller)) return nothing
      const limitAt =
        geofenceGroupId === undefined
          ? () => ({ limit: speedLimit as number })
          : await services.limitsOf(caller.organizationId, lowerCase(geofenceGroupId))
      const rules = { limitAt, gapMs: services.gapMs }
      return (after, signal) => speedingRows(services.history, scope, rules, after, signal)
    },
  })

const tasksRoute = (services: ReportServices): Route =>
  reportRoute<Common & { groupBy?: GroupBy }>(services, {
    name: 'tasks',
    operationId: 'reportTasks',
    summary: 'Count what became of tasks, by assignee, hub, team, flow or day',
    description:
      'What happened from `from` to `to` counts, each by its own time. A task of several users counts for each.',
    permission: 'view/task',
    row: TASK_ROW,
    example: EXAMPLES.tasks,
    own: {
      groupBy: {
        type: 'string',
        enum: ['assigneeId', 'hubId', 'teamId', 'flowId', 'day'],
        default: 'assigneeId',
        description: 'What a row counts.',
      },
      ...PEOPLE_FILTERS,
    },
    rows: async ({ query }, caller, timeZone) => {
      const { groupBy = 'assigneeId', userId, hubId, teamId } = query
      const question = {
        ...reportBounds(query),
        groupBy,
        timeZone,
        assigneeIds: userId && lowerCase(userId),
        hubIds: hubId && lowerCase(hubId),
        teamIds: teamId && lowerCase(teamId),
      }
      return (after, signal) => taskRows(services.tables, caller, question, after, signal)
    },
  })
