import { TRANSITIONS, TRIPS } from '../src/engines/history-sql.ts'
import type { HistoryStore } from '../src/engines/history-store.ts'
import type { Checkpoint, TableStore } from '../src/engines/table-store.ts'
import { DECIDED, type Decided } from '../src/features/transitions/events.ts'
import type { Clock } from '../src/kernel/clock.ts'
import { decodeJson, type RecordedEvent } from '../src/kernel/event.ts'
import type { PartitionConsumer } from '../src/kit/partition-feed.ts'
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

const RETRY_MS = [100, 500, 2_000, 5_000]

/**
 * Puts transitions and trips of the streams `transitions-<partition>` into the history. The same events give the same
 * rows, so what is inserted again after a crash changes nothing; the checkpoint is stored after the durable inserts.
 */
export class DecisionsHistory implements PartitionConsumer<RecordedEvent> {
  readonly name = DECISIONS_HISTORY
  private readonly options: DecisionsHistoryOptions
  private readonly handled = new Map<number, number>()
  private stored: Checkpoint = {}
  private waiting: DecidedAt[] = []
  private decisions = 0
  private moved = new Map<number, number>()
  private inserting: Promise<void> | undefined
  private cancelTimer: (() => void) | undefined
  private closed = false
  private readonly counts = { decisionsInserted: 0, failures: 0 }

  constructor(options: DecisionsHistoryOptions) {
    this.options = options
  }

  async load(partition: number): Promise<number> {
    const at = this.handled.get(partition) ?? (await this.options.tables.checkpoint(DECISIONS_HISTORY))?.[partition] ?? -1
    this.handled.set(partition, at)
    if (at >= 0) this.stored[partition] ??= at
    return at
  }

  handle(event: RecordedEvent, partition: number): void | Promise<void> {
    if (event.type === DECIDED) {
      const decided = decodeJson<Decided>(event.data)
      this.waiting.push({ position: event.position, decided })
      this.decisions += decided.decisions.length
    }
    this.moved.set(partition, event.revision)
    this.handled.set(partition, event.revision)
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
        const at = { ...this.stored, ...Object.fromEntries(moved) }
        await this.options.tables.commit([], { consumer: DECISIONS_HISTORY, at })
        this.stored = at
        for (const { decided } of events) this.counts.decisionsInserted += decided.decisions.length
        return
      } catch (error) {
        this.counts.failures++
        this.options.onFailure(error)
        if (this.closed) return
        await new Promise<void>((resume) => void this.options.clock.after(RETRY_MS[Math.min(attempt, RETRY_MS.length - 1)], resume))
      }
    }
  }
}
