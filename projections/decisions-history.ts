import { TRANSITIONS, TRIPS } from '../src/engines/clickhouse-sql/history-tables.ts'
import type { HistoryStore } from '../src/engines/history-store.ts'
import type { TableStore } from '../src/engines/table-store.ts'
import type { Decided } from '../src/features/transitions/events.ts'
import type { Clock } from '../src/kernel/clock.ts'
import type { PartitionConsumer } from '../src/kit/consumers/partition-consumer.ts'
import { within } from '../src/kit/consumers/retry.ts'
import { HistoryCheckpoints } from './history-checkpoints.ts'
import { transitionsBlock, tripsBlock, type DecidedAt } from './decisions-block.ts'

export const DECISIONS_HISTORY = 'decisions-history'

export interface DecisionsHistoryOptions {
  history: HistoryStore
  tables: TableStore
  clock: Clock
  /** A block is inserted when so many decisions wait (default 10,000) … */
  decisionsMax?: number
  /** … or the oldest waits so long (default 100 ms). */
  ageMsMax?: number
  /** Told of each insert that failed; it is tried again after a pause, and meanwhile `handle` waits. */
  onFailure: (error: unknown) => void
}

/** One event of a transition stream; `decided` is absent for what decides nothing. */
export interface DecidedEntry {
  revision: number
  position: number
  decided?: Decided
}

const RETRY_MS = [100, 500, 2_000, 5_000]
/** A partition that goes waits so long at most for the history. */
const LEAVE_MS = 2_000

/**
 * Puts transitions and trips of the streams `transitions-<partition>` into the history. The same events give the same
 * rows, so what is inserted again after a crash changes nothing; the checkpoint is stored after the durable inserts.
 */
export class DecisionsHistory implements PartitionConsumer<DecidedEntry> {
  readonly name = DECISIONS_HISTORY
  private readonly options: DecisionsHistoryOptions
  private readonly checkpoints: HistoryCheckpoints
  private readonly handled = new Map<number, number>()
  private waiting: DecidedAt[] = []
  private decisions = 0
  private moved = new Map<number, number>()
  /** Partitions of what is being inserted, or was last. */
  private inserted = new Map<number, number>()
  private inserting: Promise<void> | undefined
  private cancelTimer: (() => void) | undefined
  private closed = false
  private readonly counts = { decisionsInserted: 0, failures: 0 }

  constructor(options: DecisionsHistoryOptions) {
    this.options = options
    this.checkpoints = new HistoryCheckpoints(options.tables, DECISIONS_HISTORY)
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
    for (const moved of [this.moved, this.inserted]) moved.delete(partition)
    this.handled.delete(partition)
    this.checkpoints.leave(partition)
  }

  handle({ revision, position, decided }: DecidedEntry, partition: number): void | Promise<void> {
    if (!this.handled.has(partition)) throw new Error(`partition ${partition} has another owner`)
    if (decided !== undefined) {
      this.waiting.push({ position, decided })
      this.decisions += decided.decisions.length
    }
    this.moved.set(partition, revision)
    this.handled.set(partition, revision)
    if (this.decisions >= (this.options.decisionsMax ?? 10_000)) return this.insertWaiting()
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

  stats(): { decisionsWaiting: number; decisionsInserted: number; failures: number } {
    return { ...this.counts, decisionsWaiting: this.decisions }
  }

  /** Resolves when what waited is on its way. */
  private async insertWaiting(): Promise<void> {
    while (this.inserting !== undefined) await this.inserting
    if (this.moved.size === 0) return
    this.cancelTimer?.()
    this.cancelTimer = undefined
    const { waiting, moved } = this
    this.waiting = []
    this.moved = new Map()
    this.decisions = 0
    this.inserted = moved
    this.inserting = this.insert(waiting, moved).finally(() => (this.inserting = undefined))
  }

  private async insert(events: DecidedAt[], moved: Map<number, number>): Promise<void> {
    const token = events.map(({ position }) => position).join(',')
    for (let attempt = 0; ; attempt++) {
      try {
        const transitions = transitionsBlock(events)
        if (transitions !== undefined) await this.options.history.insert(TRANSITIONS, transitions, token)
        const trips = tripsBlock(events)
        if (trips !== undefined) await this.options.history.insert(TRIPS, trips, token)
        for (const partition of await this.checkpoints.store(moved)) this.handled.delete(partition)
        for (const { decided } of events) this.counts.decisionsInserted += decided.decisions.length
        return
      } catch (error) {
        this.counts.failures++
        this.options.onFailure(error)
        if (this.closed) return
        await new Promise<void>(
          (resume) => void this.options.clock.after(RETRY_MS[Math.min(attempt, RETRY_MS.length - 1)], resume),
        )
      }
    }
  }
}
