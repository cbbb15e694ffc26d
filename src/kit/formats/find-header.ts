import { columnName } from './column-name.ts'
import { type Cell, isBlank, shownCell, type TableRow } from './table-cells.ts'
import { normalized } from '../../kernel/text.ts'

/** Where a table begins within a sheet. */
export interface Header {
  /** Number of its row; 0 where the sheet is empty. */
  row: number
  /** Names of the columns, no two alike. */
  columns: string[]
}

/** Rows looked through for titles above a table. */
export const HEADER_ROWS = 60
/** Smallest share of the widest row's columns that a header names. */
const WIDE = 0.6

/** The row that names the columns: the one with most of the expected names, else the first wide one of texts alone. */
export const findHeader = (rows: readonly TableRow[], expected: ReadonlySet<string>): Header => {
  const first = rows.at(0)
  if (first === undefined) return { row: 0, columns: [] }
  const named = rows.map((one) => ({ one, known: one.cells.filter((cell) => expected.has(nameKey(cell))).length }))
  const best = named.reduce((most, next) => (next.known > most.known ? next : most))
  const found = best.known > 0 ? best.one : (firstWide(rows) ?? first)
  return { row: found.row, columns: columnNames(found.cells) }
}

/** Names compare without case, form of accents and surrounding space. */
export const nameKey = (cell: Cell | undefined): string =>
  normalized(shownCell(cell)).replace(/\s+/g, ' ').trim().toLowerCase()

const firstWide = (rows: readonly TableRow[]): TableRow | undefined => {
  const widths = rows.map(({ cells }) => cells.filter((cell) => !isBlank(cell)).length)
  const widest = [...widths].sort((a, b) => a - b)[Math.floor(widths.length * 0.75)]
  return rows.find(({ cells }, i) => widths[i] >= Math.max(1, widest * WIDE) && cells.every(isName))
}

const isName = (cell: Cell): boolean => isBlank(cell) || (typeof cell === 'string' && Number.isNaN(Number(cell)))

const columnNames = (cells: readonly Cell[]): string[] => {
  const used = new Set<string>()
  return cells.map((cell, i) => {
    const said = normalized(shownCell(cell)).replace(/\s+/g, ' ').trim()
    const name = said === '' ? `Column ${columnName(i)}` : said
    let own = name
    for (let n = 2; used.has(own); n++) own = `${name} (${n})`
    used.add(own)
    return own
  })
}

/** A remark below a table: alone in its row, after a blank row, where the table has several columns. */
export const isFootnote = ({ row, cells }: TableRow, before: number, columns: number): boolean =>
  columns > 2 && row > before + 1 && cells.filter((cell) => !isBlank(cell)).length === 1
