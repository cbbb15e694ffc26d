import { POINTS } from '../src/engines/clickhouse-sql/history-tables.ts'
import type { LocationEntry } from '../src/features/locations/events.ts'
import type { PartitionConsumer } from '../src/kit/consumers/partition-consumer.ts'
import { within } from '../src/kit/consumers/retry.ts'
import { HistoryCheckpoints, revisionsToken } from './history-checkpoints.ts'
import type { HistoryServices } from './history-consumer.ts'
import { PointBlock } from './location-history-block.ts'

export const LOCATION_HISTORY = 'location-history'

export interface LocationHistoryOptions extends HistoryServices {
  /** A block is inserted when it has so many rows (default 50,000) … */
  blockRowsMax?: number
  /** … or is so old (default 500 ms). */
  blockAgeMsMax?: number
}

export interface LocationHistoryStats {
  rowsWaiting: number
  rowsInserted: number
  blocksInserted: number
  failures: number
  /** When the oldest point that waits was logged, ms since the epoch. */
  waitingSince: number | undefined
}

const RETRY_MS = [100, 500, 2_000, 5_000]
/** A partition that goes waits so long at most for the history. */
const LEAVE_MS = 2_000

interface Filling {
  block: PointBlock
  /** First and last revision of each partition in it. */
  from: Map<number, number>
  to: Map<number, number>
  since: number | undefined
}

/**
 * Puts every point of the log into the history. Two blocks at most are in memory: one that fills and one that is being
 * inserted; when both are full, `handle` waits. The checkpoint is stored after the durable insert, so what a crash
 * forgets is inserted again, which changes nothing.
 */
export class LocationHistory implements PartitionConsumer<LocationEntry> {
  readonly name = LOCATION_HISTORY
  private readonly options: LocationHistoryOptions
  private readonly rowsMax: number
  private readonly checkpoints: HistoryCheckpoints
  private readonly handled = new Map<number, number>()
  private filling: Filling
  private spare: PointBlock
  private inserting: Promise<void> | undefined
  /** What is being inserted, or was last. */
  private inserted: Filling
  private cancelTimer: (() => void) | undefined
  private insertingRows = 0
  private closed = false
  private readonly counts = { rowsInserted: 0, blocksInserted: 0, failures: 0 }

  constructor(options: LocationHistoryOptions) {
    this.options = options
    this.checkpoints = new HistoryCheckpoints(options.tables, LOCATION_HISTORY)
    this.rowsMax = options.blockRowsMax ?? 50_000
    this.filling = emptied(new PointBlock(this.rowsMax))
    this.spare = new PointBlock(this.rowsMax)
    this.inserted = emptied(this.spare)
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
    for (const { from, to } of [this.filling, this.inserted]) {
      from.delete(partition)
      to.delete(partition)
    }
    this.handled.delete(partition)
    this.checkpoints.leave(partition)
  }

  handle(entry: LocationEntry): void | Promise<void> {
    if (!this.handled.has(entry.partition)) throw new Error(`partition ${entry.partition} has another owner`)
    if (this.filling.block.rows >= this.rowsMax) return this.insertFilling().then(() => this.handle(entry))
    const { filling } = this
    if (entry.kind === 'points') {
      filling.block.add(entry.batch, this.options.epoch, entry.revision)
      filling.since ??= entry.batch.loggedAt
    }
    if (!filling.from.has(entry.partition)) filling.from.set(entry.partition, entry.revision)
    filling.to.set(entry.partition, entry.revision)
    this.handled.set(entry.partition, entry.revision)
    if (filling.block.rows >= this.rowsMax) return this.insertFilling()
    this.cancelTimer ??= this.options.clock.after(this.options.blockAgeMsMax ?? 500, () => {
      this.cancelTimer = undefined
      this.insertFilling().catch(this.options.onFailure)
    })
  }

  /** Everything handled so far is in the history and the checkpoint is stored. */
  async flush(): Promise<void> {
    await this.insertFilling()
    await this.inserting
  }

  /** Inserts what waits, once; gives up where the history does not take it (the log still has it). */
  async close(): Promise<void> {
    this.closed = true
    this.cancelTimer?.()
    await this.flush()
  }

  stats(): LocationHistoryStats {
    return {
      ...this.counts,
      rowsWaiting: this.filling.block.rows + this.insertingRows,
      waitingSince: this.filling.since,
    }
  }

  /** Resolves when the block is on its way: then the next one can be filled. */
  private async insertFilling(): Promise<void> {
    while (this.inserting !== undefined) await this.inserting
    if (this.filling.to.size === 0 && this.filling.block.rows === 0) return
    this.cancelTimer?.()
    this.cancelTimer = undefined
    const full = this.filling
    this.filling = emptied(this.spare)
    this.inserted = full
    this.inserting = this.insert(full).finally(() => {
      this.spare = full.block
      this.inserting = undefined
    })
  }

  private async insert(full: Filling): Promise<void> {
    this.insertingRows = full.block.rows
    for (let attempt = 0; ; attempt++) {
      try {
        if (full.block.rows > 0)
          await this.options.history.insert(
            POINTS,
            full.block.encode(),
            revisionsToken(this.options.epoch, full.from, full.to),
          )
        for (const partition of await this.checkpoints.store(full.to)) this.handled.delete(partition)
        break
      } catch (error) {
        this.counts.failures++
        this.options.onFailure(error)
        if (this.closed) return
        await this.pause(RETRY_MS[Math.min(attempt, RETRY_MS.length - 1)])
      }
    }
    this.counts.rowsInserted += full.block.rows
    if (full.block.rows > 0) this.counts.blocksInserted++
    this.insertingRows = 0
  }

  private pause(delayMs: number): Promise<void> {
    return new Promise((resume) => void this.options.clock.after(delayMs, resume))
  }
}

const emptied = (block: PointBlock): Filling => {
  block.clear()
  return { block, from: new Map(), to: new Map(), since: undefined }
}
