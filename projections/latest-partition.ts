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
  POINT_FIELDS,
  POINT_INTS,
  readKept,
} from '../src/features/locations/views.ts'
import { Records } from '../src/kernel/records.ts'
import { Slots } from '../src/kernel/slots.ts'
import type { NumberRows, RowChange } from '../src/kernel/table.ts'
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

/** Rows that are stored together. */
export interface CommitPart {
  /** Slots of trackers with a point, and of those without. */
  shown: readonly number[]
  gone: readonly number[]
  changes: readonly RowChange[]
  numbers?: NumberRows
}

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

  /** The present rows of these slots, to be stored together: copies, for those on their way to the table must not change. */
  partOf(slots: readonly number[]): CommitPart {
    const shown = slots.filter((slot) => this.has(slot, HAS_POINT))
    const gone = slots.filter((slot) => !this.has(slot, HAS_POINT))
    const changes = gone.map((slot) => this.deletionOf(slot))
    for (const slot of gone) if (this.has(slot, INDEXED)) changes.push(this.trackerChangeOf(slot, false))
    for (const slot of shown) if (!this.has(slot, INDEXED)) changes.push(this.trackerChangeOf(slot, true))
    return { shown, gone, changes, ...(shown.length > 0 && { numbers: this.numbersOf(shown) }) }
  }

  /** These rows are stored; the slots of trackers that are gone are given to others. */
  stored({ shown, gone }: CommitPart): void {
    for (const slot of shown) this.records.piece(slot).ints[this.records.at(slot) + P_STATE] |= INDEXED
    for (const slot of gone) {
      if (this.has(slot, HAS_POINT | CHANGED))
        this.records.piece(slot).ints[this.records.at(slot) + P_STATE] &= ~INDEXED
      else {
        this.records.clear(slot)
        this.trackers.release(slot)
      }
    }
  }

  private numbersOf(slots: readonly number[]): NumberRows {
    const values = new Float64Array(slots.length * POINT_FIELDS.length)
    for (const [i, slot] of slots.entries())
      readKept(this.records.piece(slot), this.records.at(slot), values, i * POINT_FIELDS.length)
    return {
      table: LATEST_POSITIONS.name,
      ids: slots.map((slot) => this.trackers.idOf(slot)),
      scopes: slots.map((slot) => this.organizationOf(slot)),
      idField: 'trackerId',
      scopeField: 'organizationId',
      fields: POINT_FIELDS,
      values,
    }
  }

  private deletionOf(slot: number): RowChange {
    return { table: LATEST_POSITIONS.name, scope: this.organizationOf(slot), id: this.trackers.idOf(slot), row: null }
  }

  /** A change to the list of the partition's trackers: none, for nearly every row. */
  private trackerChangeOf(slot: number, isListed: boolean): RowChange {
    return trackerChange(this.partition, this.trackers.idOf(slot), isListed ? this.organizationOf(slot) : undefined)
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
