import type { Definition } from './layout.ts'

export const POINTS = 'points'
export const TRANSITIONS = 'transitions'
export const TRIPS = 'trips'
export const RUNS = 'automation_runs'
export const AUDIT = 'audit_log'

/** Maxima of the epoch of a log and of the revision in a version. */
const EPOCH_MAX = 32_767
const REVISION_MAX = 2 ** 48 - 1
const NOT_AHEAD = 1n << 63n
const FINISHED = 1n << 62n
const TRIP_EPOCH_MAX = 16_383

/** The version of a point's row, see `points`. */
export const versionOf = (epoch: number, revision: number, ahead: boolean): bigint =>
  (ahead ? 0n : NOT_AHEAD) | (BigInt(EPOCH_MAX - epoch) << 48n) | BigInt(REVISION_MAX - revision)

/** The version of a transition's row: of several with one id the first logged wins. */
export const transitionVersionOf = (epoch: number, revision: number): bigint => versionOf(epoch, revision, true)

/** The version of a trip's row: a finished one wins over a running one, then the later logged. */
export const tripVersionOf = (epoch: number, revision: number, isFinished: boolean): bigint =>
  (isFinished ? FINISHED : 0n) | (BigInt(Math.min(epoch, TRIP_EPOCH_MAX)) << 48n) | BigInt(revision)

/**
 * Every point ever logged, until it expires. Of several rows with one (organization, tracker, recordedAt) the one with
 * the highest `version` wins: bit 63 means "was not ahead of the clock when logged", below it 15 bits that fall as the
 * epoch of the log rises and 48 that fall as the revision of the batch does. So the first logged wins, in whatever
 * order rows are inserted again. Reads say FINAL. Columns without ALIAS are those of an inserted block, in order.
 */
const points: Definition = {
  columns: `
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
`,
  engine: 'Replacing',
  version: 'version',
  order: 'PARTITION BY toYYYYMM(recordedAt) ORDER BY (organizationId, trackerId, recordedAt)',
  shardBy: 'trackerId',
}

const transitions: Definition = {
  columns: `
  organizationId String CODEC(ZSTD(3)),
  at DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(3)),
  _id String CODEC(ZSTD(3)),
  trackerId String CODEC(ZSTD(3)),
  geofenceId String CODEC(ZSTD(3)),
  geofenceGroupId String CODEC(ZSTD(3)),
  type String CODEC(ZSTD(3)),
  cause String CODEC(ZSTD(3)),
  point String CODEC(ZSTD(3)),
  partition UInt16 CODEC(ZSTD(3)),
  revision UInt64 CODEC(Delta, ZSTD(3)),
  ordinal UInt32 CODEC(ZSTD(3)),
  version UInt64 CODEC(Delta, ZSTD(3)),
  INDEX byTracker trackerId TYPE bloom_filter GRANULARITY 1,
  INDEX byGeofence geofenceId TYPE bloom_filter GRANULARITY 1
`,
  engine: 'Replacing',
  version: 'version',
  order: 'PARTITION BY toYYYYMM(at) ORDER BY (organizationId, at, _id)',
  shardBy: 'trackerId',
}

/** One row for each change of a trip; the one with the highest version (`tripVersionOf`) wins. */
const trips: Definition = {
  columns: `
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
`,
  engine: 'Replacing',
  version: 'version',
  order: 'PARTITION BY toYYYYMM(startedAt) ORDER BY (organizationId, startedAt, _id)',
  shardBy: 'trackerId',
}

export const timeToLive = (column: string, days: number): string => `${column} + toIntervalDay(${days})`

const SUBJECT = (member: string): string => `JSONExtractString(trigger, 'subject', '${member}')`

/** Audience of a run: the tracker's id, `records` for a record, the hub that a task was in. */
const AUDIENCE_SQL = `multiIf(${SUBJECT('type')} = 'tracker', ${SUBJECT('id')}, ${SUBJECT('type')} = 'record', 'records', ${SUBJECT('hubId')})`

/**
 * Data of each run of an automation, in rows that become one when they are merged or read with FINAL: the row of the
 * owed run has the constant members, and those of its attempts and ends have `attempts` and `state`, of which all and
 * the last one count. So repeated inserts, in any order, change nothing. `state` begins with its place in the log in
 * fixed width, then status, reason, and the due time of the next attempt; attempts begin with theirs.
 */
const runs: Definition = {
  columns: `
  organizationId String CODEC(ZSTD(3)),
  createdAt DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(3)),
  _id String CODEC(ZSTD(3)),
  automationId SimpleAggregateFunction(max, String) CODEC(ZSTD(3)),
  subjectId SimpleAggregateFunction(max, String) CODEC(ZSTD(3)),
  partition SimpleAggregateFunction(max, UInt16) CODEC(ZSTD(3)),
  sequence SimpleAggregateFunction(max, UInt64) CODEC(ZSTD(3)),
  trigger SimpleAggregateFunction(max, String) CODEC(ZSTD(3)),
  state SimpleAggregateFunction(max, String) CODEC(ZSTD(3)),
  attempts SimpleAggregateFunction(groupUniqArrayArray, Array(String)) CODEC(ZSTD(3)),
  audience SimpleAggregateFunction(max, String) MATERIALIZED ${AUDIENCE_SQL} CODEC(ZSTD(3)),
  event SimpleAggregateFunction(max, String) MATERIALIZED JSONExtractString(trigger, 'event') CODEC(ZSTD(3)),
  INDEX byId _id TYPE bloom_filter GRANULARITY 1
`,
  engine: 'Aggregating',
  order: 'PARTITION BY toYYYYMM(createdAt) ORDER BY (organizationId, createdAt, _id)',
  shardBy: '_id',
}

/**
 * One row for each event made by a user's command: its place in the log, which has the person and the change. It never
 * expires: the log keeps those events until their subject is erased.
 */
const audit: Definition = {
  columns: `
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
`,
  engine: 'Replacing',
  order: 'PARTITION BY toYYYYMM(at) ORDER BY (organizationId, at, _id)',
  shardBy: '_id',
}

/** Retention in days: `days` for points and the decisions on them, `runDays` for runs of automations. */
export interface Retention {
  days: number
  runDays: number
}

/** Every table whose rows expire, with the time that decides it. */
export const TABLES = [
  { name: POINTS, time: 'recordedAt', days: ({ days }: Retention) => days },
  { name: TRANSITIONS, time: 'at', days: ({ days }: Retention) => days },
  { name: TRIPS, time: 'startedAt', days: ({ days }: Retention) => days },
  { name: RUNS, time: 'createdAt', days: ({ runDays }: Retention) => runDays },
] as const

export type TableName = typeof POINTS | typeof TRANSITIONS | typeof TRIPS | typeof RUNS | typeof AUDIT

export const DEFINITIONS: { [table in TableName]: Definition } = {
  [POINTS]: points,
  [TRANSITIONS]: transitions,
  [TRIPS]: trips,
  [RUNS]: runs,
  [AUDIT]: audit,
}
