import type { Convention, ConventionDefaults } from './conventions.ts'
import type { Mapping } from './mapped-rows.ts'
import type { FileFault, TableAbout, TableLimits, TableRow } from './table-cells.ts'

/** Request to a thread that has a file. */
export type TableAsked =
  | { kind: 'piece'; piece: Uint8Array }
  | { kind: 'open'; sheet?: string; expected: readonly string[]; limits: TableLimits }
  | { kind: 'examine'; defaults: ConventionDefaults }
  | { kind: 'begin'; after: number; mapping?: Mapping }
  | { kind: 'next' }

/** Format of the file, and the start of its table. */
export interface OpenedTable {
  about: TableAbout
  columns: string[]
  headerRow: number
}

/** Findings over all rows together. */
export interface ExaminedTable {
  /** Number of rows below the header. */
  rows: number
  conventions: Convention[]
}

/** Rows as they stand, or `MappedRow`s as JSON: reading it takes less time than copying so many objects. */
export type TablePage = { rows: TableRow[]; isLast: boolean } | { mapped: string; isLast: boolean }

export type TableAnswer =
  | { opened: OpenedTable }
  | { examined: ExaminedTable }
  | TablePage
  | { fault: Pick<FileFault, 'code' | 'message'> }
  | { begun: true }

export const PAGE_ROWS = 500
