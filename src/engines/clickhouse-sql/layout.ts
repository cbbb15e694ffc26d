import type { HistoryStore } from '../history-store.ts'

/** The cluster whose shards hold the rows; undefined: one server holds all. */
export type Spread = Pick<HistoryStore, 'cluster'>

export interface Layout extends Spread {
  database: string
  /** Whether the server knows the setting `merge_selector_base`. */
  hasMergeBase?: boolean
}

/** Definition of a table, on one server and on each shard of a cluster. */
export interface Definition {
  columns: string
  /** The engine's family and its arguments, such as `Replacing` and `version`. */
  engine: '' | 'Replacing' | 'Aggregating'
  version?: string
  /** PARTITION BY and ORDER BY. */
  order: string
  /** Rows of equal values are on the same shard. */
  shardBy: string
}

/**
 * A month becomes one part (or parts of the largest size) once nothing was inserted into it for a day. Forced sooner,
 * or for some of its parts, the whole month would be rewritten at each lull. Expired rows are removed once a day.
 */
const MERGE_SETTINGS = `min_age_to_force_merge_seconds = 86400, min_age_to_force_merge_on_partition_only = 1,
  enable_max_bytes_limit_for_min_age_to_force_merge = 1, merge_with_ttl_timeout = 86400`

const MERGE_BASE = 'merge_selector_base'
/**
 * Against the server's 5: parts are merged once all of them are some twelve times the largest. Each row is written again two
 * thirds as often, and a question reads at most 16 parts instead of 10 where ten thousand rows are inserted at a time.
 */
export const MERGE_BASE_SETTING = `${MERGE_BASE} = 12`

/** Inserts and merges reach the disk before they count. */
const TABLE_SETTINGS = `
  fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1,
  non_replicated_deduplication_window = 100,
  ${MERGE_SETTINGS}, ttl_only_drop_parts = 0, index_granularity = 8192`

/** The server fills in the table's id and each node's macros: a table dropped and made again is another one. */
const REPLICA = "'/clickhouse/tables/{uuid}/{shard}', '{replica}'"
/** The same, for a table that every node has whole. */
const COPY = "'/clickhouse/tables/{uuid}/all', '{shard}-{replica}'"

export const layoutOf = async (store: Pick<HistoryStore, 'rows' | 'cluster'>): Promise<Layout> => {
  const known = `SELECT count() FROM system.merge_tree_settings WHERE name = '${MERGE_BASE}'`
  const [{ database, settings }] = await store.rows<{ database: string; settings: number }>(
    `SELECT currentDatabase() AS database, (${known}) AS settings`,
  )
  return { database, cluster: store.cluster, hasMergeBase: Number(settings) > 0 }
}

export const onCluster = ({ cluster }: Spread): string =>
  cluster === undefined ? '' : ` ON CLUSTER ${quoted(cluster)}`

/**
 * Target of ALTER, DELETE and TRUNCATE that reaches every row of a table. On a cluster, the table itself only passes
 * queries and inserts on to its shards.
 */
export const shardsOf = (table: string, layout: Spread): string => `${localOf(table, layout)}${onCluster(layout)}`

/** The table that has rows of its own on a node. */
export const localOf = (table: string, { cluster }: Spread): string =>
  cluster === undefined ? table : `${table}_local`

/** Statements that make a table. Columns are copied from `like` where it is given. */
export const createTable = (table: string, definition: Definition, layout: Layout, like?: string): string[] => {
  const { columns, engine, version = '', order, shardBy } = definition
  const isSpread = layout.cluster !== undefined
  const engineArguments = [...(isSpread ? [REPLICA] : []), ...(version === '' ? [] : [version])].join(', ')
  const local = localOf(table, layout)
  const shape = like === undefined ? ` (${columns})` : ` AS ${localOf(like, layout)}`
  const rows = `
CREATE TABLE IF NOT EXISTS ${local}${onCluster(layout)}${shape}
ENGINE = ${isSpread ? 'Replicated' : ''}${engine}MergeTree${engineArguments === '' ? '' : `(${engineArguments})`}
${order}
SETTINGS ${TABLE_SETTINGS}${layout.hasMergeBase === true ? `, ${MERGE_BASE_SETTING}` : ''}`
  return isSpread ? [rows, createDistributed(table, shardBy, layout)] : [rows]
}

/** A small table that every node has whole. */
export const createCopied = (table: string, columns: string, order: string, layout: Layout): string =>
  `CREATE TABLE IF NOT EXISTS ${table}${onCluster(layout)} (${columns})
ENGINE = ${layout.cluster === undefined ? 'MergeTree' : `ReplicatedMergeTree(${COPY})`} ${order} SETTINGS fsync_after_insert = 1`

export const dropTable = (table: string, layout: Spread): string[] =>
  [...new Set([table, localOf(table, layout)])].map((name) => `DROP TABLE IF EXISTS ${name}${onCluster(layout)} SYNC`)

const createDistributed = (table: string, shardBy: string, layout: Layout): string => {
  const target = [quoted(layout.cluster as string), quoted(layout.database), quoted(localOf(table, layout))].join(', ')
  return `CREATE TABLE IF NOT EXISTS ${table}${onCluster(layout)} AS ${localOf(table, layout)}
ENGINE = Distributed(${target}, cityHash64(toString(${shardBy})))`
}

export const quoted = (text: string): string => `'${text.replace(/[\\']/g, '\\$&')}'`
/** A name quoted for SQL, whatever characters it has. */
export const named = (name: string): string => `\`${name.replace(/[\\`]/g, '\\$&')}\``
/** The time of a parameter in ms since the epoch. */
export const timeOf = (parameter: string): string => `fromUnixTimestamp64Milli({${parameter}:Int64}, 'UTC')`
