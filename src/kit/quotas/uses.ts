import type { Row, TableDeclaration } from '../../kernel/table.ts'

/** Amounts of an organization that are summed up, not counted: one row, under its own id. */
export const USES: TableDeclaration = { name: 'uses', version: 2 }

/** Share of one record in the sums of its organization; records without a share have no row. */
export const USES_OF_ONE: TableDeclaration = { name: 'uses_of_one', version: 2 }

export const NO_SUMS = { geofencePositions: 0, filesBytes: 0 }

export type Sum = keyof typeof NO_SUMS

export type UsesRow = Row & { [sum in Sum]: number } & {
  /** Number of records of `USES_OF_ONE` that have files. */
  withFiles: number
}
