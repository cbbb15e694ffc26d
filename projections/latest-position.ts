import { StaleCommit, type TableStore } from '../src/engines/table-store.ts'
import { AHEAD, partitionOf, type LocationEntry, type PointBatch } from '../src/features/locations/events.ts'
import {
  latestPointAt,
  LATEST_POSITIONS,
  LATEST_TRACKERS,
  latestPositionCheckpoint,
  movePoint,
  type LatestPositionRow,
} from '../src/features/locations/views.ts'
import type { Clock } from '../src/kernel/clock.ts'
import type { RowChange } from '../src/kernel/table.ts'
import type { PartitionConsumer } from '../src/kit/consumers/partition-consumer.ts'
import { OwnedCheckpoint } from '../src/kit/consumers/checkpoint.ts'
import { CommitPace } from './commit-pace.ts'
import { isIndexed, latestOf, latestPlace, type OwnedPoint, ownedPoint, trackerChange } from './latest-restore.ts'

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

/** State of one partition in this process. */
interface Partition {
  checkpoint: OwnedCheckpoint
  at: number
  committedAt: number
  /** Revision at which the first rows since it was taken are committed at once; undefined afterwards. */
  firstAt: number | undefined
  /** Rows of the trackers with a point since the partition was taken. */
  points: Map<string, OwnedPoint>
  /** Trackers looked up without finding a row. */
  absent: Set<string>
  /** Trackers stored beside their rows. */
  indexed: Set<string>
  /** Trackers whose row has changed since the last commit, with their organization. */
  changed: Map<string, string>
}

/**
 * Keeps the newest point of each tracker in memory and commits the rows that changed, with the checkpoint, about once a
 * second. A late point or one ahead of the clock moves nothing; after a crash the last second is read again.
 */
export class LatestPositions implements PartitionConsumer<LocationEntry> {
  readonly name = LATEST_POSITION
  onLost: PartitionConsumer<LocationEntry>['onLost']
  private readonly options: LatestPositionsOptions
  private readonly partitions = new Map<number, Partition>()
  private cancelTimer: (() => void) | undefined
  /** The last requested commit. One at a time, or a checkpoint would cover rows that another has yet to store. */
  private lastCommit: Promise<void> = Promise.resolve()
  private isClosed = false
  private readonly pace = new CommitPace()

  constructor(options: LatestPositionsOptions) {
    this.options = options
  }

  async load(partition: number): Promise<number> {
    // Commits of other partitions tell nothing about this one.
    if (this.partitions.has(partition)) await this.lastCommit
    const { tables } = this.options
    const made = [LATEST_POSITIONS, LATEST_TRACKERS].map((table) => tables.declare(table))
    const [checkpoint] = await Promise.all([OwnedCheckpoint.take(tables, latestPositionCheckpoint(partition)), ...made])
    // State stored before trackers were kept is started over.
    if (checkpoint.at && !isIndexed(checkpoint.at)) await checkpoint.commit([], latestPlace(partition, -1))
    const at = checkpoint.at?.[partition] ?? -1
    const known = { points: new Map(), absent: new Set<string>(), indexed: new Set<string>(), changed: new Map() }
    this.partitions.set(partition, { checkpoint, at, committedAt: at, firstAt: at, ...known })
    return at
  }

  /** A tracker's row is read at its first point: an owner of many new trackers does not wait for all of them. */
  handle(entry: LocationEntry, partition: number): void | Promise<void> {
    const state = this.loaded(partition)
    const unread = unreadOf(state, trackersOf(entry))
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
    await this.read(state, partition, unreadOf(state, entries.flatMap(trackersOf)) ?? [])
  }

  storedThrough(partition: number): number {
    return this.partitions.get(partition)?.committedAt ?? -1
  }

  /** Rows that cannot be committed now are read again from the log by the next owner. */
  leave(partition: number): Promise<void> {
    return this.inTurn(async () => {
      const state = this.partitions.get(partition)
      try {
        if (state !== undefined) await this.commit(partition, state)
      } catch (error) {
        this.options.onFailure(error)
      }
      this.partitions.delete(partition)
    })
  }

  /** The newest point known here; undefined for a tracker never seen or of a partition that runs elsewhere. */
  of(trackerId: string): LatestPositionRow | undefined {
    return this.partitions.get(partitionOf(trackerId, this.options.partitions))?.points.get(trackerId)
  }

  /** Revision of the last handled entry of a partition; undefined where it runs elsewhere. */
  standsAt(partition: number): number | undefined {
    return this.partitions.get(partition)?.at
  }

  /** Resolves when everything handled so far is committed. @throws Failure engine_down */
  flush(): Promise<void> {
    return this.inTurn(async () => {
      for (const [partition, state] of this.partitions) await this.commit(partition, state)
    })
  }

  /** Resolves when everything handled so far of the tracker's partition is committed. @throws Failure engine_down */
  flushOf(trackerId: string): Promise<void> {
    return this.inTurn(async () => {
      const partition = partitionOf(trackerId, this.options.partitions)
      const state = this.partitions.get(partition)
      if (state !== undefined) await this.commit(partition, state)
    })
  }

  /** Commits the rest once; if it fails it is read again from the log. */
  async close(): Promise<void> {
    this.isClosed = true
    this.cancelTimer?.()
    await this.flush()
  }

  private loaded(partition: number): Partition {
    const state = this.partitions.get(partition)
    if (state === undefined) throw new Error(`partition ${partition} of the latest positions is not loaded`)
    return state
  }

  /** The previous owner has already stored all of its own, or never will. */
  private async read(
    { points, absent, indexed }: Partition,
    partition: number,
    unread: readonly Tracker[],
  ): Promise<void> {
    for await (const { organizationId, trackerId, row } of latestOf(this.options.tables, partition, unread)) {
      indexed.add(trackerId)
      if (row !== undefined) points.set(trackerId, ownedPoint(row, organizationId))
    }
    for (const { trackerId } of unread) if (!points.has(trackerId)) absent.add(trackerId)
  }

  private apply(entry: LocationEntry, partition: number, state: Partition): void {
    if (entry.kind === 'points') takePoints(state, entry.batch)
    if (entry.kind === 'trackerDeleted') {
      const { trackerId, organizationId } = entry.deletion
      state.points.delete(trackerId)
      state.absent.add(trackerId)
      state.changed.set(trackerId, organizationId)
    }
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
  private commitFirst(partition: number, state: Partition): void {
    state.firstAt = undefined
    this.inTurn(() => this.commit(partition, state)).catch(this.options.onFailure)
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
    this.pace.rows = [...this.partitions.values()].reduce((rows, { changed }) => rows + changed.size, 0)
    try {
      for (const [partition, state] of this.partitions) await this.commit(partition, state)
    } catch (error) {
      this.options.onFailure(error)
    }
    this.cancelTimer = undefined
    const isBehind = [...this.partitions.values()].some(
      ({ at, committedAt, changed }) => at > committedAt || changed.size > 0,
    )
    const pauseMs = this.pace.pauseMs(this.options.clock.monotonic() - begunMs)
    if (isBehind) this.commitLater(pauseMs)
  }

  /** Another process now follows the partition, or the table has lost rows: it is loaded again before any handling. */
  private lost(partition: number, state: Partition): void {
    if (this.partitions.get(partition) !== state) return
    this.partitions.delete(partition)
    this.onLost?.(partition)
  }

  private async commit(partition: number, state: Partition): Promise<void> {
    if (state.at === state.committedAt && state.changed.size === 0) return
    const { at, changed } = state
    state.changed = new Map()
    const waiting = [...changed]
    try {
      do {
        const some = waiting.slice(0, ROWS_PER_COMMIT)
        const rows = some.map(([trackerId, organizationId]) => changeOf(state, trackerId, organizationId))
        const isLast = waiting.length <= ROWS_PER_COMMIT
        const trackers = trackerChanges(state, partition, rows)
        await state.checkpoint.commit([...rows, ...trackers], isLast ? latestPlace(partition, at) : undefined)
        for (const { id, row } of trackers) row === null ? state.indexed.delete(id) : state.indexed.add(id)
        waiting.splice(0, ROWS_PER_COMMIT)
      } while (waiting.length > 0)
      state.committedAt = at
    } catch (error) {
      if (error instanceof StaleCommit) return this.lost(partition, state)
      for (const [trackerId, organizationId] of waiting) state.changed.set(trackerId, organizationId)
      throw error
    }
  }
}

type Tracker = PointBatch['trackers'][number]

/** Trackers whose row has yet to be looked up, each once; undefined, without an allocation, for none: nearly always. */
const unreadOf = ({ points, absent }: Partition, trackers: readonly Tracker[]): Tracker[] | undefined => {
  let unread: Map<string, Tracker> | undefined
  for (const one of trackers)
    if (!points.has(one.trackerId) && !absent.has(one.trackerId)) (unread ??= new Map()).set(one.trackerId, one)
  return unread && [...unread.values()]
}

const trackersOf = (entry: LocationEntry): readonly Tracker[] => {
  if (entry.kind === 'points') return entry.batch.trackers
  return entry.kind === 'trackerDeleted' ? [entry.deletion] : []
}

/** Takes the last point of each tracker of the batch not ahead of the clock, if newer than the known one. */
export const takePoints = ({ points, changed }: Pick<Partition, 'points' | 'changed'>, batch: PointBatch): void => {
  const { tracker, flags, recordedAt } = batch
  for (let i = batch.count - 1; i >= 0; ) {
    const place = tracker[i]
    while (i >= 0 && tracker[i] === place && (flags[i] & AHEAD) !== 0) i--
    if (i >= 0 && tracker[i] === place) {
      const { trackerId, organizationId } = batch.trackers[place]
      const known = points.get(trackerId)
      const isNewer = known === undefined || recordedAt[i] > known.recordedAt
      if (known === undefined) points.set(trackerId, ownedPoint(latestPointAt(batch, i, trackerId), organizationId))
      else if (isNewer) movePoint(known, batch, i)
      if (isNewer) changed.set(trackerId, organizationId)
    }
    while (i >= 0 && tracker[i] === place) i--
  }
}

/** Changes of these rows to the list of the partition's trackers: none, for nearly every commit. */
const trackerChanges = ({ indexed }: Partition, partition: number, rows: readonly RowChange[]): RowChange[] =>
  rows
    .filter(({ id, row }) => indexed.has(id) === (row === null))
    .map(({ id, row, scope }) => trackerChange(partition, id, row === null ? undefined : scope))

/** A copy of the present row: the one on its way to the table must not change. */
const changeOf = ({ points }: Partition, trackerId: string, organizationId: string): RowChange => {
  const row = points.get(trackerId)
  return {
    table: LATEST_POSITIONS.name,
    scope: organizationId,
    id: trackerId,
    row: row === undefined ? null : ownedPoint(row, row.organizationId),
  }
}
