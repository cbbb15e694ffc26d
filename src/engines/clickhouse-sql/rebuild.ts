import { POINTS, TRANSITIONS, TRIPS } from './history-tables.ts'
import type { Statement } from './points.ts'

/** Tables that can be inserted again from the log and compared with what the log says. */
export type RebuiltTable = typeof POINTS | typeof TRANSITIONS | typeof TRIPS

interface Columns {
  /** What makes a row the same one: the organization, then what is shown as its id. */
  key: readonly string[]
  values: readonly string[]
  /** By which rows expire. */
  time: string
}

const COLUMNS: { [table in RebuiltTable]: Columns } = {
  [POINTS]: {
    key: ['organizationId', 'trackerId', 'recordedAt'],
    values: [
      'latE7',
      'lngE7',
      'flags',
      'accuracyCm',
      'altitudeCm',
      'speedCms',
      'headingTenths',
      'batteryPercent',
      'attributes',
    ],
    time: 'recordedAt',
  },
  [TRANSITIONS]: {
    key: ['organizationId', 'at', '_id'],
    values: [
      'trackerId',
      'geofenceId',
      'geofenceGroupId',
      'type',
      'cause',
      'point',
      'partition',
      'revision',
      'ordinal',
    ],
    time: 'at',
  },
  [TRIPS]: {
    key: ['organizationId', 'startedAt', '_id'],
    values: ['trackerId', 'explicit', 'finishedAtMs', 'distance', 'point'],
    time: 'startedAt',
  },
}

/** The table that holds a part of what the log says while it is compared. */
export const besideOf = (table: RebuiltTable): string => `${table}_rebuilt`

export const createBeside = (table: RebuiltTable): string => `CREATE TABLE ${besideOf(table)} AS ${table}`
export const dropBeside = (table: RebuiltTable): string => `DROP TABLE IF EXISTS ${besideOf(table)} SYNC`
export const emptyBeside = (table: RebuiltTable): string => `TRUNCATE TABLE ${besideOf(table)} SYNC`
/** Puts every row that stands beside into the table: what is there in the same version is replaced, what is there in a higher one stays. */
export const insertBeside = (table: RebuiltTable): string => `INSERT INTO ${table} SELECT * FROM ${besideOf(table)}`

/** How many rows stand beside, lack in the table, and differ from it; a row that wins by a higher version does not differ. */
export const countDifferences = (table: RebuiltTable, since: number): Statement => ({
  sql: `SELECT count() AS rows, countIf(isMissing) AS missing, countIf(isDifferent) AS different FROM (${pairsOf(table)}) ${FINAL_SETTINGS}`,
  parameters: { since },
})

/** Scope and id of the rows that lack or differ. */
export const listDifferences = (table: RebuiltTable, since: number, limit: number): Statement => ({
  sql: `SELECT scope, id, isMissing FROM (${pairsOf(table)}) WHERE isMissing OR isDifferent ORDER BY scope, id LIMIT {limit:UInt64} ${FINAL_SETTINGS}`,
  parameters: { since, limit },
})

const FINAL_SETTINGS =
  'SETTINGS do_not_merge_across_partitions_select_final = 1, prefer_column_name_to_alias = 1, join_use_nulls = 0'

/** One row for each that stands beside; versions are never 0, so 0 is what a join gives for none. */
const pairsOf = (table: RebuiltTable): string => {
  const { key, values, time } = COLUMNS[table]
  const keys = key.join(', ')
  const columns = [...key, ...values, 'version'].join(', ')
  const differs = values.map((column) => `live.${column} != told.${column}`).join(' OR ')
  return `SELECT toString(told.organizationId) AS scope, concat(${key
    .slice(1)
    .map((column) => `toString(told.${column})`)
    .join(", '.', ")}) AS id,
    live.version = 0 AS isMissing, live.version > 0 AND (live.version < told.version OR live.version = told.version AND (${differs})) AS isDifferent
    FROM (SELECT ${columns} FROM ${besideOf(table)} FINAL WHERE ${time} >= fromUnixTimestamp64Milli({since:Int64}, 'UTC')) AS told
    LEFT JOIN (SELECT ${columns} FROM ${table} FINAL WHERE (${keys}) IN (SELECT ${keys} FROM ${besideOf(table)})) AS live USING (${keys})`
}
