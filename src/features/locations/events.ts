/**
 * Events of the streams `locations-<partition>`. Batches of points are the unit from ingress to every consumer: columns
 * in typed arrays, never an object per point. The bytes are in point-batch-codec.ts.
 */
export const POINTS_RECORDED = 'pointsRecorded.v1'
export const FENCES_CHANGED = 'fencesChanged.v1'
export const TRACKER_DELETED = 'trackerDeleted.v1'
/** Asks the matcher to write a snapshot of its state, so that everything before this may be truncated. */
export const SNAPSHOT_ASKED = 'snapshotAsked.v1'

/** Bits of `flags`: optional values present, trip boundaries, and whether the clock was ahead when logged. */
export const HAS_ACCURACY = 1
export const HAS_ALTITUDE = 2
export const HAS_SPEED = 4
export const HAS_HEADING = 8
export const HAS_BATTERY = 16
export const HAS_ATTRIBUTES = 32
export const TRIP_START = 64
export const TRIP_FINISH = 128
/** More than 10 minutes ahead of the server's clock when logged: only the history keeps the point. */
export const AHEAD = 256

export interface BatchTracker {
  /** UUID, lower case. */
  trackerId: string
  organizationId: string
}

/**
 * Points of many trackers and organizations. Within a batch they are sorted by `tracker`, then by `recordedAt`, and no
 * (tracker, recordedAt) occurs twice. Columns of optional values hold 0 where the flag is not set.
 */
export interface PointBatch {
  /** Time at which the ingress accepted the points, ms since the epoch. */
  loggedAt: number
  count: number
  /** Trackers of the batch; `tracker` holds indexes into this list. */
  trackers: BatchTracker[]
  tracker: Uint16Array
  /** ms since the epoch, whole. */
  recordedAt: Float64Array
  /** 1e-7 degree. */
  lat: Int32Array
  /** 1e-7 degree. */
  lng: Int32Array
  flags: Uint16Array
  /** 0.01 m. */
  accuracy: Int32Array
  /** 0.01 m. */
  altitude: Int32Array
  /** 0.01 m/s. */
  speed: Int32Array
  /** 0.1 degree. */
  heading: Uint16Array
  /** 0.01 of full. */
  battery: Uint8Array
  /** JSON text of `attributes` by index in the batch; only points with HAS_ATTRIBUTES. */
  attributes: Map<number, string>
}

/** From here on, these fences and groups apply at these revisions; and, by value, the settings for decisions. */
export interface FencesChanged {
  organizationId: string
  /** Time of the edit (`at` of the transitions that it causes), ms since the epoch. */
  at: number
  /** Log position of the edit that this follows; the reactor's checkpoint and the writer's proof. */
  sourcePosition: number
  geofences: { geofenceId: string; revision: number }[]
  groups: { geofenceGroupId: string; revision: number }[]
  /** Set by a start that changes a setting (for all organizations: organizationId is `*`). */
  settings?: MatchingSettings
}

/** Settings that matching depends on, in force from some revision of the location stream on. */
export interface MatchingSettings {
  tripStopMs: number
  /** Absent in events from before the flag existed: no gap ends a trip. */
  tripGapMs?: number
  rollout: string[] | '*'
}

/** Consumer that announces, in every partition, the revision from which an edit of fences applies. */
export const ANNOUNCE_FENCES = 'announce-fences'

/** Consumer that announces in its partition that a tracker was deleted. */
export const ANNOUNCE_DELETIONS = 'announce-deletions'

export interface TrackerDeleted {
  organizationId: string
  trackerId: string
  /** Time of the deletion, ms since the epoch. */
  at: number
}

/** Deletions in the streams `deleted-trackers-<partition>`. They outlive the truncation of the location stream. */
export const DELETION_PLACED = 'deletionPlaced.v1'

export interface DeletionPlaced {
  organizationId: string
  trackerId: string
  /** Log epoch and location stream revision of the deletion: points logged earlier are of the deleted tracker. */
  epoch: number
  revision: number
}

/**
 * Stream of permanent erasures from the history (each a `HistoryErasure`). Never truncated: inserters into the history
 * read it, after any loss and at each rebuild. Appended with `any`: duplicates have no effect.
 */
export const HISTORY_ERASURES = 'history-erasures'
export const HISTORY_ERASED = 'historyErased.v1'

/** One event of a location stream, decoded once per process. */
export type LocationEntry = { partition: number; revision: number; position: number } & (
  | { kind: 'points'; batch: PointBatch }
  | { kind: 'fencesChanged'; change: FencesChanged }
  | { kind: 'trackerDeleted'; deletion: TrackerDeleted }
  | { kind: 'snapshotAsked'; askedAt: number }
)

/** Time of an entry's occurrence or logging, ms since the epoch. */
export const happenedAt = (entry: LocationEntry): number => {
  if (entry.kind === 'points') return entry.batch.loggedAt
  if (entry.kind === 'fencesChanged') return entry.change.at
  return entry.kind === 'trackerDeleted' ? entry.deletion.at : entry.askedAt
}

export const deletedTrackersStream = (partition: number): string => `deleted-trackers-${partition}`

export const locationStream = (partition: number): string => `locations-${partition}`

/** FNV-1a over the characters of the id. The number of partitions and this function are fixed when a log is created. */
export const partitionOf = (trackerId: string, partitions: number): number => {
  let hash = 0x811c9dc5
  for (let i = 0; i < trackerId.length; i++) hash = Math.imul(hash ^ trackerId.charCodeAt(i), 0x01000193)
  return (hash >>> 0) % partitions
}
