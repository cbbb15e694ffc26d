import { AHEAD, type LocationEntry, type PointBatch, type TrackerDeleted } from '../src/features/locations/events.ts'
import {
  HAS_POINT,
  hasPoint,
  isNewer,
  keepLatest,
  keepPoint,
  latestKept,
  LATEST_POSITIONS,
  P_STATE,
  POINT_INTS,
} from '../src/features/locations/views.ts'
import { Records } from '../src/kernel/records.ts'
import { Slots } from '../src/kernel/slots.ts'
import type { RowChange } from '../src/kernel/table.ts'
import type { OwnedCheckpoint } from '../src/kit/consumers/checkpoint.ts'
import { type OwnedPoint, ownedPoint, type StoredLatest, trackerChange } from './latest-restore.ts'

export type Tracker = PointBatch['trackers'][number]

/** Number of the tracker's organization. */
const ORGANIZATION = POINT_INTS
const RECORD_INTS = POINT_INTS + 1
/** Bit of the state: the tracker is stored beside its row. */
const INDEXED = HAS_POINT << 1
/** Bit of the state: the row has changed since the last commit. */
const CHANGED = HAS_POINT << 2

/** State of one partition of the latest positions in this process. Trackers with a slot were looked up, or had a point. */
export class LatestPartition {
  readonly checkpoint: OwnedCheckpoint
  at: number
  committedAt: number
  /** The last requested commit. One at a time, or a checkpoint would cover rows that another has yet to store. */
  lastCommit: Promise<void> = Promise.resolve()
  /** Revision at which the first rows since it was taken are committed at once; undefined afterwards. */
  firstAt: number | undefined
  private readonly partition: number
  private readonly trackers = new Slots()
  private readonly records = new Records(RECORD_INTS)
  private readonly organizations = new Slots()
  /** Slots of the trackers whose row has changed since the last commit. */
  private changed: number[] = []

  constructor(partition: number, checkpoint: OwnedCheckpoint, at: number) {
    this.partition = partition
    this.checkpoint = checkpoint
    this.at = this.committedAt = this.firstAt = at
  }

  get changedCount(): number {
    return this.changed.length
  }

  /** Trackers whose row has yet to be looked up, each once; undefined, without an allocation, for none: nearly always. */
  unreadOf(trackers: readonly Tracker[]): Tracker[] | undefined {
    let unread: Map<string, Tracker> | undefined
    for (const one of trackers)
      if (this.trackers.get(one.trackerId) === undefined) (unread ??= new Map()).set(one.trackerId, one)
    return unread && [...unread.values()]
  }

  restore({ organizationId, trackerId, row }: StoredLatest): void {
    const slot = this.trackers.of(trackerId)
    const piece = this.records.piece(slot)
    const at = this.records.at(slot)
    if (row !== undefined) keepLatest(piece, at, row)
    piece.ints[at + ORGANIZATION] = this.organizations.of(organizationId)
    piece.ints[at + P_STATE] |= INDEXED
  }

  /** These trackers have no rows but those that were restored. */
  lookedUp(trackers: readonly Tracker[]): void {
    for (const { trackerId } of trackers) this.trackers.of(trackerId)
  }

  /** Takes the last point of each tracker of the batch not ahead of the clock, if newer than the known one. */
  take(batch: PointBatch): void {
    forEachNewest(batch, (place, i) => {
      const { trackerId, organizationId } = batch.trackers[place]
      const slot = this.trackers.of(trackerId)
      const piece = this.records.piece(slot)
      const at = this.records.at(slot)
      if (!isNewer(piece, at, batch.recordedAt[i])) return
      if (!hasPoint(piece, at)) piece.ints[at + ORGANIZATION] = this.organizations.of(organizationId)
      keepPoint(piece, at, batch, i)
      this.change(slot)
    })
  }

  forget({ trackerId, organizationId }: TrackerDeleted): void {
    const slot = this.trackers.of(trackerId)
    const { ints } = this.records.piece(slot)
    const at = this.records.at(slot)
    ints[at + P_STATE] &= ~HAS_POINT
    ints[at + ORGANIZATION] = this.organizations.of(organizationId)
    this.change(slot)
  }

  rowOf(trackerId: string): OwnedPoint | undefined {
    const slot = this.trackers.get(trackerId)
    return slot === undefined ? undefined : this.rowAt(slot)
  }

  takeChanged(): number[] {
    const { changed } = this
    this.changed = []
    for (const slot of changed) this.records.piece(slot).ints[this.records.at(slot) + P_STATE] &= ~CHANGED
    return changed
  }

  change(slot: number): void {
    const { ints } = this.records.piece(slot)
    const state = this.records.at(slot) + P_STATE
    if ((ints[state] & CHANGED) !== 0) return
    ints[state] |= CHANGED
    this.changed.push(slot)
  }

  /** Sorts so many slots by their trackers' ids, from a place on. */
  sortById(slots: number[], from: number, count: number): void {
    const ids = slots.slice(from, from + count).map((slot) => ({ slot, id: this.trackers.idOf(slot) }))
    ids.sort((a, b) => (a.id < b.id ? -1 : 1))
    for (const [i, { slot }] of ids.entries()) slots[from + i] = slot
  }

  /** The present row: a copy, for the one on its way to the table must not change. */
  rowChangeOf(slot: number): RowChange {
    const organizationId = this.organizationOf(slot)
    return {
      table: LATEST_POSITIONS.name,
      scope: organizationId,
      id: this.trackers.idOf(slot),
      row: this.rowAt(slot) ?? null,
    }
  }

  /** Changes of these rows to the list of the partition's trackers: none, for nearly every commit. */
  trackerChangesOf(slots: readonly number[], rows: readonly RowChange[]): RowChange[] {
    return rows.flatMap(({ id, row, scope }, i) =>
      this.has(slots[i], INDEXED) === (row === null)
        ? [trackerChange(this.partition, id, row === null ? undefined : scope)]
        : [],
    )
  }

  /** The rows of these slots are stored; those of trackers that are gone are given to others. */
  stored(slots: readonly number[], rows: readonly RowChange[]): void {
    for (const [i, slot] of slots.entries()) {
      const { ints } = this.records.piece(slot)
      const state = this.records.at(slot) + P_STATE
      if (rows[i].row !== null) ints[state] |= INDEXED
      else if ((ints[state] & (HAS_POINT | CHANGED)) !== 0) ints[state] &= ~INDEXED
      else {
        this.records.clear(slot)
        this.trackers.release(slot)
      }
    }
  }

  private has(slot: number, bit: number): boolean {
    return (this.records.piece(slot).ints[this.records.at(slot) + P_STATE] & bit) !== 0
  }

  private organizationOf(slot: number): string {
    return this.organizations.idOf(this.records.piece(slot).ints[this.records.at(slot) + ORGANIZATION])
  }

  private rowAt(slot: number): OwnedPoint | undefined {
    const piece = this.records.piece(slot)
    const at = this.records.at(slot)
    if (!hasPoint(piece, at)) return undefined
    return ownedPoint(latestKept(piece, at, this.trackers.idOf(slot)), this.organizationOf(slot))
  }
}

/** Calls `visit` with the last point of each tracker of the batch that is not ahead of the clock. */
export const forEachNewest = (batch: PointBatch, visit: (place: number, i: number) => void): void => {
  const { tracker, flags } = batch
  for (let i = batch.count - 1; i >= 0; ) {
    const place = tracker[i]
    while (i >= 0 && tracker[i] === place && (flags[i] & AHEAD) !== 0) i--
    if (i >= 0 && tracker[i] === place) visit(place, i)
    while (i >= 0 && tracker[i] === place) i--
  }
}

export const trackersOf = (entry: LocationEntry): readonly Tracker[] => {
  if (entry.kind === 'points') return entry.batch.trackers
  return entry.kind === 'trackerDeleted' ? [entry.deletion] : []
}
