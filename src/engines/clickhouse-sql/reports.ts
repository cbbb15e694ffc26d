import type { HistoryParameters } from '../history-store.ts'
import { POINTS, TRANSITIONS, TRIPS } from './history-tables.ts'
import { timeOf } from './layout.ts'
import { type LegRules, periodsOf, stepsOf, WAS_NOT_AHEAD } from './legs.ts'
import { LATE, type LateRange, STEP_MS, STEPS, within } from './point-steps.ts'
import type { Statement } from './points.ts'

/** Trackers whose points are summed, and the time; both bounds inclusive, ms since the epoch. */
export interface ReportFilter {
  organizationId: string
  /** Lower-case UUIDs. */
  trackerIds: readonly string[]
  from: number
  to: number
}

const FINAL_SETTINGS = 'SETTINGS do_not_merge_across_partitions_select_final = 1, prefer_column_name_to_alias = 1'
/** Range of steps that are summed already, except late ones. */
export interface RolledUp {
  /** ms since the epoch; the beginnings of steps. */
  from: number
  /** Exclusive. */
  to: number
  late: readonly LateRange[]
}

/**
 * Driven distance and time of each tracker in each period that begins at one of `starts` (ms since the epoch,
 * ascending, the first not after `from`): from steps that are rolled up, and from the points of all others.
 */
export const sumPeriods = (
  filter: ReportFilter,
  rules: LegRules,
  starts: readonly number[],
  rolled?: RolledUp,
): Statement => {
  const { conditions, parameters } = pointsOf(filter)
  Object.assign(parameters, rules, { starts })
  const steps = rolled === undefined ? stepsOf(conditions) : rolledAndOthers(conditions, rolled, parameters)
  return {
    sql: `SELECT toString(trackerId) AS tracker, * EXCEPT trackerId FROM (${periodsOf(steps)})
      ORDER BY trackerId, period ${FINAL_SETTINGS}`,
    parameters,
  }
}

const rolledAndOthers = (points: string, { from, to, late }: RolledUp, parameters: HistoryParameters): string => {
  const times = [`recordedAt < ${timeOf('rolledFrom')}`, `recordedAt >= ${timeOf('rolledTo')}`]
  const steps = [`at >= ${timeOf('rolledFrom')}`, `at < ${timeOf('rolledTo')}`]
  Object.assign(parameters, { rolledFrom: from, rolledTo: to })
  if (late.length > 0) {
    const latePoints = within('recordedAt', late)
    Object.assign(parameters, latePoints.parameters)
    times.push(latePoints.condition)
    steps.push(`NOT (${within('at', late).condition})`)
  }
  return `SELECT trackerId, intDiv(toUnixTimestamp64Milli(at), {stepMs:Int64}) AS step, firstAt, lastAt, firstLat, firstLng,
      lastLat, lastLng, firstHasSpeed, meters, drivenMeters, drivingMs, stoppedMs, maxSpeed FROM ${STEPS} FINAL
    WHERE organizationId = {organization:UUID} AND trackerId IN {trackers:Array(UUID)} AND ${steps.join(' AND ')}
    UNION ALL ${stepsOf(`${points} AND (${times.join(' OR ')})`)}`
}

export const selectLate = ({ organizationId, trackerIds, from, to }: ReportFilter, limit: number): Statement => ({
  sql: `SELECT toString(organizationId) AS organizationId, toString(trackerId) AS trackerId, toUnixTimestamp64Milli(at) AS at
    FROM (SELECT organizationId, trackerId, at FROM ${LATE} WHERE organizationId = {organization:UUID}
      AND trackerId IN {trackers:Array(UUID)} AND at >= ${timeOf('from')} AND at < ${timeOf('to')}
      GROUP BY organizationId, trackerId, at ORDER BY organizationId, trackerId, at LIMIT {limit:UInt64})
    ORDER BY organizationId, trackerId, at SETTINGS prefer_column_name_to_alias = 1`,
  parameters: { organization: organizationId, trackers: trackerIds, from, to, limit },
})

/** Number of trips of each tracker that began in each period. */
export const countTrips = (
  { organizationId, trackerIds, from, to }: ReportFilter,
  starts: readonly number[],
): Statement => ({
  sql: `SELECT trackerId AS tracker, roundDown(toUnixTimestamp64Milli(startedAt), CAST({starts:Array(Int64)}, 'Array(Int64)')) AS period, count() AS trips
    FROM ${TRIPS} FINAL WHERE organizationId = {organization:String} AND trackerId IN {trackers:Array(String)}
    AND startedAt >= ${timeOf('from')} AND startedAt <= ${timeOf('to')} GROUP BY tracker, period ${FINAL_SETTINGS}`,
  parameters: { organization: organizationId, trackers: trackerIds, from, to, starts },
})

/** Points that reports walk in order: not those ahead of the clock, by tracker and time. */
export const selectForReport = (filter: ReportFilter): Statement => {
  const { conditions, parameters } = pointsOf(filter)
  return {
    sql: `SELECT trackerId, recordedAt, latE7, lngE7, flags, speedCms FROM ${POINTS} FINAL WHERE ${conditions}
      ORDER BY organizationId, trackerId, recordedAt ${FINAL_SETTINGS}, max_block_size = 8192`,
    parameters,
  }
}

/** The next trackers, in the engine's order, with points between the bounds; steps are rolled up through `rolledTo`. */
export const selectTrackers = (
  { organizationId, from, to }: Omit<ReportFilter, 'trackerIds'>,
  after: string,
  limit: number,
  rolledTo: number,
): Statement => {
  const whose = 'organizationId = {organization:UUID} AND trackerId > {after:UUID}'
  const inStep = `at >= ${timeOf('firstStep')} AND at <= ${timeOf('to')}`
  const select = (table: string, when: string): string =>
    `SELECT trackerId FROM ${table} WHERE ${whose} AND ${when} GROUP BY trackerId ORDER BY trackerId LIMIT {limit:UInt64}`
  return {
    sql: `SELECT toString(trackerId) AS tracker FROM (${select(STEPS, inStep)}
      UNION ALL ${select(LATE, inStep)}
      UNION ALL ${select(POINTS, `recordedAt >= ${timeOf('since')} AND recordedAt <= ${timeOf('to')}`)})
      GROUP BY trackerId ORDER BY trackerId LIMIT {limit:UInt64} SETTINGS optimize_aggregation_in_order = 1`,
    parameters: {
      organization: organizationId,
      firstStep: from - STEP_MS,
      since: Math.max(from, rolledTo),
      to,
      after,
      limit,
    },
  }
}

const pointsOf = ({
  organizationId,
  trackerIds,
  from,
  to,
}: ReportFilter): { conditions: string; parameters: HistoryParameters } => ({
  conditions: `organizationId = {organization:UUID} AND trackerId IN {trackers:Array(UUID)}
    AND recordedAt >= ${timeOf('from')} AND recordedAt <= ${timeOf('to')} AND ${WAS_NOT_AHEAD}`,
  parameters: { organization: organizationId, trackers: trackerIds, from, to },
})

export interface VisitFilter {
  organizationId: string
  trackerIds: 'all' | readonly string[]
  geofenceIds?: readonly string[]
  geofenceGroupIds?: readonly string[]
  from: number
  to: number
}

export interface VisitPlace {
  trackerId: string
  enteredAt: number
  geofenceId: string
}

/**
 * Stays in geofences that reach into the time between the bounds: from an entry to the next leave, whose time is 0
 * where there is none up to the end. The last transition of each tracker and geofence before the beginning counts too.
 */
export const selectVisits = (
  filter: VisitFilter,
  after: VisitPlace | undefined,
  limit: number | undefined,
): Statement => {
  const conditions = ['organizationId = {organization:String}']
  const parameters: HistoryParameters = { organization: filter.organizationId, from: filter.from, to: filter.to }
  const among = (column: string, values: 'all' | readonly string[] | undefined): void => {
    if (values === undefined || values === 'all') return
    conditions.push(`${column} IN {${column}s:Array(String)}`)
    parameters[`${column}s`] = values
  }
  among('trackerId', filter.trackerIds)
  among('geofenceId', filter.geofenceIds)
  among('geofenceGroupId', filter.geofenceGroupIds)
  const where = conditions.join(' AND ')
  const columns = 'trackerId, geofenceId, type, toUnixTimestamp64Milli(at) AS ms, partition, revision, ordinal'
  const place = 'at, partition, revision, ordinal'
  const before = `SELECT trackerId, geofenceId, 'entry' AS type, toUnixTimestamp64Milli(max(at)) AS ms,
      toUInt16(0) AS partition, toUInt64(0) AS revision, toUInt32(0) AS ordinal
    FROM ${TRANSITIONS} FINAL WHERE ${where} AND at < ${timeOf('from')} GROUP BY trackerId, geofenceId
    HAVING argMax(type, (${place})) = 'entry'`
  const within = `SELECT ${columns} FROM ${TRANSITIONS} FINAL WHERE ${where} AND at >= ${timeOf('from')} AND at <= ${timeOf('to')}`
  const outer = ["type = 'entry'"]
  if (after !== undefined) {
    outer.push('(trackerId, ms, geofenceId) > ({afterTracker:String}, {afterMs:Int64}, {afterGeofence:String})')
    Object.assign(parameters, {
      afterTracker: after.trackerId,
      afterMs: after.enteredAt,
      afterGeofence: after.geofenceId,
    })
  }
  if (limit !== undefined) parameters.limit = limit
  return {
    sql: `SELECT trackerId, geofenceId, ms AS enteredAt, leftAt FROM (
        SELECT trackerId, geofenceId, type, ms, leadInFrame(ms, 1, toInt64(0)) OVER byTime AS leftAt
        FROM (${before} UNION ALL ${within})
        WINDOW byTime AS (PARTITION BY trackerId, geofenceId ORDER BY ms, partition, revision, ordinal
          ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING)
      ) WHERE ${outer.join(' AND ')} ORDER BY trackerId, ms, geofenceId
      ${limit === undefined ? '' : 'LIMIT {limit:UInt64}'} ${FINAL_SETTINGS}`,
    parameters,
  }
}
