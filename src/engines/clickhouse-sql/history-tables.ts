import type { HistoryStore } from '../history-store.ts'

/** Names of the tables of the location history. */
export const POINTS = 'points'
export const TRANSITIONS = 'transitions'
export const TRIPS = 'trips'

/** Epochs of a log that a version can tell apart, and revisions. */
const EPOCH_MAX = 32_767
const REVISION_MAX = 2 ** 48 - 1
const NOT_AHEAD = 1n << 63n

/** The version of a point's row, see `createPoints`. */
export const versionOf = (epoch: number, revision: number, ahead: boolean): bigint =>
  (ahead ? 0n : NOT_AHEAD) | (BigInt(EPOCH_MAX - epoch) << 48n) | BigInt(REVISION_MAX - revision)

/**
 * Every point ever logged, until it expires. Of several rows with one (organization, tracker, recordedAt) the one with
 * the highest `version` counts: bit 63 says "was not ahead of the clock when logged", below it 15 bits that fall as the
 * epoch of the log rises and 48 that fall as the revision of the batch does. So the first logged wins, whatever is
 * inserted again and in whatever order. Reads say FINAL. Columns without ALIAS are those of an inserted block, in order.
 */
const createPoints = (days: number): string => `
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

/** Entries and leaves. `position` with `ordinal` is the place in the whole log, so that equal times are read in the order logged. */
const createTransitions = (days: number): string => `
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

/** One row for each change of a trip; the one with the highest version (finished before running, then the later in the log) counts. */
const createTrips = (days: number): string => `
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

const timeToLive = (column: string, days: number): string => `${column} + toIntervalDay(${days})`

/** Inserts and merges reach the disk before they count; parts older than two minutes are merged, so that reads meet few. */
const TABLE_SETTINGS = `
  fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1,
  non_replicated_deduplication_window = 100,
  min_age_to_force_merge_seconds = 120, ttl_only_drop_parts = 0, index_granularity = 8192`

const TABLES = [
  { name: POINTS, create: createPoints, time: 'recordedAt' },
  { name: TRANSITIONS, create: createTransitions, time: 'at' },
  { name: TRIPS, create: createTrips, time: 'startedAt' },
]

/**
 * Makes the tables that are missing and gives all of them the retention in days. Idempotent; to be called at each start.
 */
export const createHistoryTables = async (store: HistoryStore, days: number): Promise<void> => {
  for (const { name, create, time } of TABLES) {
    await store.command(create(days))
    const [found] = await store.rows<{ sql: string }>(
      'SELECT create_table_query AS sql FROM system.tables WHERE database = currentDatabase() AND name = {name:String}',
      { name },
    )
    if (found?.sql.includes(`toIntervalDay(${days})`)) continue
    // The parts that are there keep their rows until their own merges look at them: nothing is rewritten at the start.
    await store.command(
      `ALTER TABLE ${name} MODIFY TTL ${timeToLive(time, days)} SETTINGS materialize_ttl_after_modify = 0`,
    )
  }
}
