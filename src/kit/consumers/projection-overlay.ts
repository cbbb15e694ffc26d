import type { Found, TableStore } from '../../engines/table-store.ts'
import { breathe } from '../../kernel/breath.ts'
import type { RecordedEvent } from '../../kernel/event.ts'
import type { Row, RowChange } from '../../kernel/table.ts'
import type { Projection, Rows } from './projection.ts'

const PAGE_ROWS = 500

/** Rows, and bytes of the events behind them, that a projection that is behind stores at once. */
const ROWS_AT_ONCE_MAX = 2_048
const EVENT_BYTES_AT_ONCE_MAX = 8 * 1024 * 1024

/** Rows that a portion remembers as read: those that each event looks at, such as the type of a record. */
const READ_ROWS_MAX = 256

/**
 * The rows of a projection between the log and the tables. While a portion is being stored, later events are applied on
 * top of it, and a row changed twice is stored once.
 */
export class ProjectedRows {
  private readonly projection: Projection
  /** Undefined: every event is an input. */
  private readonly inputs: ReadonlySet<string> | undefined
  private readonly tables: TableStore
  private readonly suffix: string
  private rows: RowsOverlay
  private eventBytes = 0
  /** Whether any event since the last `take` was an input. */
  hasInputs = false

  constructor(projection: Projection, tables: TableStore, suffix = '') {
    this.projection = projection
    this.inputs = projection.isBuiltOnce === true ? undefined : new Set(projection.inputs)
    this.tables = tables
    this.suffix = suffix
    this.rows = new RowsOverlay(tables, suffix)
  }

  /** Applies events in order on top of the stored rows. */
  async apply(events: readonly RecordedEvent[]): Promise<void> {
    for (const event of events) {
      if (this.inputs?.has(event.type) === false) continue
      const pause = breathe()
      if (pause !== undefined) await pause
      this.hasInputs = true
      this.eventBytes += event.data.byteLength
      const applying = this.projection.apply(event, this.rows)
      if (applying !== undefined) await applying
    }
  }

  /** Whether the present rows have to be stored before more is applied. */
  areMany(rowsMax = ROWS_AT_ONCE_MAX): boolean {
    return this.rows.size >= rowsMax || this.eventBytes >= EVENT_BYTES_AT_ONCE_MAX
  }

  /**
   * The rows to be stored next, undefined where no input came. All rows taken before must be stored before more is
   * applied.
   */
  take(): RowChange[] | undefined {
    const changes = this.hasInputs ? this.rows.take() : undefined
    this.rows = new RowsOverlay(this.tables, this.suffix, this.rows)
    this.eventBytes = 0
    this.hasInputs = false
    return changes
  }
}

/** The rows of a batch on top of the stored ones: nothing is stored until the whole batch is applied. */
export class RowsOverlay implements Rows {
  private readonly tables: Pick<TableStore, 'get' | 'find'>
  private readonly suffix: string
  private readonly changes = new Map<string, RowChange>()
  private readonly under: ReadonlyMap<string, RowChange> | undefined
  private readonly read = new Map<string, Row | undefined>()

  /**
   * `suffix` is put behind the name of each table (`@next` for one that is built beside the live one). `under` are rows on
   * their way to the tables.
   */
  constructor(tables: Pick<TableStore, 'get' | 'find'>, suffix = '', under?: RowsOverlay) {
    this.tables = tables
    this.suffix = suffix
    this.under = under?.changes
  }

  get size(): number {
    return this.changes.size
  }

  async get<R extends Row>(table: string, scope: string, id: string): Promise<R | undefined> {
    const key = keyOf(table, scope, id)
    const change = this.changeOf(key)
    if (change !== undefined) return (change.row ?? undefined) as R | undefined
    if (this.read.has(key)) return this.read.get(key) as R | undefined
    const row = await this.tables.get<R>(table + this.suffix, scope, id)
    if (this.read.size < READ_ROWS_MAX) this.read.set(key, row)
    return row
  }

  async findBy<R extends Row>(
    table: string,
    scope: string,
    field: string,
    value: string,
    limit = Number.POSITIVE_INFINITY,
  ): Promise<{ id: string; row: R }[]> {
    const found: { id: string; row: R }[] = []
    const isFound = (change: RowChange): boolean =>
      change.table === table + this.suffix && change.scope === scope && matches(change.row?.[field], value)
    const add = (change: RowChange): void => {
      if (found.length < limit && isFound(change)) found.push({ id: change.id, row: change.row as R })
    }
    // Before the tables, where all rows changed since are passed over.
    for (const change of this.changes.values()) add(change)
    for (const [key, change] of this.under ?? []) if (!this.changes.has(key)) add(change)
    for (let after: string | null | undefined; after !== null && found.length < limit; ) {
      const page: Found<R> = await this.tables.find<R>(table + this.suffix, scope, {
        where: { [field]: value },
        limit: Math.min(PAGE_ROWS, 4 * limit),
        after,
      })
      for (const { id, row } of page.rows)
        if (this.changeOf(keyOf(table, scope, id)) === undefined) found.push({ id, row })
      after = page.next
    }
    return found
  }

  put(table: string, scope: string, id: string, row: Row, expiresAt?: number): void {
    this.changes.set(keyOf(table, scope, id), { table: table + this.suffix, scope, id, row, expiresAt })
  }

  delete(table: string, scope: string, id: string): void {
    this.changes.set(keyOf(table, scope, id), { table: table + this.suffix, scope, id, row: null })
  }

  /** The rows to be committed. */
  take(): RowChange[] {
    return [...this.changes.values()]
  }

  private changeOf(key: string): RowChange | undefined {
    return this.changes.get(key) ?? this.under?.get(key)
  }
}

const keyOf = (table: string, scope: string, id: string): string => `${table}\u0000${scope}\u0000${id}`

const matches = (field: unknown, value: string): boolean =>
  field === value || (Array.isArray(field) && field.includes(value))
