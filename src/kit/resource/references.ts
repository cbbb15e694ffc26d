import type { TableStore } from '../../engines/table-store.ts'
import { Failure, invalid } from '../../kernel/errors.ts'
import type { Row } from '../../kernel/table.ts'

/** Where records of one kind name another kind: the table, and its field (declared `equality`). */
export interface Reference {
  table: string
  field: string
}

/** What is said of an id that the organization, or the caller in it, has nothing for. */
export const NAMES_NOTHING = 'names nothing in this organization'

/** The record that an id of a body names. @throws Failure invalid with the path when the organization has none. */
export const assertExists = async <R extends Row>(
  tables: Pick<TableStore, 'get'>,
  table: string,
  organizationId: string,
  id: string,
  path: string,
): Promise<R> => {
  const row = await tables.get<R>(table, organizationId, id)
  if (row === undefined) throw invalid(path, NAMES_NOTHING)
  return row
}

/** @throws Failure conflict when a record of the organization still names this id. */
export const assertUnused = async (
  tables: Pick<TableStore, 'find'>,
  organizationId: string,
  id: string,
  references: readonly Reference[],
): Promise<void> => {
  for (const { table, field } of references) {
    const { rows } = await tables.find(table, organizationId, { where: { [field]: id }, limit: 1 })
    if (rows.length > 0)
      throw new Failure('conflict', { message: `It is still in use by ${table}.`, extra: { usedBy: table } })
  }
}
