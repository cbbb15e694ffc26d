import { AUDIT, type Retention, TABLES } from './history-tables.ts'
import { nativeBlocks } from './native-reader.ts'
import type { HistoryStore } from '../history-store.ts'

/** The rows of one table and month: what is copied and compared at once. */
export interface HistoryPart {
  table: string
  /** 202611 for November 2026. */
  month: number
}

/** How many rows a part has, and 64 bits of all of them, whatever their order. */
export interface PartDigest {
  rows: number
  digest: string
}

type Store = Pick<HistoryStore, 'query' | 'rows'>

const DAY_MS = 86_400_000

/** The tables of the history, with the time that says which month a row is of. */
const TIMES: { [table: string]: string } = {
  ...Object.fromEntries(TABLES.map(({ name, time }) => [name, time])),
  [AUDIT]: 'at',
}

/** Every part that has rows, month by month of each table. */
export const historyParts = async (store: Store): Promise<HistoryPart[]> => {
  const parts: HistoryPart[] = []
  for (const [table, time] of Object.entries(TIMES)) {
    const months = await store.rows<{ month: number }>(
      `SELECT DISTINCT toYYYYMM(${time}) AS month FROM ${table} ORDER BY month`,
    )
    parts.push(...months.map(({ month }) => ({ table, month })))
  }
  return parts
}

/** The rows of a part, as blocks that can be inserted into the same table of another history. */
export async function* partBlocks(store: Store, { table, month }: HistoryPart): AsyncGenerator<Uint8Array> {
  const columns = (await columnsOf(store, table)).join(', ')
  const sql = `SELECT ${columns} FROM ${table} FINAL WHERE toYYYYMM(${TIMES[table]}) = {month:UInt32}`
  yield* nativeBlocks(store.query(sql, { month }, 'Native'))
}

/**
 * What stands in a part, without rows that expire within a day: an engine may have dropped them already.
 * @param now ms since the epoch
 */
export const digestOfPart = async (
  store: Store,
  { table, month }: HistoryPart,
  retention: Retention,
  now: number,
): Promise<PartDigest> => {
  const columns = (await columnsOf(store, table)).map((name) =>
    // The engine keeps it as a set.
    name === 'attempts' ? `arraySort(${name})` : name,
  )
  const days = TABLES.find(({ name }) => name === table)?.days(retention)
  const alive = days === undefined ? 0 : now - (days - 1) * DAY_MS
  const [found] = await store.rows<PartDigest>(
    `SELECT count() AS rows, toString(groupBitXor(cityHash64(${columns.join(', ')}))) AS digest FROM ${table} FINAL
      WHERE toYYYYMM(${TIMES[table]}) = {month:UInt32} AND ${TIMES[table]} >= fromUnixTimestamp64Milli({alive:Int64}, 'UTC')`,
    { month, alive: Math.max(0, alive) },
  )
  return found
}

export const isSamePart = (one: PartDigest, other: PartDigest): boolean =>
  one.rows === other.rows && one.digest === other.digest

/** How long a history keeps its rows, as its tables say; undefined for one without tables. */
export const retentionOf = async (store: Store): Promise<Retention | undefined> => {
  const found = await store.rows<{ name: string; sql: string }>(
    'SELECT name, create_table_query AS sql FROM system.tables WHERE database = currentDatabase()',
  )
  const [points, , , runs] = TABLES.map(({ name }) => found.find((table) => table.name === name)?.sql)
  const [days, runDays] = [points, runs].map((sql) => Number(/toIntervalDay\((\d+)\)/.exec(sql ?? '')?.[1]))
  return points === undefined ? undefined : { days, runDays }
}

const columnsOf = async (store: Store, table: string): Promise<string[]> => {
  const columns = await store.rows<{ name: string }>(
    `SELECT name FROM system.columns WHERE database = currentDatabase() AND table = {table:String} AND default_kind = ''
      ORDER BY position`,
    { table },
  )
  return columns.map(({ name }) => name)
}
