/** Names of the tables of the location history. */
export const POINTS = 'points'
export const TRANSITIONS = 'transitions'
export const TRIPS = 'trips'
export const RUNS = 'automation_runs'
export const AUDIT = 'audit_log'

/** Epochs of a log that a version can tell apart, and revisions. */
const EPOCH_MAX = 32_767
const REVISION_MAX = 2 ** 48 - 1
const NOT_AHEAD = 1n << 63n
const FINISHED = 1n << 62n
const TRIP_EPOCH_MAX = 16_383

/** The version of a point's row, see `createPoints`. */
export const versionOf = (epoch: number, revision: number, ahead: boolean): bigint =>
  (ahead ? 0n : NOT_AHEAD) | (BigInt(EPOCH_MAX - epoch) << 48n) | BigInt(REVISION_MAX - revision)

/** The version of a transition's row: of those with one id the first logged counts. */
export const transitionVersionOf = (epoch: number, revision: number): bigint => versionOf(epoch, revision, true)

/** The version of a trip's row: a finished one counts before a running one, then the later logged. */
export const tripVersionOf = (epoch: number, revision: number, isFinished: boolean): bigint =>
  (isFinished ? FINISHED : 0n) | (BigInt(Math.min(epoch, TRIP_EPOCH_MAX)) << 48n) | BigInt(revision)

/**
 * Every point ever logged, until it expires. Of several rows with one (organization, tracker, recordedAt) the one with
 * the highest `version` counts: bit 63 says "was not ahead of the clock when logged", below it 15 bits that fall as the
 * epoch of the log rises and 48 that fall as the revision of the batch does. So the first logged wins, whatever is
 * inserted again and in whatever order. Reads say FINAL. Columns without ALIAS are those of an inserted block, in order.
 */
const createPoints = ({ days }: Retention): string => `
CREATE TABLE IF NOT EXISTS ${POINTS} (
  organizationId UUID CODEC(ZSTD(3)),
  trackerId UUID CODEC(ZSTD(3)),
  recordedAt DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(3)),
  latE7 Int32 CODEC(Delta, ZSTD(3)),
  lngE7 Int32 CODEC(Delta, ZSTD(3)),
  flags UInt16 CODEC(ZSTD(3)),
  accuracyCm Int32 CODEC(ZSTD(3)),
  altitudeCm Int32 CODEC(Delta, ZSTD(3)),
  speedCms Int32 CODEC(ZSTD(3)),
  headingTenths UInt16 CODEC(ZSTD(3)),
  batteryPercent UInt8 CODEC(ZSTD(3)),
  attributes String CODEC(ZSTD(3)),
  version UInt64 CODEC(Delta, ZSTD(3)),
  lat Float64 ALIAS latE7 / 1e7,
  lng Float64 ALIAS lngE7 / 1e7,
  accuracy Nullable(Float64) ALIAS if(bitTest(flags, 0), accuracyCm / 100, NULL),
  altitude Nullable(Float64) ALIAS if(bitTest(flags, 1), altitudeCm / 100, NULL),
  speed Nullable(Float64) ALIAS if(bitTest(flags, 2), speedCms / 100, NULL),
  heading Nullable(Float64) ALIAS if(bitTest(flags, 3), headingTenths / 10, NULL),
  battery Nullable(Float64) ALIAS if(bitTest(flags, 4), batteryPercent / 100, NULL),
  trip Nullable(String) ALIAS multiIf(bitTest(flags, 6), 'start', bitTest(flags, 7), 'finish', NULL),
  ahead Bool ALIAS NOT bitTest(version, 63),
  epoch UInt16 ALIAS toUInt16(32767 - bitAnd(bitShiftRight(version, 48), 32767)),
  revision UInt64 ALIAS 281474976710655 - bitAnd(version, 281474976710655),
  INDEX byTime recordedAt TYPE minmax GRANULARITY 1
) ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(recordedAt)
ORDER BY (organizationId, trackerId, recordedAt)
TTL ${timeToLive('recordedAt', days)}
SETTINGS ${TABLE_SETTINGS}`

/** Entries and leaves. */
const createTransitions = ({ days }: Retention): string => `
CREATE TABLE IF NOT EXISTS ${TRANSITIONS} (
  organizationId String CODEC(ZSTD(3)),
  at DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(3)),
  _id String CODEC(ZSTD(3)),
  trackerId String CODEC(ZSTD(3)),
  geofenceId String CODEC(ZSTD(3)),
  geofenceGroupId String CODEC(ZSTD(3)),
  type String CODEC(ZSTD(3)),
  cause String CODEC(ZSTD(3)),
  point String CODEC(ZSTD(3)),
  position UInt64 CODEC(Delta, ZSTD(3)),
  ordinal UInt32 CODEC(ZSTD(3)),
  version UInt64 CODEC(Delta, ZSTD(3)),
  INDEX byTracker trackerId TYPE bloom_filter GRANULARITY 1,
  INDEX byGeofence geofenceId TYPE bloom_filter GRANULARITY 1
) ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(at)
ORDER BY (organizationId, at, _id)
TTL ${timeToLive('at', days)}
SETTINGS ${TABLE_SETTINGS}`

/** One row for each change of a trip; the one with the highest version (`tripVersionOf`) counts. */
const createTrips = ({ days }: Retention): string => `
CREATE TABLE IF NOT EXISTS ${TRIPS} (
  organizationId String CODEC(ZSTD(3)),
  startedAt DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(3)),
  _id String CODEC(ZSTD(3)),
  trackerId String CODEC(ZSTD(3)),
  explicit UInt8 CODEC(ZSTD(3)),
  finishedAtMs Int64 CODEC(ZSTD(3)),
  distance Float64 CODEC(ZSTD(3)),
  point String CODEC(ZSTD(3)),
  version UInt64 CODEC(Delta, ZSTD(3)),
  INDEX byTracker trackerId TYPE bloom_filter GRANULARITY 1,
  INDEX byId _id TYPE bloom_filter GRANULARITY 1
) ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(startedAt)
ORDER BY (organizationId, startedAt, _id)
TTL ${timeToLive('startedAt', days)}
SETTINGS ${TABLE_SETTINGS}`

export const timeToLive = (column: string, days: number): string => `${column} + toIntervalDay(${days})`

/** Inserts and merges reach the disk before they count; parts older than two minutes are merged, so that reads meet few. */
const TABLE_SETTINGS = `
  fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1,
  non_replicated_deduplication_window = 100,
  min_age_to_force_merge_seconds = 120, ttl_only_drop_parts = 0, index_granularity = 8192`

/**
 * What is known of each run of an automation, in rows that become one when they are merged or read with FINAL: the row
 * that was owed has what never changes, and those of its attempts and ends have `attempts` and `state`, of which all and
 * the last one count. So whatever is inserted again, in any order, changes nothing. `state` begins with its place in the
 * log in fixed width, then status, reason, and when the next attempt is due; attempts begin with theirs.
 */
const createRuns = ({ runDays }: Retention): string => `
CREATE TABLE IF NOT EXISTS ${RUNS} (
  organizationId String CODEC(ZSTD(3)),
  createdAt DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(3)),
  _id String CODEC(ZSTD(3)),
  automationId SimpleAggregateFunction(max, String) CODEC(ZSTD(3)),
  trackerId SimpleAggregateFunction(max, String) CODEC(ZSTD(3)),
  partition SimpleAggregateFunction(max, UInt16) CODEC(ZSTD(3)),
  sequence SimpleAggregateFunction(max, UInt64) CODEC(ZSTD(3)),
  trigger SimpleAggregateFunction(max, String) CODEC(ZSTD(3)),
  state SimpleAggregateFunction(max, String) CODEC(ZSTD(3)),
  attempts SimpleAggregateFunction(groupUniqArrayArray, Array(String)) CODEC(ZSTD(3)),
  INDEX byId _id TYPE bloom_filter GRANULARITY 1
) ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(createdAt)
ORDER BY (organizationId, createdAt, _id)
TTL ${timeToLive('createdAt', runDays)}
SETTINGS ${TABLE_SETTINGS}`

/**
 * One row for each event that somebody's command made: where it stands in the log, which has who and what. It never
 * expires: the log keeps those events for as long as what they are about is not erased.
 */
const createAudit = (): string => `
CREATE TABLE IF NOT EXISTS ${AUDIT} (
  organizationId String CODEC(ZSTD(3)),
  at DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(3)),
  _id String CODEC(ZSTD(3)),
  actorType String CODEC(ZSTD(3)),
  actorId String CODEC(ZSTD(3)),
  action String CODEC(ZSTD(3)),
  noun String CODEC(ZSTD(3)),
  resourceId String CODEC(ZSTD(3)),
  hubIds Array(String) CODEC(ZSTD(3)),
  stream String CODEC(ZSTD(3)),
  revision UInt64 CODEC(ZSTD(3)),
  place String CODEC(ZSTD(3)),
  INDEX byActor actorId TYPE bloom_filter GRANULARITY 1,
  INDEX byResource resourceId TYPE bloom_filter GRANULARITY 1
) ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(at)
ORDER BY (organizationId, at, _id)
SETTINGS ${TABLE_SETTINGS}`

/** How long rows are kept, in days: `days` points and what was decided of them, `runDays` runs of automations. */
export interface Retention {
  days: number
  runDays: number
}

/** Every table whose rows expire, with the time by which they do. */
export const TABLES = [
  { name: POINTS, time: 'recordedAt', days: ({ days }: Retention) => days },
  { name: TRANSITIONS, time: 'at', days: ({ days }: Retention) => days },
  { name: TRIPS, time: 'startedAt', days: ({ days }: Retention) => days },
  { name: RUNS, time: 'createdAt', days: ({ runDays }: Retention) => runDays },
] as const

/**
 * Changes of the schema, each by its number, from 1 without gaps. One that was released never changes again: what comes
 * later is a new one. Each statement may run a second time, because a crash may come before its number is stored.
 */
export const MIGRATIONS: readonly ((retention: Retention) => string[])[] = [
  (retention) => [createPoints(retention), createTransitions(retention), createTrips(retention)],
  // Where a transition stands in its own stream: positions of the whole log are nothing to count with.
  () => [
    `ALTER TABLE ${TRANSITIONS} RENAME COLUMN IF EXISTS position TO revision`,
    `ALTER TABLE ${TRANSITIONS} ADD COLUMN IF NOT EXISTS partition UInt16 CODEC(ZSTD(3)) AFTER point`,
  ],
  (retention) => [createRuns(retention)],
  // Runs are about tasks, records and routing results, too.
  () => [`ALTER TABLE ${RUNS} RENAME COLUMN IF EXISTS trackerId TO subjectId`],
  () => [createAudit()],
]
