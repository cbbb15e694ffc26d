import { EARTH_RADIUS_METERS } from '../../geo/distance.ts'
import type { HistoryParameters } from '../history-store.ts'
import { POINTS, TRANSITIONS, TRIPS } from './history-tables.ts'
import { timeOf } from './layout.ts'
import type { Statement } from './points.ts'

/** Whose points are summed, and from when to when; both bounds inclusive, ms since the epoch. */
export interface ReportFilter {
  organizationId: string
  /** Lower-case UUIDs. */
  trackerIds: readonly string[]
  from: number
  to: number
}

/** How legs are made and summed. */
export interface LegRules {
  /** Points further apart in time make no leg. */
  gapMs: number
  /** Legs are summed in steps of so many ms since the epoch, in one of which each period begins. */
  stepMs: number
}

const FINAL_SETTINGS = 'SETTINGS do_not_merge_across_partitions_select_final = 1, prefer_column_name_to_alias = 1'
const WAS_NOT_AHEAD = 'version >= 9223372036854775808'
/** A leg is driven where it is faster than 1 m/s; slower ones are the noise of a position at rest. */
const IS_DRIVEN = 'meters * 1000 > ms'
/** The speed that a leg says where its end does not: over 100 m/s it is a wrong position. */
const speedOfLeg = 'if(ms > 0 AND meters * 10 <= ms, meters * 1000 / ms, -1)'
const RADIANS = Math.PI / 180 / 1e7

/** Great circle between two places of columns in 1e-7 degree, as `distanceMeters` has it. */
const metersBetween = (aLat: string, aLng: string, bLat: string, bLng: string): string =>
  `${2 * EARTH_RADIUS_METERS} * asin(sqrt(least(1, pow(sin((${bLat} - ${aLat}) * ${RADIANS / 2}), 2)
    + cos(${aLat} * ${RADIANS}) * cos(${bLat} * ${RADIANS}) * pow(sin((${bLng} - ${aLng}) * ${RADIANS / 2}), 2))))`

/**
 * One row for each tracker and step of these points: its first and last point, and the sums of the legs between. What a
 * leg is counted to is where it ends; legs between steps are `periodsOf` that.
 */
const stepsOf = (conditions: string): string => `
SELECT trackerId, step, min(t) AS firstAt, max(t) AS lastAt, argMin(latE7, t) AS firstLat, argMin(lngE7, t) AS firstLng,
  argMax(latE7, t) AS lastLat, argMax(lngE7, t) AS lastLng, argMin(hasSpeed, t) AS firstHasSpeed,
  sum(meters) AS meters, sumIf(meters, isDriven) AS drivenMeters, sumIf(ms, isDriven) AS drivingMs,
  sumIf(ms, NOT isDriven) AS stoppedMs, max(speed) AS maxSpeed
FROM (
  SELECT trackerId, t, step, latE7, lngE7, hasSpeed, if(isLeg, t - t0, 0) AS ms,
    if(isLeg, ${metersBetween('lat0', 'lng0', 'latE7', 'lngE7')}, 0) AS meters, ${IS_DRIVEN} AS isDriven,
    if(hasSpeed, speedCms / 100, ${speedOfLeg}) AS speed
  FROM (
    SELECT trackerId, t, step, latE7, lngE7, speedCms, hasSpeed, lagInFrame(t, 1, t) OVER byTime AS t0,
      lagInFrame(latE7, 1, latE7) OVER byTime AS lat0, lagInFrame(lngE7, 1, lngE7) OVER byTime AS lng0,
      t0 < t AND t - t0 <= {gapMs:Int64} AND intDiv(t0, {stepMs:Int64}) = step AS isLeg
    FROM (
      SELECT trackerId, recordedAt, toUnixTimestamp64Milli(recordedAt) AS t, intDiv(t, {stepMs:Int64}) AS step,
        toInt64(latE7) AS latE7, toInt64(lngE7) AS lngE7, speedCms, bitTest(flags, 2) AS hasSpeed
      FROM ${POINTS} FINAL WHERE ${conditions}
    )
    WINDOW byTime AS (PARTITION BY trackerId ORDER BY recordedAt ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)
  )
)
GROUP BY trackerId, step`

/** Steps with the leg that leads to each from the one before, summed for each tracker and period. */
const periodsOf = (steps: string): string => `
SELECT trackerId, roundDown(toInt64(step * {stepMs:Int64}), CAST({starts:Array(Int64)}, 'Array(Int64)')) AS period,
  sum(meters + ledMeters) AS meters, sum(drivenMeters + if(isDriven, ledMeters, 0)) AS drivenMeters,
  sum(drivingMs + if(isDriven, ms, 0)) AS drivingMs, sum(stoppedMs + if(isDriven, 0, ms)) AS stoppedMs,
  max(greatest(maxSpeed, ledSpeed)) AS maxSpeed, min(firstAt) AS firstAt, max(lastAt) AS lastAt
FROM (
  SELECT *, ledMeters * 1000 > ms AS isDriven,
    if(NOT firstHasSpeed AND ms > 0 AND ledMeters * 10 <= ms, ledMeters * 1000 / ms, -1) AS ledSpeed
  FROM (
    SELECT *, lagInFrame(lastAt, 1, firstAt) OVER byStep AS t0, lagInFrame(lastLat, 1, firstLat) OVER byStep AS lat0,
      lagInFrame(lastLng, 1, firstLng) OVER byStep AS lng0, firstAt - t0 <= {gapMs:Int64} AS isLeg,
      if(isLeg, firstAt - t0, 0) AS ms, if(isLeg, ${metersBetween('lat0', 'lng0', 'firstLat', 'firstLng')}, 0) AS ledMeters
    FROM (${steps})
    WINDOW byStep AS (PARTITION BY trackerId ORDER BY step ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)
  )
)
GROUP BY trackerId, period`

/** What each tracker drove in each period that begins at one of `starts` (ms since the epoch, ascending, the first not after `from`). */
export const sumPeriods = (filter: ReportFilter, rules: LegRules, starts: readonly number[]): Statement => {
  const { conditions, parameters } = pointsOf(filter)
  return {
    sql: `SELECT toString(trackerId) AS tracker, * EXCEPT trackerId FROM (${periodsOf(stepsOf(conditions))})
      ORDER BY trackerId, period ${FINAL_SETTINGS}`,
    parameters: { ...parameters, ...rules, starts },
  }
}

/** How many trips of each tracker began in each period. */
export const countTrips = (
  { organizationId, trackerIds, from, to }: ReportFilter,
  starts: readonly number[],
): Statement => ({
  sql: `SELECT trackerId AS tracker, roundDown(toUnixTimestamp64Milli(startedAt), CAST({starts:Array(Int64)}, 'Array(Int64)')) AS period, count() AS trips
    FROM ${TRIPS} FINAL WHERE organizationId = {organization:String} AND trackerId IN {trackers:Array(String)}
    AND startedAt >= ${timeOf('from')} AND startedAt <= ${timeOf('to')} GROUP BY tracker, period ${FINAL_SETTINGS}`,
  parameters: { organization: organizationId, trackers: trackerIds, from, to, starts },
})

/** The points that reports walk in order: not those ahead of the clock, by tracker and time. */
export const selectForReport = (filter: ReportFilter): Statement => {
  const { conditions, parameters } = pointsOf(filter)
  return {
    sql: `SELECT trackerId, recordedAt, latE7, lngE7, flags, speedCms FROM ${POINTS} FINAL WHERE ${conditions}
      ORDER BY organizationId, trackerId, recordedAt ${FINAL_SETTINGS}, max_block_size = 8192`,
    parameters,
  }
}

/** The next trackers, in the order of the engine, that have points between the bounds. */
export const selectTrackers = (
  { organizationId, from, to }: Omit<ReportFilter, 'trackerIds'>,
  after: string,
  limit: number,
): Statement => ({
  sql: `SELECT toString(trackerId) AS tracker FROM ${POINTS} WHERE organizationId = {organization:UUID} AND trackerId > {after:UUID}
    AND recordedAt >= ${timeOf('from')} AND recordedAt <= ${timeOf('to')}
    GROUP BY trackerId ORDER BY trackerId LIMIT {limit:UInt64} SETTINGS optimize_aggregation_in_order = 1`,
  parameters: { organization: organizationId, from, to, after, limit },
})

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

/** Which visits are meant. */
export interface VisitFilter {
  organizationId: string
  trackerIds: 'all' | readonly string[]
  geofenceIds?: readonly string[]
  geofenceGroupIds?: readonly string[]
  from: number
  to: number
}

/** A place in the order of visits. */
export interface VisitPlace {
  trackerId: string
  enteredAt: number
  geofenceId: string
}

/**
 * Stays in geofences that reach into the time between the bounds: from an entry to the next leave, whose time is 0 where
 * there is none up to the end. What was before the beginning counts by the last transition of each tracker and geofence.
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
