import type { HistoryFormat } from '../history-store.ts'
import type { NativeCalls } from './native-calls.ts'

/** What the main thread tells the worker that holds the sessions. `id` names one operation until its `end` or `failed`. */
export type Request =
  | { kind: 'command'; id: number; sql: string }
  | { kind: 'insert'; id: number; table: string; token: string; block: Uint8Array }
  | { kind: 'query'; id: number; sql: string; format: HistoryFormat; deadlineMs: number }
  /** One more chunk is wanted; a query begins with CREDIT of them. */
  | { kind: 'pull'; id: number }
  | { kind: 'cancel'; id: number }
  | { kind: 'close' }
  /** Throws where nobody catches, for tests of what follows. */
  | { kind: 'crash' }

export type Reply =
  | { kind: 'ready' }
  /** Nothing is answered any more; the thread ends when its native calls are back. */
  | { kind: 'dying'; message: string }
  | { kind: 'chunk'; id: number; bytes: Uint8Array }
  | { kind: 'end'; id: number }
  /** `code` is ClickHouse's number of the exception, where it has one. */
  | { kind: 'failed'; id: number; message: string; code?: number; late?: boolean }
  | { kind: 'closed' }

export interface WorkerOptions {
  path: string
  /** Holds blocks on their way in; emptied at the start. */
  scratchPath: string
  /** Command-line arguments of the engine, one list for every session. */
  engineArguments: string[]
}

export interface WorkerData extends WorkerOptions {
  calls: NativeCalls
}

/** Chunks of one query that may be on their way before the reader has taken any. */
export const CREDIT = 2
