/**
 * A cell of a sent file. `at` is a date, a time of day, or both, as the sheet shows it: `2026-11-20`, `14:30:00`,
 * `2026-11-20T14:30:00.000`. `fault` is a cell without a value: an error, or a formula that was never calculated.
 */
export type Cell = string | number | boolean | null | { at: string } | { fault: string }

/** A row that is not empty. */
export interface TableRow {
  /** As a spreadsheet numbers it, from 1. */
  row: number
  cells: Cell[]
}

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
  /** Maximum of rows that are not empty. */
  rowsMax: number
  columnsMax: number
  cellCharsMax: number
  /** Bytes of all parts that are read, unpacked. */
  unpackedMax: number
  /** Characters of all texts that cells share. */
  sharedCharsMax: number
}

export const TABLE_LIMITS: TableLimits = {
  // Capacity of one sheet of a workbook: a million records and their header fit.
  rowsMax: 1_048_576,
  columnsMax: 1_000,
  cellCharsMax: 32_767,
  unpackedMax: 1024 * 1024 * 1024,
  sharedCharsMax: 64 * 1024 * 1024,
}

/** Reason why a file cannot be read, for its sender. */
export class FileFault extends Error {
  readonly code: 'invalid' | 'too_large' | 'unsupported_type'

  constructor(code: FileFault['code'], message: string) {
    super(message)
    this.code = code
  }
}

export const isBlank = (cell: Cell | undefined): boolean =>
  cell === undefined || cell === null || (typeof cell === 'string' && cell.trim() === '')

/** The text that a cell shows to people. */
export const shownCell = (cell: Cell | undefined): string => {
  if (cell === undefined || cell === null) return ''
  if (typeof cell !== 'object') return String(cell)
  return 'at' in cell ? cell.at : cell.fault
}
