import { timeOf } from './layout.ts'
import { POINTS } from './history-tables.ts'
import type { HistoryParameters } from '../history-store.ts'

export interface Statement {
  sql: string
  parameters: HistoryParameters
}

/** Selects points of one organization. Bounds of time are inclusive, ms since the epoch. */
export interface PointFilter {
  organizationId: string
  /** Lower-case UUIDs; an empty list means none. */
  trackerIds: 'all' | readonly string[]
  places?: readonly PointCursor[]
  from?: number
  to?: number
  /** West, south, east, north in 1e-7 degree, edges included; west > east crosses the antimeridian. */
  bboxE7?: readonly [number, number, number, number]
  /** Only each tracker's first point in each step of this many ms; steps begin at multiples since the epoch. */
  intervalMs?: number
}

/** A place in the order of time; ties stand in the order of the trackers' ids. */
export interface PointCursor {
  recordedAt: number
  trackerId: string
}

/** `time` ascending or descending over all trackers; `tracker`: by tracker, each one's points in ascending time. */
export type PointOrder = 'asc' | 'desc' | 'tracker'

export interface PointSelection {
  order: PointOrder
  /** Only points after this place in the order; with `tracker`, in ascending time. */
  after?: PointCursor
  limit?: number
}

/** The columns of every answer that becomes rows of points. */
const COLUMNS = `trackerId, recordedAt, latE7, lngE7, flags, accuracyCm, altitudeCm, speedCms, headingTenths, batteryPercent, attributes`

/**
 * Rows that differ only in the version share a partition, so FINAL need not look across them. Conditions on the sorting
 * key are decided before the other columns are read: each part has granules with the end of one tracker and the
 * beginning of the next. A slow reader holds some blocks, as rows and as text: they are small.
 */
export const POINTS_SETTINGS = `SETTINGS do_not_merge_across_partitions_select_final = 1,
  optimize_move_to_prewhere_if_final = 1, prefer_column_name_to_alias = 1, max_block_size = 8192`
const WAS_NOT_AHEAD = 'version >= 9223372036854775808'

export const selectPoints = (filter: PointFilter, selection: PointSelection): Statement => {
  const { conditions, parameters } = pointConditions(filter)
  const outer: string[] = []
  const { after, order } = selection
  if (after !== undefined) {
    const sign = order === 'desc' ? '<' : '>'
    Object.assign(parameters, { afterTime: after.recordedAt, afterTracker: after.trackerId })
    outer.push(`recordedAt ${sign}= fromUnixTimestamp64Milli({afterTime:Int64}, 'UTC')`)
    outer.push(
      `(recordedAt, trackerId) ${sign} (fromUnixTimestamp64Milli({afterTime:Int64}, 'UTC'), {afterTracker:UUID})`,
    )
  }
  if (selection.limit !== undefined) parameters.limit = selection.limit
  const limit = selection.limit === undefined ? '' : 'LIMIT {limit:UInt64}'
  if (filter.intervalMs === undefined) {
    const where = [...conditions, ...outer].join(' AND ')
    return {
      sql: `SELECT ${COLUMNS} FROM ${POINTS} FINAL WHERE ${where} ORDER BY ${ORDERS[order]} ${limit} ${POINTS_SETTINGS}`,
      parameters,
    }
  }
  parameters.interval = filter.intervalMs
  const firsts =
    `SELECT * FROM ${POINTS} FINAL WHERE ${conditions.join(' AND ')} ORDER BY ${ORDERS.tracker} ` +
    `LIMIT 1 BY organizationId, trackerId, intDiv(toUnixTimestamp64Milli(recordedAt), {interval:UInt64})`
  const where = outer.length > 0 ? `WHERE ${outer.join(' AND ')}` : ''
  return {
    sql: `SELECT ${COLUMNS} FROM (${firsts}) ${where} ORDER BY ${ORDERS[order]} ${limit} ${POINTS_SETTINGS}`,
    parameters,
  }
}

/** Time of the newest point, and a lower bound of their number (0: none), reading only times. */
export const selectNewestTime = (filter: PointFilter): Statement => {
  const { conditions, parameters } = pointConditions(filter)
  const sql = `SELECT count() AS points, toUnixTimestamp64Milli(max(recordedAt)) AS newest FROM ${POINTS} WHERE ${conditions.join(' AND ')}`
  return { sql, parameters }
}

/** Maximum of points to read for this filter: an estimate that reads no values but those that it names. */
export const countPoints = (filter: PointFilter): Statement => {
  const { conditions, parameters } = pointConditions(filter)
  return { sql: `SELECT count() AS points FROM ${POINTS} WHERE ${conditions.join(' AND ')}`, parameters }
}

/**
 * Points for a back-test: those that were not ahead of the clock, by tracker and time, each tracker's last one before
 * `from` first; with `accuracyMaxCm` the last one that states no accuracy or none worse.
 */
export const selectForBacktest = (
  filter: PointFilter & { from: number; to: number; accuracyMaxCm?: number },
): Statement => {
  const { conditions, parameters } = pointConditions({
    organizationId: filter.organizationId,
    trackerIds: filter.trackerIds,
    to: filter.to,
  })
  const { from, accuracyMaxCm } = filter
  const passes = accuracyMaxCm === undefined ? '' : `AND (NOT bitTest(flags, 0) OR accuracyCm <= {accuracyMaxCm:Int32})`
  const before = `SELECT trackerId, max(recordedAt) FROM ${POINTS} WHERE ${conditions.join(' AND ')} AND ${WAS_NOT_AHEAD}
    AND recordedAt < ${timeOf('from')} ${passes} GROUP BY trackerId`
  const sql = `SELECT ${COLUMNS} FROM ${POINTS} FINAL WHERE ${conditions.join(' AND ')} AND ${WAS_NOT_AHEAD}
    AND (recordedAt >= ${timeOf('from')} OR (trackerId, recordedAt) IN (${before})) ORDER BY ${ORDERS.tracker} ${POINTS_SETTINGS}`
  return { sql, parameters: { ...parameters, from, ...(accuracyMaxCm !== undefined && { accuracyMaxCm }) } }
}

/**
 * Every tracker's newest point not ahead of the clock, of every organization; `version` tells its place in the log.
 * Without FINAL, which has buffers for each column of each part: those of some hundred parts are more than a query may have.
 */
export const selectNewest = (): Statement => ({
  sql: `SELECT organizationId, ${COLUMNS}, version FROM ${POINTS} WHERE ${WAS_NOT_AHEAD} AND (organizationId, trackerId, recordedAt) IN
      (SELECT organizationId, trackerId, max(recordedAt) FROM ${POINTS} WHERE ${WAS_NOT_AHEAD} GROUP BY organizationId, trackerId)
    ORDER BY organizationId, trackerId, version DESC LIMIT 1 BY organizationId, trackerId ${POINTS_SETTINGS}`,
  parameters: {},
})

/** One tracker's newest point among those that were logged after that place of the log, with the columns of `selectNewest`. */
export const selectNewestSince = (tracker: {
  organizationId: string
  trackerId: string
  epoch: number
  revision: number
}): Statement => ({
  sql: `SELECT organizationId, ${COLUMNS}, version FROM ${POINTS} FINAL WHERE organizationId = {organization:UUID} AND trackerId = {tracker:UUID}
    AND ${WAS_NOT_AHEAD} AND (epoch, revision) > ({epoch:UInt16}, {revision:UInt64}) ORDER BY recordedAt DESC LIMIT 1 ${POINTS_SETTINGS}`,
  parameters: {
    organization: tracker.organizationId,
    tracker: tracker.trackerId,
    epoch: tracker.epoch,
    revision: tracker.revision,
  },
})

const HALF_TURN_E7 = 1_800_000_000

const ORDERS: { [order in PointOrder]: string } = {
  asc: 'recordedAt, trackerId',
  desc: 'recordedAt DESC, trackerId DESC',
  tracker: 'organizationId, trackerId, recordedAt',
}

/** Among these points: their times alone let the index be used. */
const PLACES = `recordedAt IN (SELECT fromUnixTimestamp64Milli(arrayJoin({placeTimes:Array(Int64)}), 'UTC')) AND
  (trackerId, toUnixTimestamp64Milli(recordedAt)) IN (SELECT arrayJoin(arrayZip({placeTrackers:Array(UUID)}, {placeTimes:Array(Int64)})))`

export const pointConditions = (filter: PointFilter): { conditions: string[]; parameters: HistoryParameters } => {
  const conditions = ['organizationId = {organization:UUID}']
  const parameters: HistoryParameters = { organization: filter.organizationId }
  const add = (condition: string, values: HistoryParameters): void => {
    conditions.push(condition)
    Object.assign(parameters, values)
  }
  const { trackerIds, places, from, to, bboxE7 } = filter
  if (trackerIds !== 'all' && trackerIds.length === 1) add('trackerId = {tracker:UUID}', { tracker: trackerIds[0] })
  else if (trackerIds !== 'all') add('trackerId IN {trackers:Array(UUID)}', { trackers: trackerIds })
  if (places !== undefined)
    add(PLACES, { placeTrackers: places.map((one) => one.trackerId), placeTimes: places.map((one) => one.recordedAt) })
  if (from !== undefined) add(`recordedAt >= ${timeOf('from')}`, { from })
  if (to !== undefined) add(`recordedAt <= ${timeOf('to')}`, { to })
  if (bboxE7 !== undefined) {
    const [west, south, east, north] = bboxE7
    const within =
      west <= east ? 'lngE7 BETWEEN {west:Int32} AND {east:Int32}' : '(lngE7 >= {west:Int32} OR lngE7 <= {east:Int32})'
    // -180 and 180 are the same meridian.
    const lngs =
      west === -HALF_TURN_E7 || east === HALF_TURN_E7
        ? `(${within} OR lngE7 IN (-${HALF_TURN_E7}, ${HALF_TURN_E7}))`
        : within
    add(`latE7 BETWEEN {south:Int32} AND {north:Int32} AND ${lngs}`, { west, south, east, north })
  }
  return { conditions, parameters }
}
