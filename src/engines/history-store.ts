import type { Examination } from './examination.ts'

/** Formats of answers, as ClickHouse names them. */
export type HistoryFormat =
  | 'JSONEachRow'
  | 'JSONCompactEachRow'
  | 'CSVWithNames'
  | 'Native'
  | 'RowBinary'
  | 'RowBinaryWithNamesAndTypes'

/** Values for `{name:Type}` placeholders. Values never become part of the SQL text. */
export type HistoryParameters = { [name: string]: string | number | boolean | readonly string[] | readonly number[] }

/** Owner of rows that leave the history for ever: an organization, or one tracker. */
export interface HistoryErasure {
  organizationId: string
  trackerId?: string
  /**
   * For a tracker: rows up to this time, ms since the epoch, since a tracker may be made again under its id. A run goes
   * by the time of its event. Left out: rows of any time.
   */
  through?: number
}

/**
 * The location history: ClickHouse, in process or as a server. One SQL text, two transports. Promises of every engine
 * (test/contracts/history-store.ts):
 * - An insert is durable when it resolves (`fsync_after_insert`, or the quorum); SIGKILL loses none.
 * - An insert under the same `token` as one of the last hundred into that table inserts nothing; the token only saves work.
 * - A query is answered as a stream of chunks as the engine makes them, never held whole; ending the iteration early ends the query.
 * - Queries run beside each other and beside inserts; more than the bound are refused with a `Failure` `overloaded`.
 * - Erased rows are in no answer to a later query. A concurrent insert may bring some of them back: inserters know the
 *   erasures (projections/erasures.ts).
 * - Nothing blocks the event loop; an engine that cannot do its work rejects with a `Failure` `engine_down` and recovers by itself.
 */
export interface HistoryStore {
  /** Name of the cluster whose shards hold the rows; undefined: one server, or this process, holds them all. */
  readonly cluster?: string
  /** DDL and mutations. */
  command(sql: string, parameters?: HistoryParameters): Promise<void>
  /** Blocks in ClickHouse's Native format with the table's columns. The caller must not use their memory afterwards. */
  insert(table: string, block: Uint8Array, token: string): Promise<void>
  /** Removes their rows from every table; may be repeated. The bytes leave the disk soon after, in the background. */
  erase(erasures: readonly HistoryErasure[]): Promise<void>
  /** `sql` has no FORMAT clause. */
  query(
    sql: string,
    parameters: HistoryParameters | undefined,
    format: HistoryFormat,
    signal?: AbortSignal,
  ): AsyncIterable<Uint8Array>
  /** Small answers, as objects (64-bit integers as numbers). @throws Failure too_large over 10,000 rows. */
  rows<R extends object>(sql: string, parameters?: HistoryParameters): Promise<R[]>
  ping(): Promise<void>
  /** Reports the facts about a server for `waymark doctor`. */
  examine?(): Promise<Examination>
  close(): Promise<void>
}

/** The query side of a history. */
export type HistoryReader = Pick<HistoryStore, 'query' | 'rows'>
