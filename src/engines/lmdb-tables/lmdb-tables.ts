import type { Clock } from '../../kernel/clock.ts'
import { Failure } from '../../kernel/errors.ts'
import type { NumberRows, Row, RowChange, TableDeclaration } from '../../kernel/table.ts'
import { type DataFolder, lockDataFolder } from '../data-folder.ts'
import { KnownAnswers } from './answers.ts'
import { countGroups } from './count.ts'
import { Finder } from './find.ts'
import type { Job, JobResult } from './jobs.ts'
import { idBytes, openTableEnvironment, type TableEnvironment, type TableRecord, unpack } from './layout.ts'
import { sendable } from './number-rows.ts'
import { packOne, packParts } from './pack.ts'
import { checkQuestion } from './question.ts'
import { openTableReaders, type TableReaders } from './readers.ts'
import { RowReader } from './reads.ts'
import type { FindSource } from './sets.ts'
import { type StartWriter, WriterThread } from './thread.ts'
import { checkpointKey } from './writer.ts'
import {
  type Checkpoint,
  type CheckpointMove,
  type Conditions,
  type Counted,
  type Find,
  type Found,
  type Grouping,
  StaleCommit,
  type StoredRow,
  type TableStore,
  type Taken,
} from '../table-store.ts'

export interface LmdbTableStoreOptions {
  path: string
  clock: Clock
  /** Bytes of rows above which rows are refused as for a full disk; without it the disk is the limit. */
  mapBytesMax?: number
  /** Starts what writes; by default, a thread. */
  startWriter?: StartWriter
}

const PACKING_COMMITS_MAX = 10_000
/** A transaction writes each page once: 84,000 tasks and records wrote 5.4 GB in commits of 2,048 rows, 0.7 so. */
const CATCH_UP_ROWS_MAX = 16_384

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
    const reader = new RowReader(env, options.clock)
    const answered = (): void => {
      env.root.resetReadTxn()
      reader.committed()
    }
    const thread = await WriterThread.open(settings, options.clock, answered, options.startWriter)
    return new LmdbTableStore({ folder, env, thread, reader, clock: options.clock })
  } catch (error) {
    folder.release()
    throw error
  }
}

interface StoreParts {
  folder: DataFolder
  env: TableEnvironment
  thread: WriterThread
  reader: RowReader
  clock: Clock
}

class LmdbTableStore implements TableStore {
  readonly catchUpRowsMax = CATCH_UP_ROWS_MAX
  private readonly folder: DataFolder
  private readonly env: TableEnvironment
  private readonly readers: TableReaders
  private readonly thread: WriterThread
  private readonly clock: Clock
  private readonly reader: RowReader
  private readonly answers = new KnownAnswers()
  private readonly records = new Map<string, TableRecord>()
  private readonly lives = new Map<string, NonNullable<TableDeclaration['lives']>>()
  private readonly shared = new Set<string>()
  private packing: Promise<unknown> = Promise.resolve()
  private packingCount = 0
  private isClosed = false

  constructor({ folder, env, thread, reader, clock }: StoreParts) {
    this.folder = folder
    this.env = env
    this.readers = openTableReaders(env)
    this.thread = thread
    this.clock = clock
    this.reader = reader
    // Last work of the dead thread was not answered.
    thread.restarted = (records) => {
      for (const [name, record] of records) if (this.records.has(name)) this.records.set(name, record)
    }
  }

  async declare(table: TableDeclaration): Promise<void> {
    this.rename(await this.thread.run({ kind: 'declare', table }, this.clock.now()))
    this.lives.set(table.name, table.lives ?? 'organization')
    if (table.isShared === true) this.shared.add(table.name)
  }

  async get<R extends Row>(table: string, scope: string, id: string): Promise<R | undefined> {
    return this.reader.read<R>(this.recordOf(table), scope, id, this.shared.has(table))
  }

  async getMany<R extends Row>(table: string, scope: string, ids: readonly string[]): Promise<(R | undefined)[]> {
    const record = this.recordOf(table)
    return ids.map((id) => this.reader.read<R>(record, scope, id))
  }

  async find<R extends Row>(table: string, scope: string, question: Find): Promise<Found<R>> {
    checkQuestion(table, this.recordOf(table), question)
    const answer = (source: FindSource): Promise<Found<R>> => new Finder(source, question, this.answers).find<R>()
    const none = question.total === true ? { rows: [], total: 0, next: null } : { rows: [], next: null }
    return this.onSnapshot(table, scope, none, answer)
  }

  async countBy(
    table: string,
    scope: string,
    questions: readonly Conditions[],
    grouping: Grouping,
  ): Promise<Counted[]> {
    for (const question of questions) checkQuestion(table, this.recordOf(table), { ...question, limit: 1 })
    const groups = (source: FindSource): Promise<Counted[]> => countGroups(source, questions, grouping, this.answers)
    return this.onSnapshot(table, scope, [], groups)
  }

  /** Result of `run` on one snapshot; `none` where nothing was ever stored under the scope. */
  private async onSnapshot<Answer>(
    table: string,
    scope: string,
    none: Answer,
    answer: (source: FindSource) => Promise<Answer>,
  ): Promise<Answer> {
    const record = this.recordOf(table)
    this.checkIsAsked(table)
    const transaction = this.env.root.useReadTransaction()
    try {
      const scopeNumber = this.reader.scopeNumber(scope)
      if (scopeNumber === undefined) return none
      const { env, readers } = this
      return await answer({ env, readers, transaction, record, scope, scopeNumber, now: this.clock.now() })
    } finally {
      transaction.done()
    }
  }

  async *scan<R extends Row>(table: string, scope: string): AsyncGenerator<StoredRow<R>> {
    this.checkIsAsked(table)
    yield* this.reader.scanScope<R>(() => this.recordOf(table), scope)
  }

  async *scanAll<R extends Row>(table: string): AsyncGenerator<StoredRow<R>> {
    yield* this.reader.scan<R>(() => this.recordOf(table))
  }

  async commit(changes: readonly RowChange[], move?: CheckpointMove, numbers?: NumberRows): Promise<void> {
    this.checkOpen()
    this.checkChanges(changes, move)
    if (numbers !== undefined) this.recordOf(numbers.table)
    if (changes.length === 0 && move === undefined && numbers === undefined) return
    if (this.packingCount >= PACKING_COMMITS_MAX) throw new Failure('overloaded')
    this.packingCount += 1
    // One after the other, so that commits count in the order of their requests.
    const sent = this.packing.then(async () => {
      const parts = await packParts(changes)
      const sentNumbers = numbers && sendable(numbers)
      const job: Job = { kind: 'commit', parts, ...(move && { move }), ...(sentNumbers && { numbers: sentNumbers }) }
      const transfer = [...parts, sentNumbers?.values ?? []].flat().map(({ buffer }) => buffer)
      return { done: this.thread.run(job, this.clock.now(), transfer) }
    })
    const packed = (): void => {
      this.packingCount -= 1
    }
    this.packing = sent.then(packed, packed)
    const result = await (await sent).done
    if (move !== undefined && result !== undefined && 'stale' in result)
      throw new StaleCommit(move.consumer, result.stale)
  }

  async take(consumer: string): Promise<Taken> {
    return ((await this.thread.run({ kind: 'take', consumer }, this.clock.now())) as { taken: Taken }).taken
  }

  async putIfAbsent<R extends Row>(change: RowChange & { row: R }): Promise<R | undefined> {
    this.recordOf(change.table)
    const part = packOne(change)
    const result = (await this.thread.run({ kind: 'putIfAbsent', part }, this.clock.now(), [part.buffer])) as {
      row: Uint8Array | undefined
    }
    return result.row === undefined ? undefined : unpack<R>(result.row)
  }

  async increment(scope: string, id: string, windowMs: number): Promise<{ count: number; expiresAt: number }> {
    idBytes(id)
    return (await this.thread.run({ kind: 'increment', scope, id, windowMs }, this.clock.now())) as {
      count: number
      expiresAt: number
    }
  }

  async checkpoint(consumer: string): Promise<Checkpoint | undefined> {
    this.checkOpen()
    const value = this.env.meta.getBinary(checkpointKey(consumer))
    // It may be of a commit whose answer is on its way: rows remembered so far are older than what it says.
    this.reader.committed()
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

  /** Stored transactions are never lost. */
  isLost(): boolean {
    return false
  }

  onLoss(): void {}

  async ping(): Promise<void> {
    this.checkOpen()
    await this.thread.run({ kind: 'ping' }, this.clock.now())
  }

  async copyTo(folder: string): Promise<void> {
    await this.env.root.backup(folder, true)
  }

  async close(): Promise<void> {
    if (this.isClosed) return
    this.isClosed = true
    await this.packing
    await this.thread.close(this.clock.now())
    await this.env.root.close()
    this.folder.release()
  }

  // The writer clears replaced tables only after this thread reads the successor.
  private rename(result: JobResult): void {
    for (const [name, record] of (result as { records: [string, TableRecord][] }).records)
      this.records.set(name, record)
    void this.thread.run({ kind: 'clear' }, this.clock.now()).catch(() => undefined)
  }

  private recordOf(table: string): TableRecord {
    this.checkOpen()
    const record = this.records.get(table)
    if (record === undefined) throw new Error(`Table ${table} was not declared.`)
    return record
  }

  private checkChanges(changes: readonly RowChange[], move: CheckpointMove | undefined): void {
    for (const table of new Set(changes.map((change) => change.table))) {
      this.recordOf(table)
      if (move === undefined || this.lives.get(table) !== 'partition') continue
      const foreign = changes.find((change) => change.table === table && change.scope !== move.consumer)
      if (foreign !== undefined)
        throw new Error(`Rows of ${table} under ${foreign.scope} are not those of ${move.consumer}.`)
    }
  }

  private checkIsAsked(table: string): void {
    if (this.lives.get(table) === 'row')
      throw new Error(`The rows of table ${table} live by themselves: ask for them by id.`)
  }

  private checkOpen(): void {
    if (this.isClosed) throw new Failure('engine_down', { message: 'The tables are closed.' })
  }
}
