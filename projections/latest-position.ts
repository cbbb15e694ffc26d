import { StaleCommit, type TableStore } from '../src/engines/table-store.ts'
import { partitionOf, type LocationEntry } from '../src/features/locations/events.ts'
import {
  LATEST_POSITIONS,
  LATEST_TRACKERS,
  latestPositionCheckpoint,
  type LatestPositionRow,
} from '../src/features/locations/views.ts'
import { breathe } from '../src/kernel/breath.ts'
import type { Clock } from '../src/kernel/clock.ts'
import type { PartitionConsumer } from '../src/kit/consumers/partition-consumer.ts'
import { OwnedCheckpoint } from '../src/kit/consumers/checkpoint.ts'
import { severalAtOnce } from '../src/kit/commands/several-at-once.ts'
import { CommitPace } from './commit-pace.ts'
import { LatestPartition, type Tracker, trackersOf } from './latest-partition.ts'
import { isIndexed, latestOf, latestPlace } from './latest-restore.ts'

export const LATEST_POSITION = 'latest-position'

export interface LatestPositionsOptions {
  tables: TableStore
  clock: Clock
  /** Number of partitions of the log. */
  partitions: number
  /** Called for each commit that failed; it is tried again. */
  onFailure: (error: unknown) => void
}

/** Rows of one commit: more would hold up other writers, and the event loop. */
const ROWS_PER_COMMIT = 500
/** The same where a partition has many: the answer to each commit waits for a turn of the event loop, long on a busy one. */
const ROWS_PER_COMMIT_MAX = 2_000
const COMMITS_OF_MANY = 4
/** Rows in order of their ids: those of a commit, and those of other partitions beside it, share pages of a sorted store. */
const ROWS_SORTED = 5 * ROWS_PER_COMMIT_MAX
/** Partitions that commit beside each other, for the same reason. */
const COMMITS_AT_ONCE = 16

/**
 * Keeps the newest point of each tracker in memory and commits the rows that changed, with the checkpoint, about once a
 * second. A late point or one ahead of the clock moves nothing; after a crash the last second is read again.
 */
export class LatestPositions implements PartitionConsumer<LocationEntry> {
  readonly name = LATEST_POSITION
  onLost: PartitionConsumer<LocationEntry>['onLost']
  private readonly options: LatestPositionsOptions
  private readonly partitions = new Map<number, LatestPartition>()
  private cancelTimer: (() => void) | undefined
  /** The last requested commit of all partitions. */
  private lastCommit: Promise<void> = Promise.resolve()
  private isClosed = false
  private readonly pace = new CommitPace()

  constructor(options: LatestPositionsOptions) {
    this.options = options
  }

  async load(partition: number): Promise<number> {
    // Commits of other partitions tell nothing about this one.
    await this.partitions.get(partition)?.lastCommit
    const { tables } = this.options
    const made = [LATEST_POSITIONS, LATEST_TRACKERS].map((table) => tables.declare(table))
    const [checkpoint] = await Promise.all([OwnedCheckpoint.take(tables, latestPositionCheckpoint(partition)), ...made])
    // State stored before trackers were kept is started over.
    if (checkpoint.at && !isIndexed(checkpoint.at)) await checkpoint.commit([], latestPlace(partition, -1))
    const at = checkpoint.at?.[partition] ?? -1
    this.partitions.set(partition, new LatestPartition(partition, checkpoint, at))
    return at
  }

  /** A tracker's row is read at its first point: an owner of many new trackers does not wait for all of them. */
  handle(entry: LocationEntry, partition: number): void | Promise<void> {
    const state = this.loaded(partition)
    const unread = state.unreadOf(trackersOf(entry))
    if (unread === undefined) return this.apply(entry, partition, state)
    return this.read(state, partition, unread).then(() => {
      if (this.loaded(partition) !== state) throw new Error(`partition ${partition} was loaded anew meanwhile`)
      this.apply(entry, partition, state)
    })
  }

  /** Reads the rows of all of these at once: one entry after the other, an owner of many trackers falls behind. */
  async foresee(entries: readonly LocationEntry[], partition: number): Promise<void> {
    const state = this.loaded(partition)
    if (state.firstAt !== undefined) state.firstAt = entries[entries.length - 1].revision
    await this.read(state, partition, state.unreadOf(entries.flatMap(trackersOf)) ?? [])
  }

  storedThrough(partition: number): number {
    return this.partitions.get(partition)?.committedAt ?? -1
  }

  /** Rows that cannot be committed now are read again from the log by the next owner. */
  async leave(partition: number): Promise<void> {
    const state = this.partitions.get(partition)
    try {
      if (state !== undefined) await this.commit(partition, state)
    } catch (error) {
      this.options.onFailure(error)
    }
    this.partitions.delete(partition)
  }

  /** What could not be stored is tried again by itself. */
  async shown(partition: number): Promise<void> {
    await this.partitions.get(partition)?.lastCommit
  }

  /** The newest point known here; undefined for a tracker never seen or of a partition that runs elsewhere. */
  of(trackerId: string): LatestPositionRow | undefined {
    return this.partitions.get(partitionOf(trackerId, this.options.partitions))?.rowOf(trackerId)
  }

  /** Revision of the last handled entry of a partition; undefined where it runs elsewhere. */
  standsAt(partition: number): number | undefined {
    return this.partitions.get(partition)?.at
  }

  /** Resolves when everything handled so far is committed. @throws Failure engine_down */
  flush(): Promise<void> {
    return this.inTurn(() => this.commitEach())
  }

  /** Resolves when everything handled so far of the tracker's partition is committed. @throws Failure engine_down */
  async flushOf(trackerId: string): Promise<void> {
    const partition = partitionOf(trackerId, this.options.partitions)
    const state = this.partitions.get(partition)
    if (state !== undefined) await this.commit(partition, state)
  }

  /** Commits the rest once; if it fails it is read again from the log. */
  async close(): Promise<void> {
    this.isClosed = true
    this.cancelTimer?.()
    await this.flush()
  }

  private loaded(partition: number): LatestPartition {
    const state = this.partitions.get(partition)
    if (state === undefined) throw new Error(`partition ${partition} of the latest positions is not loaded`)
    return state
  }

  /** The previous owner has already stored all of its own, or never will. */
  private async read(state: LatestPartition, partition: number, unread: readonly Tracker[]): Promise<void> {
    for await (const stored of latestOf(this.options.tables, partition, unread)) state.restore(stored)
    state.lookedUp(unread)
  }

  private apply(entry: LocationEntry, partition: number, state: LatestPartition): void {
    if (entry.kind === 'points') state.take(entry.batch)
    if (entry.kind === 'trackerDeleted') state.forget(entry.deletion)
    state.at = entry.revision
    if (entry.kind === 'trackerDeleted') {
      // A caller waits until a deleted tracker is forgotten.
      this.cancelTimer?.()
      void this.inTurn(() => this.commitAll())
    } else {
      if (state.firstAt !== undefined && state.at >= state.firstAt) this.commitFirst(partition, state)
      this.commitLater(this.pace.waitMs)
    }
  }

  /** Nobody has shown the partition's points since it was left: they do not wait until others are due. */
  private commitFirst(partition: number, state: LatestPartition): void {
    state.firstAt = undefined
    this.commit(partition, state).catch(this.options.onFailure)
  }

  private commitLater(delayMs: number): void {
    if (this.cancelTimer !== undefined || this.isClosed) return
    this.cancelTimer = this.options.clock.after(delayMs, () => void this.inTurn(() => this.commitAll()))
  }

  private inTurn(commit: () => Promise<void>): Promise<void> {
    const committed = this.lastCommit.then(commit)
    this.lastCommit = committed.catch(() => undefined) // the asker gets the rejection
    return committed
  }

  private async commitAll(): Promise<void> {
    const begunMs = this.options.clock.monotonic()
    this.pace.rows = [...this.partitions.values()].reduce((rows, { changedCount }) => rows + changedCount, 0)
    try {
      await this.commitEach()
    } catch (error) {
      this.options.onFailure(error)
    }
    this.cancelTimer = undefined
    const isBehind = [...this.partitions.values()].some(
      ({ at, committedAt, changedCount }) => at > committedAt || changedCount > 0,
    )
    const pauseMs = this.pace.pauseMs(this.options.clock.monotonic() - begunMs)
    if (isBehind) this.commitLater(pauseMs)
  }

  private commitEach(): Promise<void> {
    return severalAtOnce(this.partitions, COMMITS_AT_ONCE, ([partition, state]) => this.commit(partition, state))
  }

  /** Another process now follows the partition, or the table has lost rows: it is loaded again before any handling. */
  private lost(partition: number, state: LatestPartition): void {
    if (this.partitions.get(partition) !== state) return
    this.partitions.delete(partition)
    this.onLost?.(partition)
  }

  /** After the partition's last requested commit, and beside those of others, since each takes an answer. */
  private commit(partition: number, state: LatestPartition): Promise<void> {
    const committed = state.lastCommit.then(() => this.commitNow(partition, state))
    state.lastCommit = committed.catch(() => undefined) // the asker gets the rejection
    return committed
  }

  private async commitNow(partition: number, state: LatestPartition): Promise<void> {
    if (state.at === state.committedAt && state.changedCount === 0) return
    const { at } = state
    const changed = state.takeChanged()
    const some = Math.ceil(changed.length / COMMITS_OF_MANY)
    const rowsPerCommit = Math.min(ROWS_PER_COMMIT_MAX, Math.max(ROWS_PER_COMMIT, some))
    let stored = 0
    let sorted = 0
    try {
      do {
        const pause = breathe()
        if (pause !== undefined) await pause
        if (stored >= sorted) {
          state.sortById(changed, stored, ROWS_SORTED)
          sorted = stored + ROWS_SORTED
        }
        const slots = changed.slice(stored, Math.min(sorted, stored + rowsPerCommit))
        const part = state.partOf(slots)
        const isLast = stored + slots.length === changed.length
        await state.checkpoint.commit(part.changes, isLast ? latestPlace(partition, at) : undefined, part.numbers)
        state.stored(part)
        stored += slots.length
      } while (stored < changed.length)
      state.committedAt = at
    } catch (error) {
      if (error instanceof StaleCommit) return this.lost(partition, state)
      for (const slot of changed.slice(stored)) state.change(slot)
      throw error
    }
  }
}
