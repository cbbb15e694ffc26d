import { RecentMap } from '../kernel/recent-map.ts'
import type { Find, Found, StoredRow } from './table-store.ts'

/*
 * Memory of engines of tables for answered pages: names of pages, and rows beside the bytes that they were unpacked
 * from. Whether a page still holds is each engine's own business.
 */

export const PAGES_BYTES = 24 * 1024 * 1024
const ROWS_BYTES = 16 * 1024 * 1024
/** Larger rows are few, and cost more to send than to unpack. */
const ROW_BYTES_MAX = 64 * 1024
/** A caller that takes more rows at once walks over all of them, and comes once. */
const PAGE_ROWS_MAX = 100
/** Values of one condition above which nobody else asks the same question. */
const VALUES_MAX = 100
const KEY_LENGTH_MAX = 2_000
/** Memory of a row for each packed byte: packed, and unpacked up to five times as much. */
const UNPACKED = 6
/** Further memory of a row: heads of objects, its name, its place in the map. */
const ROW_BYTES = 600
const PAGE_BYTES = 1_000

interface Remembered {
  bytes: Buffer
  row: StoredRow
}

const weightOf = ({ bytes }: Remembered): number => ROW_BYTES + UNPACKED * bytes.length

/** Weight of a page of this name whose packed rows have `rowBytes`. Their JSON is counted where it is kept. */
export const pageWeight = (rowBytes: number, key: string): number => PAGE_BYTES + key.length + UNPACKED * rowBytes

export class RowMemory {
  private readonly rows = new RecentMap<string, Remembered>(ROWS_BYTES, weightOf)

  /** The row of these bytes; where they are unchanged the same object as before, frozen. */
  row(name: string, bytes: Buffer, unpack: () => StoredRow): StoredRow {
    const kept = this.rows.get(name)
    if (kept?.bytes.equals(bytes)) return kept.row
    const row = unpack()
    if (bytes.length > ROW_BYTES_MAX || !freezeAll(row.row)) return row
    // A driver's buffer may be a part of a larger one, which it would hold.
    this.rows.set(name, { bytes: Buffer.from(bytes), row: Object.freeze(row) })
    return row
  }
}

/** Freezes a page of frozen rows, for other callers too; false where a row is not frozen. */
export const freezePage = (found: Found): boolean => {
  if (!found.rows.every(Object.isFrozen)) return false
  Object.freeze(found.rows)
  Object.freeze(found)
  return true
}

/** Names the question without its page; undefined for one too long to be asked again. */
export const questionKey = ({
  where = {},
  every = {},
  range,
  ranges = [],
  text,
  words = [],
  sort,
  total,
  once,
}: Find): string | undefined => {
  if (once === true) return undefined
  const isLong = (values: unknown): boolean => Array.isArray(values) && values.length > VALUES_MAX
  const groups = [words, ...words, ...Object.values(every).flatMap((one) => [one, ...one])]
  if ([...Object.values(where), ...groups].some(isLong)) return undefined
  const key = JSON.stringify([
    Object.entries(where),
    Object.entries(every),
    range ?? 0,
    ranges,
    text ?? 0,
    words,
    sort ?? 0,
    total === true,
  ])
  // Numbers that JSON cannot express, and missing values, are null in it.
  return key.length > KEY_LENGTH_MAX || key.includes('null') ? undefined : key
}

/** Whether neither the page nor its rows are remembered. */
export const isForOneCaller = ({ limit, members }: Find): boolean => limit > PAGE_ROWS_MAX || members !== undefined

/** Names the page of a question of that name; undefined for one that is not remembered. */
export const pageKey = (find: Find, question: string | undefined): string | undefined => {
  const { limit, offset = 0, after = '' } = find
  return question === undefined || isForOneCaller(find) || after.length > KEY_LENGTH_MAX
    ? undefined
    : `${limit} ${offset} ${after} ${question}`
}

/** False for values with bytes, which cannot be frozen. */
const freezeAll = (value: unknown): boolean => {
  if (typeof value !== 'object' || value === null) return true
  if (ArrayBuffer.isView(value)) return false
  if (!Object.values(value).every(freezeAll)) return false
  Object.freeze(value)
  return true
}
