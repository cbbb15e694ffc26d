import { TRANSITIONS, TRIPS } from './history-sql.ts'
import type { Statement } from './history-sql-points.ts'
import type { HistoryParameters } from './history-store.ts'

/** Which transitions of one organization are meant. Bounds of `at` are inclusive, ms since the epoch. */
export interface TransitionFilter {
  organizationId: string
  trackerIds: 'all' | readonly string[]
  geofenceIds?: readonly string[]
  geofenceGroupIds?: readonly string[]
  type?: 'entry' | 'leave'
  from?: number
  to?: number
}

/** A place in the order of transitions: by `at`, then in the order logged. */
export interface TransitionPlace {
  at: number
  position: number
  ordinal: number
}

export const selectTransitions = (filter: TransitionFilter, walk: { order: 'asc' | 'desc'; after?: TransitionPlace; limit?: number }): Statement => {
  const { conditions, parameters } = baseOf(filter, 'at')
  const among = (column: string, values: readonly string[] | undefined): void => {
    if (values === undefined) return
    conditions.push(`${column} IN {${column}:Array(String)}`)
    parameters[column] = values
  }
  among('geofenceId', filter.geofenceIds)
  among('geofenceGroupId', filter.geofenceGroupIds)
  among('type', filter.type === undefined ? undefined : [filter.type])
  const { after, order, limit } = walk
  if (after !== undefined) {
    const sign = order === 'desc' ? '<' : '>'
    conditions.push(`at ${sign}= ${TIME('afterAt')}`, `(at, position, ordinal) ${sign} (${TIME('afterAt')}, {afterPosition:UInt64}, {afterOrdinal:UInt32})`)
    Object.assign(parameters, { afterAt: after.at, afterPosition: after.position, afterOrdinal: after.ordinal })
  }
  if (limit !== undefined) parameters.limit = limit
  const direction = order === 'desc' ? 'DESC' : ''
  const sql = `SELECT _id, trackerId, geofenceId, geofenceGroupId, type, toUnixTimestamp64Milli(at) AS atMs, cause, point, position, ordinal
    FROM ${TRANSITIONS} FINAL WHERE ${conditions.join(' AND ')}
    ORDER BY at ${direction}, position ${direction}, ordinal ${direction} ${limit === undefined ? '' : 'LIMIT {limit:UInt64}'} ${FINAL_SETTINGS}`
  return { sql, parameters }
}

export interface TripFilter {
  organizationId: string
  trackerIds: 'all' | readonly string[]
  _id?: string
  /** Trips that began between these, ms since the epoch. */
  from?: number
  to?: number
  state?: 'running' | 'finished'
}

export const selectTrips = (filter: TripFilter, page: { order: 'asc' | 'desc'; limit: number; offset?: number; after?: { startedAt: number; _id: string } }): Statement => {
  const { conditions, parameters } = tripsOf(filter)
  const { after, order } = page
  if (after !== undefined) {
    conditions.push(`(startedAt, _id) ${order === 'desc' ? '<' : '>'} (${TIME('afterStart')}, {afterId:String})`)
    Object.assign(parameters, { afterStart: after.startedAt, afterId: after._id })
  }
  Object.assign(parameters, { limit: page.limit, offset: page.offset ?? 0 })
  const direction = order === 'desc' ? 'DESC' : ''
  const sql = `SELECT _id, trackerId, explicit, toUnixTimestamp64Milli(startedAt) AS startedAtMs, finishedAtMs, distance FROM ${TRIPS} FINAL
    WHERE ${conditions.join(' AND ')} ORDER BY startedAt ${direction}, _id ${direction} LIMIT {limit:UInt64} OFFSET {offset:UInt64} ${FINAL_SETTINGS}`
  return { sql, parameters }
}

export const countTrips = (filter: TripFilter): Statement => {
  const { conditions, parameters } = tripsOf(filter)
  return { sql: `SELECT count() AS trips FROM ${TRIPS} FINAL WHERE ${conditions.join(' AND ')} ${FINAL_SETTINGS}`, parameters }
}

const FINAL_SETTINGS = 'SETTINGS do_not_merge_across_partitions_select_final = 1'
const TIME = (parameter: string): string => `fromUnixTimestamp64Milli({${parameter}:Int64}, 'UTC')`

const tripsOf = (filter: TripFilter): { conditions: string[]; parameters: HistoryParameters } => {
  const { conditions, parameters } = baseOf(filter, 'startedAt')
  if (filter._id !== undefined) {
    conditions.push('_id = {id:String}')
    parameters.id = filter._id
  }
  if (filter.state !== undefined) conditions.push(filter.state === 'running' ? 'finishedAtMs = 0' : 'finishedAtMs > 0')
  return { conditions, parameters }
}

const baseOf = (filter: TransitionFilter | TripFilter, time: string): { conditions: string[]; parameters: HistoryParameters } => {
  const conditions = ['organizationId = {organization:String}']
  const parameters: HistoryParameters = { organization: filter.organizationId }
  if (filter.trackerIds !== 'all') {
    conditions.push('trackerId IN {trackers:Array(String)}')
    parameters.trackers = filter.trackerIds
  }
  if (filter.from !== undefined) {
    conditions.push(`${time} >= ${TIME('from')}`)
    parameters.from = filter.from
  }
  if (filter.to !== undefined) {
    conditions.push(`${time} <= ${TIME('to')}`)
    parameters.to = filter.to
  }
  return { conditions, parameters }
}
