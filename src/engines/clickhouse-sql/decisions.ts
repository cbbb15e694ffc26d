import { timeOf } from './layout.ts'
import { TRANSITIONS } from './history-tables.ts'
import type { Statement } from './points.ts'
import type { HistoryParameters } from '../history-store.ts'

/** Selects transitions of one organization. Bounds of `at` are inclusive, ms since the epoch. */
export interface TransitionFilter {
  organizationId: string
  trackerIds: 'all' | readonly string[]
  ids?: readonly string[]
  geofenceIds?: readonly string[]
  geofenceGroupIds?: readonly string[]
  type?: 'entry' | 'leave'
  from?: number
  to?: number
}

/** A place in the order of transitions: by `at`, then partition by partition in the order logged. */
export interface TransitionPlace {
  at: number
  partition: number
  revision: number
  ordinal: number
}

export const selectTransitions = (
  filter: TransitionFilter,
  walk: { order: 'asc' | 'desc'; after?: TransitionPlace; limit?: number },
): Statement => {
  const { conditions, parameters } = baseOf(filter)
  const among = (column: string, values: readonly string[] | undefined): void => {
    if (values === undefined) return
    conditions.push(`${column} IN {${column}:Array(String)}`)
    parameters[column] = values
  }
  among('_id', filter.ids)
  among('geofenceId', filter.geofenceIds)
  among('geofenceGroupId', filter.geofenceGroupIds)
  among('type', filter.type === undefined ? undefined : [filter.type])
  const { after, order, limit } = walk
  if (after !== undefined) {
    const sign = order === 'desc' ? '<' : '>'
    conditions.push(
      `at ${sign}= ${timeOf('afterAt')}`,
      `(at, partition, revision, ordinal) ${sign} (${timeOf('afterAt')}, {afterPartition:UInt16}, {afterRevision:UInt64}, {afterOrdinal:UInt32})`,
    )
    Object.assign(parameters, {
      afterAt: after.at,
      afterPartition: after.partition,
      afterRevision: after.revision,
      afterOrdinal: after.ordinal,
    })
  }
  if (limit !== undefined) parameters.limit = limit
  const places = ['at', 'partition', 'revision', 'ordinal'].map((column) => `${column} ${order}`)
  const sql = `SELECT _id, trackerId, geofenceId, geofenceGroupId, type, toUnixTimestamp64Milli(at) AS atMs, cause, point, partition, revision, ordinal
    FROM ${TRANSITIONS} FINAL WHERE ${conditions.join(' AND ')}
    ORDER BY ${places.join(', ')} ${limit === undefined ? '' : 'LIMIT {limit:UInt64}'} ${FINAL_SETTINGS}`
  return { sql, parameters }
}

const FINAL_SETTINGS = 'SETTINGS do_not_merge_across_partitions_select_final = 1, max_block_size = 8192'
const baseOf = (filter: TransitionFilter): { conditions: string[]; parameters: HistoryParameters } => {
  const conditions = ['organizationId = {organization:String}']
  const parameters: HistoryParameters = { organization: filter.organizationId }
  if (filter.trackerIds !== 'all') {
    conditions.push('trackerId IN {trackers:Array(String)}')
    parameters.trackers = filter.trackerIds
  }
  if (filter.from !== undefined) {
    conditions.push(`at >= ${timeOf('from')}`)
    parameters.from = filter.from
  }
  if (filter.to !== undefined) {
    conditions.push(`at <= ${timeOf('to')}`)
    parameters.to = filter.to
  }
  return { conditions, parameters }
}
