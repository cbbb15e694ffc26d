import type { NumberRows, TableDeclaration } from '../../kernel/table.ts'
import type { CheckpointMove, Taken } from '../table-store.ts'
import type { TableRecord } from './layout.ts'

/** One change as it travels to the writer: table, scope, id, packed row or null, expiresAt or 0. */
export type PackedChange = [table: string, scope: string, id: string, row: Buffer | null, expiresAt: number]

/** Requests of the store to its writer thread; every job is one step of a transaction. */
export type Job =
  | { kind: 'declare'; table: TableDeclaration }
  | { kind: 'commit'; parts: Uint8Array[]; move?: CheckpointMove; numbers?: NumberRows }
  | { kind: 'take'; consumer: string }
  | { kind: 'putIfAbsent'; part: Uint8Array }
  | { kind: 'increment'; scope: string; id: string; windowMs: number }
  | { kind: 'promote'; tables: readonly string[]; consumer: string }
  | { kind: 'reset'; tables: readonly string[]; consumer: string }
  | { kind: 'ping' }
  | { kind: 'clear' }
  | { kind: 'close' }

export interface JobMessage {
  no: number
  now: number
  job: Job
}

export type JobResult =
  | { records: [name: string, record: TableRecord][] }
  | { row: Uint8Array | undefined }
  | { taken: Taken }
  | { stale: Taken }
  | { count: number; expiresAt: number }
  | undefined

/** `broken` is an error after which nothing may be written: the process has to end. */
export type Answer =
  | { no: number; result: JobResult }
  | { no: number; error: string; isFault: boolean }
  | { no: 0; broken: { code: number | undefined; message: string } }

export interface WriterSettings {
  path: string
  bytesMax: number
}
