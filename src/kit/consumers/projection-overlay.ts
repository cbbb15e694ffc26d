import type { TableStore } from '../../engines/table-store.ts'
import { breathe } from '../../kernel/breath.ts'
import type { RecordedEvent } from '../../kernel/event.ts'
import type { Row, RowChange } from '../../kernel/table.ts'
import type { Projection, Rows } from './projection.ts'

const PAGE_ROWS = 500

/** Applies events in order on top of the stored rows and answers what is to be committed. */
export const applyBatch = async (
  projection: Projection,
  inputs: ReadonlySet<string>,
  events: readonly RecordedEvent[],
  tables: TableStore,
  suffix = '',
): Promise<RowChange[]> => {
  const rows = new RowsOverlay(tables, suffix)
  for (const event of events) {
    if (!inputs.has(event.type)) continue
    const pause = breathe()
    if (pause !== undefined) await pause
    const applying = projection.apply(event, rows)
    if (applying !== undefined) await applying
  }
  return rows.take()
}

/** The rows of a batch on top of the stored ones: nothing is stored until the whole batch is applied. */
export class RowsOverlay implements Rows {
  private readonly tables: Pick<TableStore, 'get' | 'find'>
  private readonly suffix: string
  private readonly changes = new Map<string, RowChange>()

  /** `suffix` is put behind the name of each table (`@next` for one that is built beside the live one). */
  constructor(tables: Pick<TableStore, 'get' | 'find'>, suffix = '') {
    this.tables = tables
    this.suffix = suffix
  }

  async get<R extends Row>(table: string, scope: string, id: string): Promise<R | undefined> {
    const change = this.changes.get(keyOf(table, scope, id))
    if (change !== undefined) return (change.row ?? undefined) as R | undefined
    return this.tables.get<R>(table + this.suffix, scope, id)
  }

  async findBy<R extends Row>(
    table: string,
    scope: string,
    field: string,
    value: string,
  ): Promise<{ id: string; row: R }[]> {
    const found: { id: string; row: R }[] = []
    let after: string | undefined
    do {
      const page = await this.tables.find<R>(table + this.suffix, scope, {
        where: { [field]: value },
        limit: PAGE_ROWS,
        after,
      })
      for (const { id, row } of page.rows) if (!this.changes.has(keyOf(table, scope, id))) found.push({ id, row })
      after = page.next ?? undefined
    } while (after !== undefined)
    for (const change of this.changes.values()) {
      if (
        change.table === table + this.suffix &&
        change.scope === scope &&
        change.row !== null &&
        matches(change.row[field], value)
      ) {
        found.push({ id: change.id, row: change.row as R })
      }
    }
    return found
  }

  put(table: string, scope: string, id: string, row: Row, expiresAt?: number): void {
    this.changes.set(keyOf(table, scope, id), { table: table + this.suffix, scope, id, row, expiresAt })
  }

  delete(table: string, scope: string, id: string): void {
    this.changes.set(keyOf(table, scope, id), { table: table + this.suffix, scope, id, row: null })
  }

  /** What is to be committed. */
  take(): RowChange[] {
    return [...this.changes.values()]
  }
}

const keyOf = (table: string, scope: string, id: string): string => `${table}\u0000${scope}\u0000${id}`

const matches = (field: unknown, value: string): boolean =>
  field === value || (Array.isArray(field) && field.includes(value))
