import type { Convention, ConventionDefaults } from './conventions.ts'
import type { FileFault, TableAbout, TableLimits, TableRow } from './table-cells.ts'

/** Request to a thread that has a file. */
export type TableAsked =
  | { kind: 'piece'; piece: Uint8Array }
  | { kind: 'open'; sheet?: string; expected: readonly string[]; limits: TableLimits }
  | { kind: 'examine'; defaults: ConventionDefaults }
  | { kind: 'begin'; after: number }
  | { kind: 'next' }

/** What the file is, and where its table begins. */
export interface OpenedTable {
  about: TableAbout
  columns: string[]
  /** Number of the header's row. */
  headerRow: number
}

/** What all rows together say. */
export interface ExaminedTable {
  /** How many rows there are below the header. */
  rows: number
  conventions: Convention[]
}

export type TableAnswer =
  | { opened: OpenedTable }
  | { examined: ExaminedTable }
  | { rows: TableRow[]; isLast: boolean }
  | { fault: Pick<FileFault, 'code' | 'message'> }
  | { begun: true }

/** Rows of one answer. */
export const PAGE_ROWS = 500
