import type { Row, TableDeclaration } from '../../kernel/table.ts'

/** One row for each trip, from the moment it starts: a year of them is read from the history. */
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

/** The row of a trip that has just started or finished. */
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

/** A trip as its GET, the live channel and a webhook show it. */
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
