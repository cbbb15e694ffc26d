import { AUDIT, type Retention, TABLES } from './history-tables.ts'
import { nativeBlocks } from './native-reader.ts'
import type { HistoryStore } from '../history-store.ts'
import { localOf } from './layout.ts'

/** The rows of one table and month. */
export interface HistoryPart {
  table: string
  /** 202611 for November 2026. */
  month: number
}

/** A part, or some hours of it: copied and compared at once, within the limits of one query. */
export interface HistorySlice extends HistoryPart {
  /** ms since the epoch, inclusive; left out, the beginning of the month. */
  from?: number
  /** Exclusive; left out, the end of the month. */
  until?: number
}

/** Number of rows of a part, and 64 bits of all of them, whatever their order. */
export interface PartDigest {
  rows: number
  digest: string
}

type Store = Pick<HistoryStore, 'query' | 'rows'>

const DAY_MS = 86_400_000
/** Far fewer than a query may answer or read in its time. */
const SLICE_ROWS_MAX = 20_000_000

/** The tables of the history, with the time that decides the month of a row. */
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

/** A part cut between hours, so that each piece has up to `rowsMax` rows, or is one hour; a small part is one piece. */
export const slicesOf = async (store: Store, part: HistoryPart, rowsMax = SLICE_ROWS_MAX): Promise<HistorySlice[]> => {
  const { table, month } = part
  const hours = await store.rows<{ hour: number; rows: number }>(
    `SELECT toUnixTimestamp(toStartOfHour(${TIMES[table]})) AS hour, count() AS rows FROM ${table}
      WHERE toYYYYMM(${TIMES[table]}) = {month:UInt32} GROUP BY hour ORDER BY hour`,
    { month },
  )
  const slices: HistorySlice[] = [{ ...part }]
  let held = 0
  for (const { hour, rows } of hours) {
    if (held > 0 && held + rows > rowsMax) {
      const from = hour * 1_000
      slices[slices.length - 1].until = from
      slices.push({ ...part, from })
      held = 0
    }
    held += rows
  }
  return slices
}

/** The rows of a part, as blocks that can be inserted into the same table of another history. */
export async function* partBlocks(store: Store, slice: HistorySlice): AsyncGenerator<Uint8Array> {
  const columns = (await columnsOf(store, slice.table)).join(', ')
  const { condition, parameters } = rowsOf(slice)
  yield* nativeBlocks(
    store.query(`SELECT ${columns} FROM ${slice.table} FINAL WHERE ${condition}`, parameters, 'Native'),
  )
}

const rowsOf = ({ table, month, from, until }: HistorySlice) => {
  const time = TIMES[table]
  const conditions = [`toYYYYMM(${time}) = {month:UInt32}`]
  if (from !== undefined) conditions.push(`${time} >= fromUnixTimestamp64Milli({from:Int64}, 'UTC')`)
  if (until !== undefined) conditions.push(`${time} < fromUnixTimestamp64Milli({until:Int64}, 'UTC')`)
  const parameters = { month, ...(from !== undefined && { from }), ...(until !== undefined && { until }) }
  return { condition: conditions.join(' AND '), parameters }
}

/**
 * Digest of a part, without rows that expire within a day: an engine may have dropped them already.
 * @param now ms since the epoch
 */
export const digestOfPart = async (
  store: Store,
  slice: HistorySlice,
  retention: Retention,
  now: number,
): Promise<PartDigest> => {
  const { table } = slice
  const columns = (await columnsOf(store, table)).map((name) =>
    // The engine keeps it as a set.
    name === 'attempts' ? `arraySort(${name})` : name,
  )
  const days = TABLES.find(({ name }) => name === table)?.days(retention)
  const alive = days === undefined ? 0 : now - (days - 1) * DAY_MS
  const { condition, parameters } = rowsOf(slice)
  const [found] = await store.rows<PartDigest>(
    `SELECT count() AS rows, toString(groupBitXor(cityHash64(${columns.join(', ')}))) AS digest FROM ${table} FINAL
      WHERE ${condition} AND ${TIMES[table]} >= fromUnixTimestamp64Milli({alive:Int64}, 'UTC')`,
    { ...parameters, alive: Math.max(0, alive) },
  )
  return found
}

export const isSamePart = (one: PartDigest, other: PartDigest): boolean =>
  one.rows === other.rows && one.digest === other.digest

/** Retention of a history, according to its tables; undefined for one without tables. */
export const retentionOf = async (store: Pick<HistoryStore, 'rows' | 'cluster'>): Promise<Retention | undefined> => {
  const found = await store.rows<{ name: string; sql: string }>(
    'SELECT name, create_table_query AS sql FROM system.tables WHERE database = currentDatabase()',
  )
  const [points, , , runs] = TABLES.map((one) => found.find(({ name }) => name === localOf(one.name, store))?.sql)
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
