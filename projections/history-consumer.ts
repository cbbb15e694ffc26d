import type { HistoryStore } from '../src/engines/history-store.ts'
import type { TableStore } from '../src/engines/table-store.ts'
import type { Clock } from '../src/kernel/clock.ts'
import type { PartitionConsumer } from '../src/kit/consumers/partition-consumer.ts'
import { within } from '../src/kit/consumers/retry.ts'
import { HistoryCheckpoints, revisionsToken } from './history-checkpoints.ts'

export interface HistoryServices {
  history: HistoryStore
  tables: TableStore
  clock: Clock
  /** Epoch of the log, from 0. */
  epoch: number
  /** Called with each insert that failed; it is tried again after a pause, and meanwhile `handle` waits. */
  onFailure: (error: unknown) => void
}

/** An entry and the partition whose stream it stands in. */
export interface Placed<Entry> {
  partition: number
  entry: Entry
}

export interface HistoryBlock {
  table: string
  block: Uint8Array
}

/** What entries become in the history. */
export interface EntryRows<Entry> {
  /** So many rows the entry will be; 0 for one that moves the checkpoint alone. */
  rowsOf(entry: Entry): number
  /** The same entries always give the same rows. */
  blocks(entries: readonly Placed<Entry>[]): HistoryBlock[] | Promise<HistoryBlock[]>
}

export interface HistoryConsumerOptions<Entry> extends HistoryServices, EntryRows<Entry> {
  name: string
  /** Inserted when so many rows wait (default 10,000) … */
  rowsMax?: number
  /** … or the oldest waits so long (default 100 ms). */
  ageMsMax?: number
}

const RETRY_MS = [100, 500, 2_000, 5_000]
/** A partition that goes waits so long at most for the history. */
const LEAVE_MS = 2_000

/**
 * Puts what streams of partitions tell into the history. What is inserted again after a crash changes nothing; the
 * checkpoint is stored after the durable inserts.
 */
export class HistoryConsumer<Entry extends { revision: number }> implements PartitionConsumer<Entry> {
  readonly name: string
  private readonly options: HistoryConsumerOptions<Entry>
  private readonly checkpoints: HistoryCheckpoints
  private readonly handled = new Map<number, number>()
  private waiting: Placed<Entry>[] = []
  private rows = 0
  /** First and last revision of each partition that waits. */
  private from = new Map<number, number>()
  private to = new Map<number, number>()
  /** `to` of what is being inserted, or was last. */
  private inserted = new Map<number, number>()
  private inserting: Promise<void> | undefined
  private cancelTimer: (() => void) | undefined
  private closed = false
  private readonly counts = { rowsInserted: 0, failures: 0 }

  constructor(options: HistoryConsumerOptions<Entry>) {
    this.name = options.name
    this.options = options
    this.checkpoints = new HistoryCheckpoints(options.tables, options.name)
  }

  async load(partition: number): Promise<number> {
    const at =
      (this.checkpoints.has(partition) ? this.handled.get(partition) : undefined) ??
      (await this.checkpoints.take(partition))
    this.handled.set(partition, at)
    return at
  }

  storedThrough(partition: number): number {
    return this.checkpoints.storedAt(partition)
  }

  /** What the history does not take in time is inserted all the same; its checkpoint is the next owner's. */
  async leave(partition: number): Promise<void> {
    await within(this.options.clock, LEAVE_MS, this.flush())
    for (const moved of [this.to, this.inserted]) moved.delete(partition)
    this.handled.delete(partition)
    this.checkpoints.leave(partition)
  }

  handle(entry: Entry, partition: number): void | Promise<void> {
    if (!this.handled.has(partition)) throw new Error(`partition ${partition} has another owner`)
    const rows = this.options.rowsOf(entry)
    if (rows > 0) this.waiting.push({ partition, entry })
    this.rows += rows
    if (!this.from.has(partition)) this.from.set(partition, entry.revision)
    this.to.set(partition, entry.revision)
    this.handled.set(partition, entry.revision)
    if (this.rows >= (this.options.rowsMax ?? 10_000)) return this.insertWaiting()
    this.cancelTimer ??= this.options.clock.after(this.options.ageMsMax ?? 100, () => {
      this.cancelTimer = undefined
      this.insertWaiting().catch(this.options.onFailure)
    })
  }

  /** Everything handled so far is in the history and the checkpoint is stored. */
  async flush(): Promise<void> {
    await this.insertWaiting()
    await this.inserting
  }

  /** Inserts what waits, once; gives up where the history does not take it (the log still has it). */
  async close(): Promise<void> {
    this.closed = true
    this.cancelTimer?.()
    await this.flush()
  }

  stats(): { rowsWaiting: number; rowsInserted: number; failures: number } {
    return { ...this.counts, rowsWaiting: this.rows }
  }

  /** Resolves when what waited is on its way. */
  private async insertWaiting(): Promise<void> {
    while (this.inserting !== undefined) await this.inserting
    if (this.to.size === 0) return
    this.cancelTimer?.()
    this.cancelTimer = undefined
    const { waiting, rows, from, to } = this
    this.waiting = []
    this.rows = 0
    this.from = new Map()
    this.to = new Map()
    this.inserted = to
    const token = revisionsToken(this.options.epoch, from, to)
    this.inserting = this.insert(waiting, rows, to, token).finally(() => (this.inserting = undefined))
  }

  private async insert(
    entries: readonly Placed<Entry>[],
    rows: number,
    to: ReadonlyMap<number, number>,
    token: string,
  ): Promise<void> {
    const { history, clock, onFailure } = this.options
    for (let attempt = 0; ; attempt++) {
      try {
        const blocks = entries.length === 0 ? [] : await this.options.blocks(entries)
        for (const { table, block } of blocks) await history.insert(table, block, token)
        for (const partition of await this.checkpoints.store(to)) this.handled.delete(partition)
        this.counts.rowsInserted += rows
        return
      } catch (error) {
        this.counts.failures++
        onFailure(error)
        if (this.closed) return
        const delayMs = RETRY_MS[Math.min(attempt, RETRY_MS.length - 1)]
        await new Promise<void>((resume) => void clock.after(delayMs, resume))
      }
    }
  }
}
