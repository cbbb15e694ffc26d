import type { TableDeclaration, RowChange, Row } from '../kernel/table.ts'

export interface StoredRow<R extends Row = Row> {
  scope: string
  id: string
  row: R
}

/**
 * A question to one table within one scope. All conditions hold together; each needs its index declared, else the
 * engine refuses with an Error (a programming fault, not a 400).
 */
export interface Find {
  /** Equality; several values: any of them. A field that is an array matches when one of its members does. */
  where?: { [field: string]: string | number | boolean | readonly (string | number | boolean)[] }
  /** Bounds on one field declared `range`, inclusive. */
  range?: { field: string; from?: string | number; to?: string | number }
  /** Words that must all occur (as beginnings of words, case and accents aside) in the fields declared `text`. */
  text?: string
  /** A field declared `range`; ties by id. Without it: by id. */
  sort?: { field: string; order: 'asc' | 'desc' }
  limit: number
  /** Skips so many rows (for `?page=`). */
  offset?: number
  /** Goes on after the row where the cursor stood; opaque, valid for the same question only. */
  after?: string
  /** Count all that match (costs a pass over index entries, never over rows). */
  total?: boolean
}

export interface Found<R extends Row = Row> {
  rows: StoredRow<R>[]
  total?: number
  /** For `after`; null at the end. */
  next: string | null
}

/** Where a consumer stands: one number for each source that it follows (`all`, or a partition's number). */
export type Checkpoint = { [source: string]: number }

/**
 * Tables of rows, grouped in scopes (an organization's id, or `-` for what belongs to none). Promises of every engine
 * (test/contracts/table-store.ts):
 * - A commit is seen whole or not at all by reads of one scope. Rows and checkpoint are stored together where the engine
 *   can; where it cannot (a cluster), rows come first, so after a crash a checkpoint never names what rows lack, and
 *   applying the same events again is harmless.
 * - A commit is seen by every read that starts after it resolved. It is durable against SIGKILL; a power loss may take
 *   the last moments together with their checkpoint.
 * - A row whose `expiresAt` has passed is not answered, by `get` nor by `find`.
 * - Rows hold what JSON can hold, and Uint8Array. An id takes 1 to 500 bytes; reading a longer one answers no row.
 * - An engine that cannot do its work rejects with a `Failure` `engine_down` and recovers by itself.
 */
export interface TableStore {
  /** Makes the table known; changing a declaration's `version` is a new, empty table. Idempotent. */
  declare(table: TableDeclaration): Promise<void>
  get<R extends Row>(table: string, scope: string, id: string): Promise<R | undefined>
  getMany<R extends Row>(table: string, scope: string, ids: readonly string[]): Promise<(R | undefined)[]>
  find<R extends Row>(table: string, scope: string, question: Find): Promise<Found<R>>
  /** Every row of every scope, by scope and id, for comparing, restoring into memory and sweeping. */
  scan<R extends Row>(table: string, scope?: string): AsyncIterable<StoredRow<R>>
  commit(changes: readonly RowChange[], checkpoint?: { consumer: string; at: Checkpoint }): Promise<void>
  /** Stores the row unless one is there; answers the row that was there, or undefined when this one was stored. Atomic over all nodes. */
  putIfAbsent<R extends Row>(change: RowChange & { row: R }): Promise<R | undefined>
  /** Adds one to a counter that begins anew when it has expired, and answers it with its end. Atomic over all nodes. */
  increment(scope: string, id: string, windowMs: number): Promise<{ count: number; expiresAt: number }>
  checkpoint(consumer: string): Promise<Checkpoint | undefined>
  /** Puts tables and checkpoint built under the name `<table>@next` / `<consumer>@next` in the place of the live ones, at once. */
  promote(tables: readonly string[], consumer: string): Promise<void>
  /** Empties `<table>` and forgets the consumer's checkpoint. */
  reset(tables: readonly string[], consumer: string): Promise<void>
  ping(): Promise<void>
  close(): Promise<void>
}
