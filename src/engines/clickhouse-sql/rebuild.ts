import { AUDIT, DEFINITIONS, POINTS, RUNS, type TableName, TRANSITIONS, TRIPS } from './history-tables.ts'
import { createTable, dropTable, type Layout, shardsOf, type Spread } from './layout.ts'
import type { Statement } from './points.ts'

/** Tables that can be inserted again from the log and compared with it. */
export type RebuiltTable = TableName

interface Columns {
  /** Identity of a row: the organization, then its shown id. */
  key: readonly string[]
  /** Further compared columns, `told` by the log and `live` in the table. */
  columns: readonly string[]
  /** Whether there is a live row (a join gives empty values for none), and whether it differs from the log, as SQL. */
  isThere: string
  isDifferent: string
  /** Time by which rows expire. */
  time: string
}

/** A row that wins by a higher version does not differ; versions are never 0. */
const versioned = (...values: string[]): Pick<Columns, 'columns' | 'isThere' | 'isDifferent'> => ({
  columns: [...values, 'version'],
  isThere: 'live.version > 0',
  isDifferent: `live.version < told.version OR live.version = told.version AND (${differ(values)})`,
})

const differ = (columns: readonly string[]): string =>
  columns.map((column) => `live.${column} != told.${column}`).join(' OR ')

const OWED = ['automationId', 'subjectId', 'partition', 'sequence', 'trigger']
const AUDITED = ['actorType', 'actorId', 'action', 'noun', 'resourceId', 'hubIds', 'stream', 'revision']

const COLUMNS: { [table in RebuiltTable]: Columns } = {
  [POINTS]: {
    key: ['organizationId', 'trackerId', 'recordedAt'],
    ...versioned(
      'latE7',
      'lngE7',
      'flags',
      'accuracyCm',
      'altitudeCm',
      'speedCms',
      'headingTenths',
      'batteryPercent',
      'attributes',
    ),
    time: 'recordedAt',
  },
  [TRANSITIONS]: {
    key: ['organizationId', 'at', '_id'],
    ...versioned(
      'trackerId',
      'geofenceId',
      'geofenceGroupId',
      'type',
      'cause',
      'point',
      'partition',
      'revision',
      'ordinal',
    ),
    time: 'at',
  },
  [TRIPS]: {
    key: ['organizationId', 'startedAt', '_id'],
    ...versioned('trackerId', 'explicit', 'finishedAtMs', 'distance', 'point'),
    time: 'startedAt',
  },
  // The log may have truncated the beginning: the rest must be there, and there may be more.
  [RUNS]: {
    key: ['organizationId', 'createdAt', '_id'],
    columns: [...OWED, 'state', 'attempts'],
    isThere: "live.state != ''",
    isDifferent: `live.state < told.state OR NOT hasAll(live.attempts, told.attempts) OR told.automationId != '' AND (${differ(OWED)})`,
    time: 'createdAt',
  },
  [AUDIT]: {
    key: ['organizationId', 'at', '_id'],
    columns: AUDITED,
    isThere: "live.stream != ''",
    isDifferent: differ(AUDITED),
    time: 'at',
  },
}

/** The table that holds a part of the log's rows during the comparison. */
export const besideOf = (table: RebuiltTable): string => `${table}_rebuilt`

/** Statements that create it, empty as after `emptyBeside`. */
export const createBeside = (table: RebuiltTable, layout: Layout): string[] =>
  createTable(besideOf(table), DEFINITIONS[table], layout, table)
export const dropBeside = (table: RebuiltTable, layout: Spread): string[] => dropTable(besideOf(table), layout)
export const emptyBeside = (table: RebuiltTable, layout: Spread): string =>
  `TRUNCATE TABLE ${shardsOf(besideOf(table), layout)} SYNC`
/** Inserts every row beside into the table: rows of the same version are replaced, those of a higher one stay. */
export const insertBeside = (table: RebuiltTable): string => `INSERT INTO ${table} SELECT * FROM ${besideOf(table)}`

export interface DifferenceCounts {
  /** Rows beside from since then. */
  rows: number
  missing: number
  /** Rows that differ; one of a higher version does not. */
  different: number
  /** Rows beside from before that time, which are not compared. */
  older: number
}

export const countDifferences = (table: RebuiltTable, since: number): Statement => ({
  sql: `SELECT count() AS rows, countIf(isMissing) AS missing, countIf(isDifferent) AS different,
    (SELECT count() FROM ${besideOf(table)} WHERE NOT (${isSince(table)})) AS older FROM (${pairsOf(table)}) ${FINAL_SETTINGS}`,
  parameters: { since },
})

/** Scope and id of the rows that are missing or differ. */
export const listDifferences = (table: RebuiltTable, since: number, limit: number): Statement => ({
  sql: `SELECT scope, id, isMissing FROM (${pairsOf(table)}) WHERE isMissing OR isDifferent ORDER BY scope, id LIMIT {limit:UInt64} ${FINAL_SETTINGS}`,
  parameters: { since, limit },
})

const FINAL_SETTINGS =
  'SETTINGS do_not_merge_across_partitions_select_final = 1, prefer_column_name_to_alias = 1, join_use_nulls = 0'

const isSince = (table: RebuiltTable): string =>
  `${COLUMNS[table].time} >= fromUnixTimestamp64Milli({since:Int64}, 'UTC')`

/** One row for each row beside. */
const pairsOf = (table: RebuiltTable): string => {
  const { key, columns, isThere, isDifferent } = COLUMNS[table]
  const keys = key.join(', ')
  const read = [...key, ...columns].join(', ')
  return `SELECT toString(told.organizationId) AS scope, concat(${key
    .slice(1)
    .map((column) => `toString(told.${column})`)
    .join(", '.', ")}) AS id,
    NOT (${isThere}) AS isMissing, (${isThere}) AND (${isDifferent}) AS isDifferent
    FROM (SELECT ${read} FROM ${besideOf(table)} FINAL WHERE ${isSince(table)}) AS told
    LEFT JOIN (SELECT ${read} FROM ${table} FINAL WHERE (${keys}) IN (SELECT ${keys} FROM ${besideOf(table)})) AS live USING (${keys})`
}
