import type { Checkpoint, TableStore } from '../src/engines/table-store.ts'
import {
  type LatestPoint,
  LATEST_POSITIONS,
  LATEST_TRACKERS,
  latestPositionCheckpoint,
  type LatestPositionRow,
  type LatestTrackerRow,
} from '../src/features/locations/views.ts'
import type { RowChange } from '../src/kernel/table.ts'

export type OwnedPoint = LatestPositionRow & { organizationId: string }

/** A copy. All of them are made here, so that they have one hidden class, whatever the source of the point. */
export const ownedPoint = (point: LatestPoint, organizationId: string): OwnedPoint => ({
  trackerId: point.trackerId,
  recordedAt: point.recordedAt,
  loggedAt: point.loggedAt,
  lat: point.lat,
  lng: point.lng,
  flags: point.flags,
  accuracy: point.accuracy,
  altitude: point.altitude,
  speed: point.speed,
  heading: point.heading,
  battery: point.battery,
  organizationId,
})

/** The source of checkpoints that tells that the trackers of a partition are kept beside their rows. */
const INDEXED = 'indexed'
const PAGE_ROWS = 500

/** A partition's checkpoint when everything through that revision is stored. */
export const latestPlace = (partition: number, revision: number): Checkpoint => ({
  [partition]: revision,
  [INDEXED]: 1,
})

/** Whether the trackers are kept: rows from before that are not found again and do not count. */
export const isIndexed = (stored: Checkpoint | undefined): boolean => stored?.[INDEXED] !== undefined

/** Revision of each partition's stream through which rows are stored, for readers of rows first and then the log. */
export const latestCheckpoint = async (
  tables: Pick<TableStore, 'checkpoint'>,
  partitions: number,
): Promise<Checkpoint> => {
  const known: Checkpoint = {}
  const read = async (partition: number): Promise<void> => {
    const stored = await tables.checkpoint(latestPositionCheckpoint(partition))
    if (stored !== undefined && isIndexed(stored)) known[partition] = stored[partition]
  }
  await Promise.all(Array.from({ length: partitions }, (_, partition) => read(partition)))
  return known
}

export interface StoredLatest {
  organizationId: string
  trackerId: string
  /** Undefined where a crash came between the tracker and its row. */
  row: LatestPositionRow | undefined
}

/** The trackers of one partition with their rows: as many reads as they need, regardless of other partitions. */
export async function* latestOfPartition(
  tables: Pick<TableStore, 'scan' | 'getMany'>,
  partition: number,
): AsyncGenerator<StoredLatest> {
  const waiting = new Map<string, string[]>()
  for await (const { id, row } of tables.scan<LatestTrackerRow>(
    LATEST_TRACKERS.name,
    latestPositionCheckpoint(partition),
  )) {
    const ids = waiting.get(row.organizationId) ?? []
    ids.push(id)
    waiting.set(row.organizationId, ids)
    if (ids.length === PAGE_ROWS) yield* rowsOf(tables, row.organizationId, ids.splice(0))
  }
  for (const [organizationId, ids] of waiting) yield* rowsOf(tables, organizationId, ids)
}

/** The same for some trackers of a partition; those that it lacks are left out. */
export async function* latestOf(
  tables: Pick<TableStore, 'getMany'>,
  partition: number,
  trackers: readonly { trackerId: string; organizationId: string }[],
): AsyncGenerator<StoredLatest> {
  for (let from = 0; from < trackers.length; from += PAGE_ROWS) {
    const some = trackers.slice(from, from + PAGE_ROWS)
    const ids = some.map(({ trackerId }) => trackerId)
    const kept = await tables.getMany(LATEST_TRACKERS.name, latestPositionCheckpoint(partition), ids)
    const idsOf = new Map<string, string[]>()
    for (const { organizationId, trackerId } of some.filter((_, i) => kept[i] !== undefined))
      idsOf.set(organizationId, (idsOf.get(organizationId) ?? []).concat(trackerId))
    for (const [organizationId, trackerIds] of idsOf) yield* rowsOf(tables, organizationId, trackerIds)
  }
}

async function* rowsOf(
  tables: Pick<TableStore, 'getMany'>,
  organizationId: string,
  trackerIds: readonly string[],
): AsyncGenerator<StoredLatest> {
  if (trackerIds.length === 0) return
  const rows = await tables.getMany<LatestPositionRow>(LATEST_POSITIONS.name, organizationId, trackerIds)
  for (const [i, trackerId] of trackerIds.entries()) yield { organizationId, trackerId, row: rows[i] }
}

/** Records that the partition has, or no longer has, a tracker. */
export const trackerChange = (partition: number, trackerId: string, organizationId: string | undefined): RowChange => ({
  table: LATEST_TRACKERS.name,
  scope: latestPositionCheckpoint(partition),
  id: trackerId,
  row: organizationId === undefined ? null : { organizationId },
})
