import type { TableStore } from '../../engines/table-store.ts'
import type { Row, TableDeclaration } from '../../kernel/table.ts'
import { partitionOf } from '../locations/events.ts'
import { matcherCheckpoint } from '../transitions/events.ts'

/** One row for each trip, from its start on: a year of them is read from the history. */
export const TRIPS: TableDeclaration = {
  name: 'trips',
  version: 1,
  equality: ['_id', 'trackerId', 'state', 'explicit'],
  range: ['startedAt'],
}

export interface TripRow extends Row {
  _id: string
  trackerId: string
  explicit: boolean
  state: 'running' | 'finished'
  /** ms since the epoch, as is `finishedAt`. */
  startedAt: number
  finishedAt: number | null
  /** Metres; 0 while the trip runs. */
  distance: number
}

/** Row of a trip that has just started or finished. */
export const tripRow = (
  change: Pick<TripRow, '_id' | 'trackerId' | 'explicit' | 'startedAt' | 'distance'> & { finishedAt?: number },
): TripRow => ({
  _id: change._id,
  trackerId: change.trackerId,
  explicit: change.explicit,
  state: change.finishedAt === undefined ? 'running' : 'finished',
  startedAt: change.startedAt,
  finishedAt: change.finishedAt ?? null,
  distance: change.distance,
})

export const tripShown = (
  row: TripRow,
  trackingToken: string,
  runningMeters?: number,
): { [member: string]: unknown } => ({
  _id: row._id,
  trackerId: row.trackerId,
  trackingToken,
  state: row.state,
  explicit: row.explicit,
  startedAt: new Date(row.startedAt).toISOString(),
  finishedAt: row.finishedAt === null ? null : new Date(row.finishedAt).toISOString(),
  distance: row.state === 'running' ? (runningMeters ?? row.distance) : row.distance,
})

/**
 * Distances of the running trips of a partition, stored with the state of its matcher every few seconds: a row for each
 * bucket of trackers, so that a moving fleet writes few, and a tracker's id determines its row.
 */
export const RUNNING_TRIPS: TableDeclaration = { name: 'running_trips', version: 1, lives: 'partition' }

export interface RunningTripsRow extends Row {
  /** By tracker: start of its trip, and the metres since. */
  trips: { [trackerId: string]: [startedAt: number, meters: number] }
}

/** One of 256 buckets per partition, by the end of the id, which is random. */
export const runningTripsId = (trackerId: string): string => trackerId.slice(-2)

/** Metres so far of running trips, in their order; undefined if not stored yet. */
export const readRunningMeters = async (
  tables: Pick<TableStore, 'getMany'>,
  partitions: number,
  trips: readonly Pick<TripRow, 'trackerId' | 'startedAt'>[],
): Promise<(number | undefined)[]> => {
  const idsOf = new Map<number, Set<string>>()
  for (const { trackerId } of trips) {
    const partition = partitionOf(trackerId, partitions)
    idsOf.set(partition, (idsOf.get(partition) ?? new Set()).add(runningTripsId(trackerId)))
  }
  const running = new Map<string, [startedAt: number, meters: number]>()
  for (const [partition, ids] of idsOf) {
    const rows = await tables.getMany<RunningTripsRow>(RUNNING_TRIPS.name, matcherCheckpoint(partition), [...ids])
    for (const row of rows)
      for (const [trackerId, trip] of Object.entries(row?.trips ?? {})) running.set(trackerId, trip)
  }
  return trips.map(({ trackerId, startedAt }) => {
    const trip = running.get(trackerId)
    return trip?.[0] === startedAt ? trip[1] : undefined
  })
}
