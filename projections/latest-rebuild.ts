import type { TableStore } from '../src/engines/table-store.ts'
import { partitionOf, type LocationEntry, type PointBatch } from '../src/features/locations/events.ts'
import {
  latestPointAt,
  LATEST_POSITIONS,
  latestPositionCheckpoint,
  type LatestPositionRow,
  POINT_FIELDS,
} from '../src/features/locations/views.ts'
import type { RowChange } from '../src/kernel/table.ts'
import { grouped } from '../src/kernel/grouped.ts'
import { OwnedCheckpoint } from '../src/kit/consumers/checkpoint.ts'
import type { RebuildReport } from '../src/kit/consumers/rebuild-projection.ts'
import { forEachNewest } from './latest-partition.ts'
import { LATEST_POSITION } from './latest-position.ts'
import { latestOfPartition, ownedPoint, trackerChange } from './latest-restore.ts'

export interface LogPlace {
  epoch: number
  revision: number
}

export type OwnedPosition = LatestPositionRow & { organizationId: string }

/** A tracker's newest point in the history, which does not know when it was logged. */
export interface NewestPosition {
  row: OwnedPosition
  place: LogPlace
}

export interface LatestRebuildParts {
  tables: Pick<TableStore, 'scan' | 'getMany' | 'take' | 'commit'>
  partitions: number
  epoch: number
  /** Points recorded before this time (ms since the epoch) may have expired from the history. */
  since: number
  /** Revision through which the rows of a partition are stored, and whether it gets there soon. */
  standsAt(partition: number): Promise<number>
  reaches(partition: number, revision: number): Promise<boolean>
  /** Runs something while nobody follows the log for the rows. */
  whileNobodyFollows<Result>(run: () => Promise<Result>): Promise<Result>
  /** Revision through which the history has a partition. */
  historyAt(partition: number): Promise<number>
  newest(): AsyncIterable<NewestPosition>
  /** The newest of one tracker's points that were logged after a place. */
  newestSince(tracker: OwnedPosition, place: LogPlace): Promise<NewestPosition | undefined>
  deletions(partition: number): Promise<ReadonlyMap<string, LogPlace>>
  /** Entries from one revision through another, as far as the log has them. */
  entries(partition: number, from: number, through: number): AsyncIterable<LocationEntry>
}

interface Rebuilt {
  at: number
  /** Newest revision known to the history. */
  seen: number
  points: Map<string, OwnedPosition>
  changes: RowChange[]
}

const DIFFERENCES_MAX = 100
const ROWS_PER_COMMIT = 500

/**
 * Computes the latest positions from the history's newest point of each tracker that was not ahead of the clock and was
 * logged after the tracker's last deletion, then from the log beyond the history. Compares them with the live rows,
 * which stand still meanwhile, and corrects those that differ. The log time of a point counts only where the log still
 * knows it; a row whose point may have expired from the history is left unchanged.
 */
export const rebuildLatestPositions = async (parts: LatestRebuildParts): Promise<RebuildReport> => {
  const { partitions } = parts
  const rebuilding = new LatestRebuilding(parts)
  await rebuilding.takeHistory()
  for (let partition = 0; partition < partitions; partition++) await rebuilding.catchUp(partition)
  return parts.whileNobodyFollows(async () => {
    for (let partition = 0; partition < partitions; partition++) await rebuilding.catchUp(partition)
    const report = await rebuilding.compare()
    await rebuilding.store()
    return report
  })
}

class LatestRebuilding {
  private readonly parts: LatestRebuildParts
  private readonly rebuilt: Rebuilt[] = []
  /** Rows whose log time is no longer known. */
  private readonly undated = new Set<OwnedPosition>()

  constructor(parts: LatestRebuildParts) {
    this.parts = parts
  }

  async takeHistory(): Promise<void> {
    const { partitions, historyAt, newest, deletions, epoch } = this.parts
    for (let partition = 0; partition < partitions; partition++) {
      this.rebuilt.push({
        at: await historyAt(partition),
        seen: -1,
        points: new Map(),
        changes: [],
      })
    }
    const found = Array.from({ length: partitions }, (): NewestPosition[] => [])
    for await (const one of newest()) found[partitionOf(one.row.trackerId, partitions)].push(one)
    for (let partition = 0; partition < partitions; partition++) {
      const deleted = await deletions(partition)
      const kept: NewestPosition[] = []
      for (const one of found[partition]) {
        const deletion = deleted.get(one.row.trackerId)
        const since =
          deletion === undefined || isAfter(one.place, deletion) ? one : await this.parts.newestSince(one.row, deletion)
        if (since !== undefined) kept.push(since)
      }
      for (const { row, place } of kept) {
        this.rebuilt[partition].points.set(row.trackerId, row)
        if (place.epoch === epoch) this.rebuilt[partition].seen = Math.max(this.rebuilt[partition].seen, place.revision)
      }
      await this.date(partition, kept)
    }
  }

  /** Applies the log up to the revision of the stored rows. */
  async catchUp(partition: number): Promise<void> {
    const { standsAt, reaches, entries } = this.parts
    const state = this.rebuilt[partition]
    if (!(await reaches(partition, state.seen)))
      throw new Error(`the latest positions of partition ${partition} do not come to where the history is`)
    const through = await standsAt(partition)
    for await (const entry of entries(partition, state.at + 1, through)) {
      if (entry.kind === 'points') takePoints(state.points, entry.batch)
      if (entry.kind === 'trackerDeleted') state.points.delete(entry.deletion.trackerId)
    }
    state.at = Math.max(state.at, through)
  }

  async compare(): Promise<RebuildReport> {
    const { tables, partitions, since } = this.parts
    const report: Required<RebuildReport> = { projection: LATEST_POSITION, rows: 0, differing: 0, differences: [] }
    const differs = (
      scope: string,
      id: string,
      live: LatestPositionRow | undefined,
      rebuilt: OwnedPosition | undefined,
    ): void => {
      if (++report.differing <= DIFFERENCES_MAX)
        report.differences.push({ table: LATEST_POSITIONS.name, scope, id, live, rebuilt })
      const row = rebuilt === undefined ? null : { ...rebuilt }
      const partition = partitionOf(id, partitions)
      const tracker = trackerChange(partition, id, row === null ? undefined : scope)
      this.rebuilt[partition].changes.push({ table: LATEST_POSITIONS.name, scope, id, row }, tracker)
    }
    for (const [partition, { points }] of this.rebuilt.entries())
      for await (const { organizationId, trackerId, row: live } of latestOfPartition(tables, partition)) {
        const row = points.get(trackerId)
        if (live === undefined) continue
        points.delete(trackerId)
        if (row === undefined && live.recordedAt < since) continue
        report.rows++
        if (row === undefined || row.organizationId !== organizationId || !this.isSame(live, row))
          differs(organizationId, trackerId, live, row)
      }
    for (const { points } of this.rebuilt) {
      for (const row of points.values()) {
        report.rows++
        differs(row.organizationId, row.trackerId, undefined, row)
      }
    }
    return report
  }

  /** Corrects differing rows, as the owner of each partition. */
  async store(): Promise<void> {
    for (const [partition, { changes }] of this.rebuilt.entries()) {
      if (changes.length === 0) continue
      const owned = await OwnedCheckpoint.take(this.parts.tables, latestPositionCheckpoint(partition))
      for (let from = 0; from < changes.length; from += ROWS_PER_COMMIT)
        await owned.commit(changes.slice(from, from + ROWS_PER_COMMIT))
    }
  }

  private isSame(live: LatestPositionRow, rebuilt: OwnedPosition): boolean {
    return POINT_FIELDS.every(
      (field) => live[field] === rebuilt[field] || (field === 'loggedAt' && this.undated.has(rebuilt)),
    )
  }

  /** Looks up in the log when the points were logged; each of its batches is read once. */
  private async date(partition: number, found: readonly NewestPosition[]): Promise<void> {
    for (const { row } of found) this.undated.add(row)
    const own = found.filter(({ place }) => place.epoch === this.parts.epoch)
    for (const [revision, some] of grouped(own, ({ place }) => place.revision)) {
      for await (const entry of this.parts.entries(partition, revision, revision)) {
        if (entry.kind !== 'points') continue
        for (const { row } of some) {
          row.loggedAt = entry.batch.loggedAt
          this.undated.delete(row)
        }
      }
    }
  }
}

const isAfter = (place: LogPlace, deletion: LogPlace): boolean =>
  place.epoch > deletion.epoch || (place.epoch === deletion.epoch && place.revision > deletion.revision)

const takePoints = (points: Map<string, OwnedPosition>, batch: PointBatch): void =>
  forEachNewest(batch, (place, i) => {
    const { trackerId, organizationId } = batch.trackers[place]
    const known = points.get(trackerId)
    if (known === undefined) points.set(trackerId, ownedPoint(latestPointAt(batch, i, trackerId), organizationId))
    else if (batch.recordedAt[i] > known.recordedAt) Object.assign(known, latestPointAt(batch, i, trackerId))
  })
