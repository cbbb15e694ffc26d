import type { HistoryFormat } from '../history-store.ts'
import type { NativeCalls } from './native-calls.ts'

/** Messages from the main thread to the worker with the sessions. `id` names an operation until `end` or `failed`. */
export type Request =
  | { kind: 'command'; id: number; sql: string }
  | { kind: 'insert'; id: number; table: string; token: string; block: Uint8Array }
  | { kind: 'query'; id: number; sql: string; format: HistoryFormat; deadlineMs: number }
  /** Requests one more chunk; a query begins with CREDIT of them. */
  | { kind: 'pull'; id: number }
  | { kind: 'cancel'; id: number }
  | { kind: 'close' }
  /** Throws an uncaught error, for tests of its effects. */
  | { kind: 'crash' }

export type Reply =
  | { kind: 'ready' }
  /** No further answers come; the thread ends when its native calls have returned. */
  | { kind: 'dying'; message: string }
  | { kind: 'chunk'; id: number; bytes: Uint8Array }
  | { kind: 'end'; id: number }
  /** `code` is ClickHouse's number of the exception, where it has one. */
  | { kind: 'failed'; id: number; message: string; code?: number; late?: boolean }
  | { kind: 'closed' }

export interface WorkerOptions {
  path: string
  /** Holds incoming blocks; emptied at the start. */
  scratchPath: string
  /** Command-line arguments of the engine, one list for every session. */
  engineArguments: string[]
}

export interface WorkerData extends WorkerOptions {
  calls: NativeCalls
}

/** Chunks of one query that may be under way before the reader has taken any. */
export const CREDIT = 2
