import type { Clock } from '../kernel/clock.ts'
import { Failure } from '../kernel/errors.ts'
import type { Row, RowChange, TableDeclaration } from '../kernel/table.ts'
import { type DataFolder, lockDataFolder } from './data-folder.ts'
import { storedBytes } from './table-store.lmdb-apply.ts'
import { Finder } from './table-store.lmdb-find.ts'
import type { JobResult, PackedChange } from './table-store.lmdb-jobs.ts'
import {
  bufferOf,
  idBytes,
  openTableEnvironment,
  pack,
  rowKey,
  spaceKey,
  type TableEnvironment,
  type TableRecord,
  unpack,
} from './table-store.lmdb-layout.ts'
import { checkQuestion } from './table-store.lmdb-question.ts'
import { openTableReaders, type TableReaders } from './table-store.lmdb-readers.ts'
import { WriterThread } from './table-store.lmdb-thread.ts'
import { checkpointKey } from './table-store.lmdb-writer.ts'
import type { Checkpoint, Find, Found, StoredRow, TableStore } from './table-store.ts'

export interface LmdbTableStoreOptions {
  /** A folder of its own. */
  path: string
  clock: Clock
  /** Rows are refused as for a full disk when they take so many bytes; without it the disk is the limit. */
  mapBytesMax?: number
}

const PART_CHANGES = 500
const SCAN_ROWS_AT_ONCE = 500
const SCOPES_CACHED_MAX = 100_000

/**
 * Tables in an LMDB environment, for one process: this thread reads, a thread of its own writes.
 *
 * @throws Error when another process has the folder.
 */
export const openLmdbTableStore = async (options: LmdbTableStoreOptions): Promise<TableStore> => {
  const folder = lockDataFolder(options.path)
  try {
    const env = openTableEnvironment(options.path)
    const settings = { path: options.path, bytesMax: options.mapBytesMax ?? Number.POSITIVE_INFINITY }
    const thread = await WriterThread.open(settings, () => env.root.resetReadTxn())
    return new LmdbTableStore(folder, env, thread, options.clock)
  } catch (error) {
    folder.release()
    throw error
  }
}

class LmdbTableStore implements TableStore {
  private readonly folder: DataFolder
  private readonly env: TableEnvironment
  private readonly readers: TableReaders
  private readonly thread: WriterThread
  private readonly clock: Clock
  private readonly records = new Map<string, TableRecord>()
  private readonly scopes = new Map<string, number>()
  private packing: Promise<unknown> = Promise.resolve()
  private isClosed = false

  constructor(folder: DataFolder, env: TableEnvironment, thread: WriterThread, clock: Clock) {
    this.folder = folder
    this.env = env
    this.readers = openTableReaders(env)
    this.thread = thread
    this.clock = clock
  }

  async declare(table: TableDeclaration): Promise<void> {
    this.rename(await this.thread.run({ kind: 'declare', table }, this.clock.now()))
  }

  async get<R extends Row>(table: string, scope: string, id: string): Promise<R | undefined> {
    return this.read<R>(this.recordOf(table), scope, id)
  }

  async getMany<R extends Row>(table: string, scope: string, ids: readonly string[]): Promise<(R | undefined)[]> {
    const record = this.recordOf(table)
    return ids.map((id) => this.read<R>(record, scope, id))
  }

  async find<R extends Row>(table: string, scope: string, question: Find): Promise<Found<R>> {
    const record = this.recordOf(table)
    checkQuestion(table, record, question)
    const transaction = this.env.root.useReadTransaction()
    try {
      const number = this.scopeNumber(scope)
      if (number === undefined) return question.total === true ? { rows: [], total: 0, next: null } : { rows: [], next: null }
      const source = { env: this.env, readers: this.readers, transaction, record, scope, scopeNumber: number, now: this.clock.now() }
      return await new Finder(source, question).find<R>()
    } finally {
      transaction.done()
    }
  }

  async *scan<R extends Row>(table: string, scope?: string): AsyncGenerator<StoredRow<R>> {
    if (scope !== undefined) {
      yield* this.scanScope<R>(table, scope)
      return
    }
    let start: Buffer = Buffer.of(0)
    for (;;) {
      const names = [...this.env.scopes.getKeys({ start, limit: SCAN_ROWS_AT_ONCE })].map((key) => bufferOf(key).toString('utf8'))
      for (const name of names) yield* this.scanScope<R>(table, name)
      const last = names.at(-1)
      if (last === undefined) return
      start = Buffer.concat([Buffer.from(last), Buffer.of(0)])
    }
  }

  async commit(changes: readonly RowChange[], checkpoint?: { consumer: string; at: Checkpoint }): Promise<void> {
    if (changes.length === 0 && checkpoint === undefined) return
    // One after the other, so that commits count in the order in which they were asked for.
    const sent = this.packing.then(async () => {
      const parts = await this.packParts(changes)
      const transfer = parts.map((part) => part.buffer as ArrayBuffer)
      return { done: this.thread.run({ kind: 'commit', parts, ...(checkpoint && { checkpoint }) }, this.clock.now(), transfer) }
    })
    this.packing = sent.catch(() => undefined)
    await (await sent).done
  }

  async putIfAbsent<R extends Row>(change: RowChange & { row: R }): Promise<R | undefined> {
    this.recordOf(change.table)
    const part = ownBytes(pack(packedChange(change)))
    const result = (await this.thread.run({ kind: 'putIfAbsent', part }, this.clock.now(), [part.buffer])) as { row: Uint8Array | undefined }
    return result.row === undefined ? undefined : unpack<R>(result.row)
  }

  async increment(scope: string, id: string, windowMs: number): Promise<{ count: number; expiresAt: number }> {
    idBytes(id)
    return (await this.thread.run({ kind: 'increment', scope, id, windowMs }, this.clock.now())) as { count: number; expiresAt: number }
  }

  async checkpoint(consumer: string): Promise<Checkpoint | undefined> {
    this.checkOpen()
    const value = this.env.meta.getBinary(checkpointKey(consumer))
    return value === undefined ? undefined : unpack<Checkpoint>(value)
  }

  async promote(tables: readonly string[], consumer: string): Promise<void> {
    const result = await this.thread.run({ kind: 'promote', tables, consumer }, this.clock.now())
    for (const name of tables) this.records.delete(`${name}@next`)
    this.rename(result)
  }

  async reset(tables: readonly string[], consumer: string): Promise<void> {
    this.rename(await this.thread.run({ kind: 'reset', tables, consumer }, this.clock.now()))
  }

  async ping(): Promise<void> {
    this.checkOpen()
    await this.thread.run({ kind: 'commit', parts: [] }, this.clock.now())
  }

  async close(): Promise<void> {
    if (this.isClosed) return
    this.isClosed = true
    await this.packing
    await this.thread.close(this.clock.now())
    await this.env.root.close()
    this.folder.release()
  }

  private read<R extends Row>(record: TableRecord, scope: string, id: string): R | undefined {
    const number = this.scopeNumber(scope)
    if (number === undefined) return undefined
    const stored = storedBytes(this.env.rows.getBinary(rowKey(spaceKey(record.number, number), id)))
    return stored === undefined || this.hasEnded(stored.expiresAt) ? undefined : unpack<R>(stored.packed)
  }

  private async *scanScope<R extends Row>(table: string, scope: string): AsyncGenerator<StoredRow<R>> {
    const number = this.scopeNumber(scope)
    if (number === undefined) return
    let after: Buffer | undefined
    for (;;) {
      const space = spaceKey(this.recordOf(table).number, number)
      const start: Buffer = Buffer.concat([space, after === undefined ? Buffer.alloc(0) : Buffer.concat([after, Buffer.of(0)])])
      const entries = [...this.env.rows.getRange({ start, end: Buffer.concat([space, Buffer.of(255)]), limit: SCAN_ROWS_AT_ONCE })]
      for (const { key, value } of entries) {
        const stored = storedBytes(value)
        after = Buffer.from(key.subarray(8))
        if (stored !== undefined && !this.hasEnded(stored.expiresAt)) yield { scope, id: after.toString('utf8'), row: unpack<R>(stored.packed) }
      }
      if (entries.length < SCAN_ROWS_AT_ONCE) return
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  private async packParts(changes: readonly RowChange[]): Promise<Uint8Array[]> {
    const parts: Uint8Array[] = []
    for (let start = 0; start < changes.length; start += PART_CHANGES) {
      if (start > 0) await new Promise((resolve) => setImmediate(resolve))
      const some = changes.slice(start, start + PART_CHANGES)
      for (const { table } of some) this.recordOf(table)
      parts.push(ownBytes(pack(some.map(packedChange))))
    }
    return parts
  }

  // The writer clears what was replaced only after this thread reads the successor.
  private rename(result: JobResult): void {
    for (const [name, record] of (result as { records: [string, TableRecord][] }).records) this.records.set(name, record)
    void this.thread.run({ kind: 'clear' }, this.clock.now()).catch(() => undefined)
  }

  private recordOf(table: string): TableRecord {
    this.checkOpen()
    const record = this.records.get(table)
    if (record === undefined) throw new Error(`Table ${table} was not declared.`)
    return record
  }

  private scopeNumber(scope: string): number | undefined {
    const cached = this.scopes.get(scope)
    if (cached !== undefined) return cached
    const number = this.env.scopes.getBinary(Buffer.from(scope))?.readUInt32BE(0)
    if (number === undefined) return undefined
    if (this.scopes.size >= SCOPES_CACHED_MAX) this.scopes.clear()
    this.scopes.set(scope, number)
    return number
  }

  private hasEnded(expiresAt: number): boolean {
    return expiresAt > 0 && expiresAt <= this.clock.now()
  }

  private checkOpen(): void {
    if (this.isClosed) throw new Failure('engine_down', { message: 'The tables are closed.' })
  }
}

const packedChange = ({ table, scope, id, row, expiresAt }: RowChange): PackedChange => {
  idBytes(id)
  return [table, scope, id, row === null ? null : Buffer.from(pack(row)), expiresAt === undefined ? 0 : Math.max(1, Math.floor(expiresAt))]
}

/** A copy that owns its memory, so that it can be handed to the other thread. */
const ownBytes = (bytes: Uint8Array): Uint8Array<ArrayBuffer> => {
  const copy = new Uint8Array(bytes.byteLength)
  copy.set(bytes)
  return copy
}
