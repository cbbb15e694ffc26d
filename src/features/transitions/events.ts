/**
 * Events of the streams `transitions-<partition>`: decisions of the matcher and the trip detection of a partition, in
 * order. One event carries the decisions of one source event (or a part of them, if there are many).
 */
export const DECIDED = 'decided.v1'
/** First append by a new owner of the partition: fences off the previous owner. */
export const PARTITION_TAKEN = 'partitionTaken.v1'

/** A point in transitions and trips; units and members as in the API's row of history. */
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
  /** Point of the start or finish. */
  point: PointValue
}

export type Decision = Transition | TripChange

export interface Decided {
  /** Revision in `locations-<partition>` of the causing event. */
  sourceRevision: number
  /** Ordinal of the first decision here among all of the source event. */
  ordinal: number
  /** Time at which the source event was logged, ms since the epoch. */
  sourceLoggedAt: number
  decisions: Decision[]
}

/** Name of the consumer that decides a partition, and of the scope of its stored rows. */
export const matcherCheckpoint = (partition: number): string => `matcher-${partition}`

export const transitionStream = (partition: number): string => `transitions-${partition}`
