/**
 * What the streams `locations-<partition>` hold. A batch of points is the unit from the door to every consumer: columns
 * in typed arrays, never an object for each point. The bytes are in point-batch-codec.ts.
 */
export const POINTS_RECORDED = 'pointsRecorded.v1'
export const FENCES_CHANGED = 'fencesChanged.v1'
export const TRACKER_DELETED = 'trackerDeleted.v1'
/** The matcher is to write a snapshot of its state, so that what stands before this may be truncated. */
export const SNAPSHOT_ASKED = 'snapshotAsked.v1'

/** Bits of `flags`: which optional values a point has, its trip boundary, and whether its clock was ahead when logged. */
export const HAS_ACCURACY = 1
export const HAS_ALTITUDE = 2
export const HAS_SPEED = 4
export const HAS_HEADING = 8
export const HAS_BATTERY = 16
export const HAS_ATTRIBUTES = 32
export const TRIP_START = 64
export const TRIP_FINISH = 128
/** More than 10 minutes ahead of the server's clock when logged: history keeps it, nothing else moves by it. */
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
  /** When the ingress took the points, ms since the epoch. */
  loggedAt: number
  count: number
  /** The trackers of the batch; `tracker` points into this list. */
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
  /** JSON text of `attributes` by place in the batch; only points with HAS_ATTRIBUTES. */
  attributes: Map<number, string>
}

/** From this place of the partition on, these fences and groups count, at these revisions; and by value the flags that decide. */
export interface FencesChanged {
  organizationId: string
  /** When the edit happened (`at` of the transitions that it makes), ms since the epoch. */
  at: number
  /** Position in the log of the edit that this follows; the reactor's checkpoint and the writer's proof. */
  sourcePosition: number
  geofences: { geofenceId: string; revision: number }[]
  groups: { geofenceGroupId: string; revision: number }[]
  /** Set at a start that changes a flag (for all organizations: organizationId is `*`). */
  settings?: MatchingSettings
}

/** The flags that decide, as they are in force from some place of the location stream on. */
export interface MatchingSettings {
  tripStopMs: number
  /** Absent in what was logged before there was such a flag: no gap ends a trip. */
  tripGapMs?: number
  rollout: string[] | '*'
}

/** The consumer that says in every partition from where on an edit of fences counts. */
export const ANNOUNCE_FENCES = 'announce-fences'

/** The consumer that says in its partition that a tracker was deleted. */
export const ANNOUNCE_DELETIONS = 'announce-deletions'

export interface TrackerDeleted {
  organizationId: string
  trackerId: string
  /** When it was deleted, ms since the epoch. */
  at: number
}

/** What the streams `deleted-trackers-<partition>` hold: where a deletion stands. It outlives the truncation of the location stream. */
export const DELETION_PLACED = 'deletionPlaced.v1'

export interface DeletionPlaced {
  organizationId: string
  trackerId: string
  /** Epoch of the log and revision of the deletion in the location stream: points that were logged before are of the deleted tracker. */
  epoch: number
  revision: number
}

/**
 * What the stream `history-erasures` holds: whose rows left the history for ever (a `HistoryErasure`). Never truncated:
 * inserters into the history read it, after any loss and at each rebuild. Appended with `any`: said twice is said once.
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

/** When the subject of an entry happened or was logged, ms since the epoch. */
export const happenedAt = (entry: LocationEntry): number => {
  if (entry.kind === 'points') return entry.batch.loggedAt
  if (entry.kind === 'fencesChanged') return entry.change.at
  return entry.kind === 'trackerDeleted' ? entry.deletion.at : entry.askedAt
}

export const deletedTrackersStream = (partition: number): string => `deleted-trackers-${partition}`

export const locationStream = (partition: number): string => `locations-${partition}`

/** FNV-1a over the characters of the id. The number of partitions and this function are fixed when a log is made. */
export const partitionOf = (trackerId: string, partitions: number): number => {
  let hash = 0x811c9dc5
  for (let i = 0; i < trackerId.length; i++) hash = Math.imul(hash ^ trackerId.charCodeAt(i), 0x01000193)
  return (hash >>> 0) % partitions
}
