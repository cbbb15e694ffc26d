import type { Row } from '../../kernel/table.ts'
import type { Rows } from '../consumers/projection.ts'

/** An array field (declared `equality`) of a table, in which rows keep the ids that name them. */
export interface LinkField {
  table: string
  scope: string
  field: string
}

/** Makes exactly these rows name `id` in their array field: the other side of a list of members. */
export const linkRows = async (
  rows: Rows,
  { table, scope, field }: LinkField,
  id: string,
  members: readonly string[],
): Promise<void> => {
  for (const linked of await rows.findBy(table, scope, field, id)) {
    if (members.includes(linked.id)) continue
    rows.put(table, scope, linked.id, {
      ...linked.row,
      [field]: idsOf(linked.row, field).filter((other) => other !== id),
    })
  }
  for (const member of members) {
    const row = await rows.get(table, scope, member)
    if (row === undefined || idsOf(row, field).includes(id)) continue
    rows.put(table, scope, member, { ...row, [field]: [...idsOf(row, field), id] })
  }
}

const idsOf = (row: Row, field: string): string[] => (row[field] as string[] | undefined) ?? []
