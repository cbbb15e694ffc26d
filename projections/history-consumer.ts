import type { HistoryStore } from '../src/engines/history-store.ts'
import type { TableStore } from '../src/engines/table-store.ts'
import type { Clock } from '../src/kernel/clock.ts'
import type { PartitionConsumer } from '../src/kit/consumers/partition-consumer.ts'
import { pause, within } from '../src/kit/consumers/retry.ts'
import type { HistoryErasures } from './erasures.ts'
import { HistoryCheckpoints, type OwnedPlace, revisionsToken } from './history-checkpoints.ts'

export interface HistoryServices {
  history: HistoryStore
  tables: TableStore
  clock: Clock
  /** Epoch of the log, from 0. */
  epoch: number
  /** Separates the tokens of one process's life: a restored log has other events under revisions used before. */
  life?: string
  /** Data that must no longer come into the history. */
  erasures: HistoryErasures
  /** Called with each insert that failed; it is tried again after a pause, and meanwhile `handle` waits. */
  onFailure: (error: unknown) => void
}

export interface HistoryBlock {
  table: string
  block: Uint8Array
  /** Replaces the token derived from the entries: such a block is inserted at every attempt. */
  token?: string
}

/** Rows on their way into the history: those of some entries, without erased ones. */
export interface RowBuffer<Entry> {
  readonly rows: number
  readonly isFull: boolean
  add(entry: Entry, partition: number): void
  /** The same entries always give the same rows, except for those erased meanwhile. */
  blocks(): HistoryBlock[] | Promise<HistoryBlock[]>
  clear(): void
}

export interface Placed<Entry> {
  partition: number
  entry: Entry
}

const ENTRY_ROWS = 10_000

/** Keeps entries unchanged until they become blocks. */
export class EntryBuffer<Entry> implements RowBuffer<Entry> {
  rows = 0
  private entries: Placed<Entry>[] = []
  private readonly rowsOf: (entry: Entry) => number
  private readonly blocksOf: (entries: readonly Placed<Entry>[]) => HistoryBlock[] | Promise<HistoryBlock[]>

  /** @param rowsOf number of rows of an entry; 0 for one that only moves the checkpoint */
  constructor(
    rowsOf: (entry: Entry) => number,
    blocksOf: (entries: readonly Placed<Entry>[]) => HistoryBlock[] | Promise<HistoryBlock[]>,
  ) {
    this.rowsOf = rowsOf
    this.blocksOf = blocksOf
  }

  get isFull(): boolean {
    return this.rows >= ENTRY_ROWS
  }

  add(entry: Entry, partition: number): void {
    const rows = this.rowsOf(entry)
    if (rows > 0) this.entries.push({ partition, entry })
    this.rows += rows
  }

  blocks(): HistoryBlock[] | Promise<HistoryBlock[]> {
    return this.entries.length === 0 ? [] : this.blocksOf(this.entries)
  }

  clear(): void {
    this.rows = 0
    this.entries = []
  }
}

export interface HistoryConsumerOptions<Entry> extends HistoryServices {
  name: string
  /** Called twice: one fills while the other one is inserted. */
  buffer(): RowBuffer<Entry>
  /** Age of the oldest entry at which the buffer is inserted, full or not. */
  ageMsMax: number
}

/** Waiting entries, and the first and last revision of each of their partitions. */
interface Filling<Entry> {
  buffer: RowBuffer<Entry>
  from: Map<number, number>
  to: Map<number, number>
}

const RETRY_MS = [100, 500, 2_000, 5_000]
/**
 * Multiple of the last insert's time for which it rests between two, bounded, unless the buffer is full before: an
 * insert of few rows takes the history 8 ms of processor time, one of five times as many 11.
 */
const RESTS = 4
const REST_MS_MAX = 500
/** Longest wait of a leaving partition for the history. */
const LEAVE_MS = 2_000

/**
 * Puts events of partition streams into the history. Two buffers at most are in memory: one that fills and one that is
 * being inserted; when both are full, `handle` waits. The checkpoint is stored after the durable insert, so entries
 * forgotten in a crash are inserted again, which changes nothing.
 */
export class HistoryConsumer<Entry extends { revision: number }> implements PartitionConsumer<Entry> {
  readonly name: string
  onLost: PartitionConsumer<Entry>['onLost']
  private readonly options: HistoryConsumerOptions<Entry>
  private readonly checkpoints: HistoryCheckpoints
  private readonly handled = new Map<number, number>()
  private filling: Filling<Entry>
  private spare: RowBuffer<Entry>
  private inserting: Promise<void> | undefined
  /** The running insert, or the last one. */
  private inserted: Filling<Entry>
  private insertingRows = 0
  private restsUntilMs = Number.NEGATIVE_INFINITY
  private cancelTimer: (() => void) | undefined
  private closed = false
  private readonly counts = { rowsInserted: 0, failures: 0 }

  constructor(options: HistoryConsumerOptions<Entry>) {
    this.name = options.name
    this.options = options
    this.checkpoints = new HistoryCheckpoints(options.tables, options.name)
    this.filling = emptied(options.buffer())
    this.spare = options.buffer()
    this.inserted = emptied(this.spare)
    options.erasures.join(this)
  }

  async load(partition: number): Promise<number> {
    const at =
      (this.checkpoints.has(partition) ? this.handled.get(partition) : undefined) ??
      (await this.checkpoints.take(partition))
    this.handled.set(partition, at)
    await this.options.erasures.knowAt(this.checkpoints.erasedAt(partition))
    return at
  }

  storedThrough(partition: number): number {
    return this.checkpoints.storedAt(partition)
  }

  /** Rows that the history does not take in time are inserted all the same; their checkpoint is the next owner's. */
  async leave(partition: number): Promise<void> {
    await within(this.options.clock, LEAVE_MS, this.flush())
    for (const { from, to } of [this.filling, this.inserted]) {
      from.delete(partition)
      to.delete(partition)
    }
    this.handled.delete(partition)
    this.checkpoints.leave(partition)
  }

  handle(entry: Entry, partition: number): void | Promise<void> {
    if (!this.handled.has(partition)) throw new Error(`partition ${partition} has another owner`)
    const { filling } = this
    if (filling.buffer.isFull) return this.insertFilling().then(() => this.handle(entry, partition))
    filling.buffer.add(entry, partition)
    if (!filling.from.has(partition)) filling.from.set(partition, entry.revision)
    filling.to.set(partition, entry.revision)
    this.handled.set(partition, entry.revision)
    if (filling.buffer.isFull) return this.insertFilling()
    this.insertLater()
  }

  /** Resolves when everything handled so far is in the history and the checkpoint is stored. */
  async flush(): Promise<void> {
    await this.insertFilling()
    await this.inserting
  }

  /** Partitions whose rows were not yet searched for erasures up to that revision. */
  notErased(through: number): OwnedPlace[] {
    return this.checkpoints.notErased(through)
  }

  /** Stores how far erased rows have left the history. */
  async storeErased(): Promise<void> {
    for (const [partition, revision] of this.handled) this.filling.to.set(partition, revision)
    await this.flush()
  }

  /** Inserts the rest, once; gives up where the history does not take it (the log still has it). */
  async close(): Promise<void> {
    this.closed = true
    this.options.erasures.leave(this)
    this.cancelTimer?.()
    await this.flush()
  }

  stats(): { rowsWaiting: number; rowsInserted: number; failures: number } {
    return { ...this.counts, rowsWaiting: this.filling.buffer.rows + this.insertingRows }
  }

  private insertLater(): void {
    if (this.cancelTimer !== undefined) return
    const { ageMsMax, clock, onFailure } = this.options
    const delayMs = Math.max(ageMsMax, this.restsUntilMs - clock.monotonic())
    this.cancelTimer = clock.after(delayMs, () => {
      this.cancelTimer = undefined
      this.insertRested().catch(onFailure)
    })
  }

  private async insertRested(): Promise<void> {
    if (this.inserting === undefined) return this.insertFilling()
    await this.inserting
    if (this.filling.to.size > 0 && !this.closed) this.insertLater()
  }

  /** Resolves when the full buffer is on its way: then the next one can be filled. */
  private async insertFilling(): Promise<void> {
    while (this.inserting !== undefined) await this.inserting
    if (this.filling.to.size === 0) return
    this.cancelTimer?.()
    this.cancelTimer = undefined
    const full = this.filling
    this.filling = emptied(this.spare)
    this.inserted = full
    this.inserting = this.insert(full).finally(() => {
      this.spare = full.buffer
      this.inserting = undefined
    })
  }

  private async insert({ buffer, from, to }: Filling<Entry>): Promise<void> {
    const { history, clock, epoch, life, onFailure } = this.options
    const token = revisionsToken(life ?? epoch, from, to)
    this.insertingRows = buffer.rows
    for (let attempt = 0; ; attempt++) {
      const begunMs = clock.monotonic()
      try {
        for (const { table, block, token: own } of await buffer.blocks())
          await history.insert(table, block, own ?? token)
        const endedMs = clock.monotonic()
        this.restsUntilMs = endedMs + Math.min(REST_MS_MAX, RESTS * (endedMs - begunMs))
        for (const partition of await this.checkpoints.store(to)) {
          this.handled.delete(partition)
          this.onLost?.(partition)
        }
        break
      } catch (error) {
        this.counts.failures++
        onFailure(error)
        if (this.closed) return
        await pause(this.options.clock, RETRY_MS[Math.min(attempt, RETRY_MS.length - 1)])
      }
    }
    this.counts.rowsInserted += buffer.rows
    this.insertingRows = 0
  }
}

const emptied = <Entry>(buffer: RowBuffer<Entry>): Filling<Entry> => {
  buffer.clear()
  return { buffer, from: new Map(), to: new Map() }
}
