/**
 * A cell of a file that was sent. `at` is a date, a time of day, or both, as the sheet shows it: `2026-11-20`, `14:30:00`,
 * `2026-11-20T14:30:00.000`. `fault` is a cell without a value: an error, or a formula that was never worked out.
 */
export type Cell = string | number | boolean | null | { at: string } | { fault: string }

/** A row with something in it. */
export interface TableRow {
  /** As a spreadsheet numbers it, from 1. */
  row: number
  cells: Cell[]
}

/** What a file turned out to be. */
export interface TableAbout {
  format: 'csv' | 'xlsx' | 'xls'
  encoding?: string
  delimiter?: string
  /** Sheets that are not hidden. */
  sheets: string[]
  /** The one that is read. */
  sheet?: string
}

export interface TableLimits {
  /** Rows with something in them. */
  rowsMax: number
  columnsMax: number
  cellCharsMax: number
  /** Bytes of all parts that are read, unpacked. */
  unpackedMax: number
  /** Characters of all texts that cells share. */
  sharedCharsMax: number
}

export const TABLE_LIMITS: TableLimits = {
  // What one sheet of a workbook holds: a million records and their header fit.
  rowsMax: 1_048_576,
  columnsMax: 1_000,
  cellCharsMax: 32_767,
  unpackedMax: 1024 * 1024 * 1024,
  sharedCharsMax: 64 * 1024 * 1024,
}

/** Why a file cannot be read, for its sender. */
export class FileFault extends Error {
  readonly code: 'invalid' | 'too_large' | 'unsupported_type'

  constructor(code: FileFault['code'], message: string) {
    super(message)
    this.code = code
  }
}

export const isBlank = (cell: Cell | undefined): boolean =>
  cell === undefined || cell === null || (typeof cell === 'string' && cell.trim() === '')

/** What a cell shows, for people. */
export const shownCell = (cell: Cell | undefined): string => {
  if (cell === undefined || cell === null) return ''
  if (typeof cell !== 'object') return String(cell)
  return 'at' in cell ? cell.at : cell.fault
}
