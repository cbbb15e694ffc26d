export type Row = { [field: string]: unknown }

/** The name of a scope for rows that belong to no organization. */
export const NO_ORGANIZATION = '-'

/** A table and the questions that may be asked of it. */
export interface TableDeclaration {
  name: string
  /** Raise it when the shape of rows changes: the table is then built anew from the log. */
  version: number
  /**
   * Rows that are stored in one place, so that a commit of them is atomic and a question is answered there:
   * - `organization` (left out): rows of a scope. The checkpoints of their consumers lie elsewhere.
   * - `partition`: rows of a scope, which is the name of the one consumer that writes them, with its checkpoint.
   * - `row`: each by itself; only asked for by id, not found or scanned.
   */
  lives?: 'organization' | 'partition' | 'row'
  /** Fields that `where` may name (values, or arrays of values). */
  equality?: readonly string[]
  /**
   * Fields that `range` and `sort` may name: all numbers or all strings, of which the first 600 bytes count at least; rows
   * without the field come first.
   */
  range?: readonly string[]
  /** Fields of `range` whose index lacks rows without the field: only questions that match none may sort by them. */
  sparse?: readonly string[]
  /** Fields whose words `text` searches. */
  text?: readonly string[]
  /**
   * One projection builds all of its rows from the log and puts them in place as a whole (`promote`): until then an
   * engine whose table is new, or was lost, rejects reads of it.
   */
  isProjected?: boolean
  /** Small rows that each request asks for: an engine may answer the same object while one is unchanged, frozen. */
  isShared?: boolean
}

/** A row to store, or with `row: null` to delete. */
export interface RowChange {
  table: string
  scope: string
  id: string
  row: Row | null
  /** ms since the epoch after which the row is gone. */
  expiresAt?: number
}

/**
 * Rows of one table to store whose members are numbers, beside one with the id and one with the scope. They come many at a
 * time and again and again: an engine may store them without making an object of each.
 */
export interface NumberRows {
  table: string
  /** Of each row, which may not stand here twice. */
  ids: readonly string[]
  scopes: readonly string[]
  idField: string
  scopeField: string
  fields: readonly string[]
  /** The numbers of the first row in the order of `fields`, then those of the next. */
  values: Float64Array<ArrayBuffer>
}

/** The same rows as objects. */
export const rowChangesOf = ({ table, ids, scopes, idField, scopeField, fields, values }: NumberRows): RowChange[] =>
  ids.map((id, i) => {
    const row: Row = { [idField]: id }
    for (const [place, field] of fields.entries()) row[field] = values[i * fields.length + place]
    row[scopeField] = scopes[i]
    return { table, scope: scopes[i], id, row }
  })
