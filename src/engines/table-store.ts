import type { Examination } from './examination.ts'
import type { NumberRows, TableDeclaration, RowChange, Row } from '../kernel/table.ts'
import { wordsOf } from '../kernel/words.ts'

export interface StoredRow<R extends Row = Row> {
  scope: string
  id: string
  row: R
}

export const ID_BYTES_MAX = 500

/** Whether a row can have this id. */
export const isRowId = (id: string): boolean => id !== '' && Buffer.byteLength(id) <= ID_BYTES_MAX

export interface Bounds {
  from?: string | number
  to?: string | number
}

/** Value that a field is compared with. */
export type Term = string | number | boolean

export interface Range extends Bounds {
  field: string
  /** The field is circular, as longitudes are: `from` beyond `to` means from there on, or up to there. */
  goesRound?: true
  /** Wider bounds kept by every row that `where` matches: the narrower ones only leave out values between both. */
  keptWithin?: Bounds
  /** Rows that may lie beyond `keptWithin` all the same: those with this value of a field that `where` names. */
  unless?: { field: string; value: Term }
}

/**
 * A question to one table within one scope. All conditions hold together; each needs its index declared, else the
 * engine refuses with an Error (a programming fault, not a 400).
 */
export interface Find {
  /** Equality; several values: any of them. A field that is an array matches when one of its members does. */
  where?: { [field: string]: Term | readonly Term[] }
  /** As `where`, but the field, an array, has every one of these; of those in an inner array, one. */
  every?: { [field: string]: readonly (Term | readonly Term[])[] }
  /** Bounds on one field declared `range`, inclusive. */
  range?: Range
  /** Further bounds, all of which hold. */
  ranges?: readonly Range[]
  /** Words that must all occur (as beginnings of words, case and accents aside) in the fields declared `text`. */
  text?: string
  /** Beside `text`, with the beginnings of words as `wordsOf` makes them: of each group one must occur. */
  words?: readonly (readonly string[])[]
  /**
   * A field declared `range`; ties by id. Without it: by id. `within` are bounds that hold for every row that the other
   * conditions match: only that part of the index is walked.
   */
  sort?: { field: string; order: 'asc' | 'desc'; within?: Bounds }
  limit: number
  /** Rows to skip (for `?page=`). */
  offset?: number
  /** Continues after the row of the cursor; opaque, valid for the same question only. */
  after?: string
  /** Count all matches (costs a pass over index entries, never over rows). */
  total?: boolean
  /** Asked before a write and not again soon: it is not remembered. */
  once?: true
  /** Members that the caller reads, for walks over many rows: an engine may leave out all others. */
  members?: readonly string[]
}

/** Groups in which rows are counted. */
export interface Grouping {
  /** Declared `equality`: by each of its values, none of over 200 bytes. With `stepOf` declared `range`, and texts. */
  field: string
  /** By stretches of values: the last value of the stretch that a value begins, and the next, which sorts after it. */
  stepOf?(value: string): { last: string; next: string }
}

/** The stretch that a value begins. @throws where the next value does not sort after it: counting would never end */
export const stretchFrom = (stepOf: NonNullable<Grouping['stepOf']>, value: string): { last: string; next: string } => {
  const stretch = stepOf(value)
  if (Buffer.compare(Buffer.from(stretch.next), Buffer.from(value)) > 0) return stretch
  throw new Error(`a group that ${JSON.stringify(value)} begins has ${JSON.stringify(stretch.next)} behind it`)
}

/** The conditions of a question, without the form of its answer. */
export type Conditions = Pick<Find, 'where' | 'every' | 'range' | 'ranges' | 'text' | 'words'>

/** Rows of one group: the number for each question. */
export interface Counted {
  /** With `stepOf` the first value of the stretch that a row has. */
  value: Term
  counts: number[]
}

export const rangesOf = ({ range, ranges = [] }: Pick<Find, 'range' | 'ranges'>): readonly Range[] =>
  range === undefined ? ranges : [range, ...ranges]

/** The one or two stretches of values within the bounds. */
export const stretchesOf = ({ from, to, goesRound }: Bounds & Pick<Range, 'goesRound'>): readonly Bounds[] =>
  goesRound === true && from !== undefined && to !== undefined && from > to ? [{ from }, { to }] : [{ from, to }]

export interface Found<R extends Row = Row> {
  rows: StoredRow<R>[]
  total?: number
  /** For `after`; null at the end. */
  next: string | null
}

/** All prefixes of words of a question: of each group one must occur. */
export const wordGroupsOf = ({ text, words = [] }: Pick<Find, 'text' | 'words'>): readonly (readonly string[])[] =>
  text === undefined ? words : [...wordsOf(text).map((word) => [word]), ...words]

/** Position of a consumer: one number for each source that it follows (`all`, or a partition's number). */
export type Checkpoint = { [source: string]: number }

/** A commit's move and its owner: it is applied only while it follows the stored checkpoint. */
export interface CheckpointMove {
  consumer: string
  /** Start of the batch: must equal the stored checkpoint; undefined for none. */
  from: Checkpoint | undefined
  /** End of the batch; left out, only rows are stored and the checkpoint stays. */
  at?: Checkpoint
  /** From `take`. */
  fence: number
}

export const isSameCheckpoint = (one: Checkpoint | undefined, other: Checkpoint | undefined): boolean => {
  if (one === undefined || other === undefined) return one === other
  const sources = Object.keys(one)
  return sources.length === Object.keys(other).length && sources.every((source) => one[source] === other[source])
}

/** Answer of `take`: the checkpoint of the consumer, and the number that its owner shows with each commit. */
export interface Taken {
  at: Checkpoint | undefined
  fence: number
}

/** A commit does not follow the stored checkpoint; nothing of it was applied. */
export class StaleCommit extends Error {
  readonly consumer: string
  readonly stored: Taken
  constructor(consumer: string, stored: Taken) {
    super(`consumer ${consumer} stands elsewhere or has another owner`)
    this.name = 'StaleCommit'
    this.consumer = consumer
    this.stored = stored
  }
}

/**
 * Tables of rows, grouped in scopes (an organization's id, or `-` for rows of none). Promises of every engine
 * (test/contracts/table-store.ts):
 * - Rows have places (`lives` of their table). A commit is seen whole or not at all by reads of one place, but for an
 *   answer of several calls into which commits came twenty times: that is given as it is. Nothing is promised over
 *   several places, neither order nor atomicity: a consumer that writes several must bear that a crash leaves some of
 *   them as they were. Rows always come before their checkpoint, so after a crash a checkpoint never names missing
 *   rows, and applying the same events again is harmless.
 * - A commit with a checkpoint is applied only if the stored one is `from` and no later fence was taken; otherwise it
 *   rejects with `StaleCommit`, rows and checkpoint alike. When the stored checkpoint is already `at` under the same
 *   fence, it was applied before (its answer was lost), and resolves.
 * - A commit is seen by every read that starts after it resolved. It is durable against SIGKILL; a power loss or a
 *   failover may take the last moments together with their checkpoint.
 * - A row whose `expiresAt` has passed is not answered, by `get` nor by `find`.
 * - Answers of `find` are read-only: an engine may give the same objects to others, and freezes shared ones.
 * - Rows hold JSON values, and Uint8Array. An id takes 1 to 500 bytes; reading a longer one answers no row.
 * - An engine that cannot do its work rejects with a `Failure` `engine_down` and recovers by itself.
 */
export interface TableStore {
  /** Rows stored at once before anyone is served, in an engine where larger commits cost less per row. */
  readonly catchUpRowsMax?: number
  /** Declares the table; another `version` is a new, empty table. Idempotent. */
  declare(table: TableDeclaration): Promise<void>
  get<R extends Row>(table: string, scope: string, id: string): Promise<R | undefined>
  getMany<R extends Row>(table: string, scope: string, ids: readonly string[]): Promise<(R | undefined)[]>
  find<R extends Row>(table: string, scope: string, question: Find): Promise<Found<R>>
  /**
   * Counts the matches of each question, by groups; a row whose field is an array counts for each of its members. Empty
   * groups are left out.
   */
  countBy(table: string, scope: string, questions: readonly Conditions[], grouping: Grouping): Promise<Counted[]>
  /** Every row of a scope. Not for tables that live by row. */
  scan<R extends Row>(table: string, scope: string): AsyncIterable<StoredRow<R>>
  /** Every row of every scope, in any order: to compare rebuilt tables, never on a path of service. */
  scanAll<R extends Row>(table: string): AsyncIterable<StoredRow<R>>
  /** @throws StaleCommit, Failure engine_down. Without `move` the rows are stored regardless of other writers. */
  commit(changes: readonly RowChange[], move?: CheckpointMove, numbers?: NumberRows): Promise<void>
  /**
   * Makes the caller the consumer's owner: from now on commits under earlier fences are stale. Fences rise, also over a
   * loss of everything stored.
   */
  take(consumer: string): Promise<Taken>
  /** Stores the row unless one exists; answers the existing row, or undefined if stored. Atomic over all nodes. */
  putIfAbsent<R extends Row>(change: RowChange & { row: R }): Promise<R | undefined>
  /** Adds one to a counter that starts over when it has expired, and answers it with its end. Atomic over all nodes. */
  increment(scope: string, id: string, windowMs: number): Promise<{ count: number; expiresAt: number }>
  checkpoint(consumer: string): Promise<Checkpoint | undefined>
  /** Swaps in tables and checkpoint built as `<table>@next` / `<consumer>@next`, here at once, elsewhere in seconds. */
  promote(tables: readonly string[], consumer: string): Promise<void>
  /** Empties `<table>` and forgets the consumer's checkpoint. */
  reset(tables: readonly string[], consumer: string): Promise<void>
  /** Whether reads of a projected table are rejected until it is built and promoted. */
  isLost(table: string): boolean
  /**
   * Calls the listener whenever some stored data may be lost: after a flush, a failover or a restart of a server, or
   * where another version of Waymark has declared a projected table. Checkpoints may have gone backwards then, or are
   * gone; their owners must take them again.
   */
  onLoss(listener: () => void): void
  ping(): Promise<void>
  /** Shows the servers' other clients that this process is connected, by a name, until its connections end or reopen. */
  showAs?(name: string): Promise<void>
  /** Names of connected processes that have shown themselves. @throws Failure where a server does not tell */
  shown?(): Promise<ReadonlySet<string>>
  /** Announces something to the other processes at once; one that is not listening misses it. @throws Failure engine_down */
  tell?(text: string): Promise<void>
  /** Calls the listener with what processes tell, this one too. */
  hear?(listener: (text: string) => void): void
  /** Tells what `waymark doctor` needs of a server. @throws Failure engine_down */
  examine?(): Promise<Examination>
  /** Copies the state of one moment into an empty folder, while the engine goes on working; embedded engines only. */
  copyTo?(folder: string): Promise<void>
  close(): Promise<void>
}

/** The answers to a question page by page, to the last; `limit` is the size of a page. */
export async function* pagesOf<R extends Row>(
  tables: Pick<TableStore, 'find'>,
  table: string,
  scope: string,
  question: Omit<Find, 'after'>,
): AsyncGenerator<StoredRow<R>[], void> {
  for (let after: string | null | undefined; after !== null; ) {
    const page: Found<R> = await tables.find<R>(table, scope, { ...question, after })
    yield page.rows
    after = page.next
  }
}

/** A store that overrides some calls, and passes the others on. */
export const tablesWith = (store: TableStore, other: Partial<TableStore>): TableStore => ({
  catchUpRowsMax: store.catchUpRowsMax,
  declare: (table) => store.declare(table),
  get: (table, scope, id) => store.get(table, scope, id),
  getMany: (table, scope, ids) => store.getMany(table, scope, ids),
  find: (table, scope, question) => store.find(table, scope, question),
  countBy: (table, scope, questions, grouping) => store.countBy(table, scope, questions, grouping),
  scan: (table, scope) => store.scan(table, scope),
  scanAll: (table) => store.scanAll(table),
  commit: (changes, move, numbers) => store.commit(changes, move, numbers),
  take: (consumer) => store.take(consumer),
  putIfAbsent: (change) => store.putIfAbsent(change),
  increment: (scope, id, windowMs) => store.increment(scope, id, windowMs),
  checkpoint: (consumer) => store.checkpoint(consumer),
  promote: (tables, consumer) => store.promote(tables, consumer),
  reset: (tables, consumer) => store.reset(tables, consumer),
  isLost: (table) => store.isLost(table),
  onLoss: (listener) => store.onLoss(listener),
  ...(store.showAs !== undefined && { showAs: store.showAs.bind(store) }),
  ...(store.shown !== undefined && { shown: store.shown.bind(store) }),
  ...(store.tell !== undefined && { tell: store.tell.bind(store) }),
  ...(store.hear !== undefined && { hear: store.hear.bind(store) }),
  ...(store.examine !== undefined && { examine: store.examine.bind(store) }),
  ...(store.copyTo !== undefined && { copyTo: store.copyTo.bind(store) }),
  ping: () => store.ping(),
  close: () => store.close(),
  ...other,
})
