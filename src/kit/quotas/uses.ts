import type { Row, TableDeclaration } from '../../kernel/table.ts'

/** What an organization has that is summed up, not counted: one row, under its own id. */
export const USES: TableDeclaration = { name: 'uses', version: 2 }

/** What one record adds to the sums of its organization; records that add nothing have no row. */
export const USES_OF_ONE: TableDeclaration = { name: 'uses_of_one', version: 2 }

export const NO_SUMS = { geofencePositions: 0, filesBytes: 0 }

export type Sum = keyof typeof NO_SUMS

export type UsesRow = Row & { [sum in Sum]: number } & {
  /** How many records of `USES_OF_ONE` have files. */
  withFiles: number
}
