/**
 * What the streams `transitions-<partition>` hold: what the matcher and the trip detection of a partition decided, in
 * the order decided. One event carries what one source event decided (or a part of it, when that is much).
 */
export const DECIDED = 'decided.v1'
/** First append of a new owner of the partition: fences off the one before. */
export const PARTITION_TAKEN = 'partitionTaken.v1'

/** A point as transitions and trips carry it; units and members as in the contract's row of history. */
export interface PointValue {
  recordedAt: number
  lat: number
  lng: number
  accuracy?: number
  altitude?: number
  speed?: number
  heading?: number
  battery?: number
  attributes?: { [name: string]: unknown }
}

export interface Transition {
  kind: 'transition'
  /** UUIDv5 of (organization, geofence, tracker, source revision, ordinal): the same at every replay. */
  _id: string
  organizationId: string
  trackerId: string
  geofenceId: string
  geofenceGroupId: string
  type: 'entry' | 'leave'
  /** ms since the epoch: of the point, the edit, or the deletion. */
  at: number
  cause: 'point' | 'geofence' | 'tracker'
  point: PointValue
}

export interface TripChange {
  kind: 'tripStarted' | 'tripFinished'
  /** UUIDv5 of (tracker, start): the same at every replay. */
  _id: string
  organizationId: string
  trackerId: string
  explicit: boolean
  /** ms since the epoch. */
  startedAt: number
  /** Absent while the trip runs. */
  finishedAt?: number
  /** Metres so far. */
  distance: number
  /** The point where it started or finished. */
  point: PointValue
}

export type Decision = Transition | TripChange

export interface Decided {
  /** Revision in `locations-<partition>` of the event that led to this. */
  sourceRevision: number
  /** Ordinal of the first decision here among all that the source event led to. */
  ordinal: number
  /** When the source event was logged, ms since the epoch. */
  sourceLoggedAt: number
  decisions: Decision[]
}

/** Name of the consumer that decides a partition, and of the scope of the rows that it stores. */
export const matcherCheckpoint = (partition: number): string => `matcher-${partition}`

export const transitionStream = (partition: number): string => `transitions-${partition}`
