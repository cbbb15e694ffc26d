import type { HistoryErasure, HistoryParameters, HistoryStore } from '../history-store.ts'
import { POINTS } from './history-tables.ts'
import { createCopied, createTable, type Definition, dropTable, type Layout, shardsOf, timeOf } from './layout.ts'
import { encodeNativeBlock, writeUuid } from './native-block.ts'
import { besideOf } from './rebuild.ts'
import { TRACES, traces } from './traces.ts'

/*
 * Sums over the points of a tracker in each quarter of an hour (docs/decisions/0021), and the cells that it was in.
 * Made from nothing but the points, so they are in no backup and no comparison: missing ones are made again. If other
 * values are to be summed, give the tables other names.
 */

export const STEP_MS = 900_000

/** One row for each tracker and step that has points; of several the one with the highest version wins. */
export const STEPS = 'point_steps'
/** Steps before `through` whose points (may) have changed: summed from the points until they are rolled up again. */
export const LATE = 'point_steps_late'
/** Time through which steps are rolled up; the row with the highest number wins. */
export const STEP_STATE = 'point_rollup_state'

const steps: Definition = {
  columns: `
  organizationId UUID CODEC(ZSTD(3)),
  trackerId UUID CODEC(ZSTD(3)),
  at DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(3)),
  firstAt Int64 CODEC(DoubleDelta, ZSTD(3)),
  lastAt Int64 CODEC(DoubleDelta, ZSTD(3)),
  firstLat Int64 CODEC(ZSTD(3)),
  firstLng Int64 CODEC(ZSTD(3)),
  lastLat Int64 CODEC(ZSTD(3)),
  lastLng Int64 CODEC(ZSTD(3)),
  firstHasSpeed UInt8 CODEC(ZSTD(3)),
  meters Float64 CODEC(ZSTD(3)),
  drivenMeters Float64 CODEC(ZSTD(3)),
  drivingMs Int64 CODEC(ZSTD(3)),
  stoppedMs Int64 CODEC(ZSTD(3)),
  maxSpeed Float64 CODEC(ZSTD(3)),
  version UInt64 CODEC(Delta, ZSTD(3))
`,
  engine: 'Replacing',
  version: 'version',
  order: 'PARTITION BY toYYYYMM(at) ORDER BY (organizationId, trackerId, at)',
  shardBy: 'trackerId',
}

const late: Definition = {
  columns: `
  organizationId UUID CODEC(ZSTD(3)),
  trackerId UUID CODEC(ZSTD(3)),
  at DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(3)),
  markedAt Int64 CODEC(DoubleDelta, ZSTD(3))
`,
  engine: '',
  order: 'ORDER BY (organizationId, trackerId, at)',
  shardBy: 'trackerId',
}

/** Tables of steps that expire as points do. */
export const STEP_TABLES = [STEPS, LATE, TRACES] as const
/** Tables that are made of points. */
export const ROLLED_TABLES = [STEPS, TRACES]

export const createSteps = (layout: Layout): string[] => [
  ...createTable(STEPS, steps, layout),
  ...createTable(LATE, late, layout),
  ...createTable(TRACES, traces, layout),
  createCopied(STEP_STATE, 'number UInt64, through Int64, gapMs Int64', 'ORDER BY number', layout),
  // Left from a version that rolled up no cells.
  ...dropTable('point_steps_state', layout),
]

export interface StepState {
  /** Number of the roll-up: version of its rows. */
  number: number
  /** ms since the epoch: every step before it is rolled up or late. */
  through: number
  /** Longest time between points that makes a leg. */
  gapMs: number
}

export type Rows = Pick<HistoryStore, 'rows'>
export type Store = Pick<HistoryStore, 'rows' | 'command' | 'cluster'>

export const readStepState = async (store: Rows): Promise<StepState | undefined> => {
  const [state] = await store.rows<StepState>(
    `SELECT number, through, gapMs FROM ${STEP_STATE} ORDER BY number DESC LIMIT 1`,
  )
  return state
}

export const noteStepState = (store: Pick<Store, 'command'>, { number, through, gapMs }: StepState): Promise<void> =>
  store.command(`INSERT INTO ${STEP_STATE} SELECT {number:UInt64}, {through:Int64}, {gapMs:Int64}`, {
    number,
    through,
    gapMs,
  })

/** Resets the roll-up: all of it was made by other rules. */
export const emptySteps = async (store: Store): Promise<void> => {
  for (const table of ROLLED_TABLES) await store.command(`TRUNCATE TABLE ${shardsOf(table, store)} SYNC`)
}

export const countRolled = async (store: Rows): Promise<number> => {
  const [{ steps }] = await store.rows<{ steps: number }>(`SELECT count() AS steps FROM ${STEPS} FINAL`)
  return steps
}

/** Time of the first point of the history; undefined where there is none. */
export const firstPointAt = async (store: Rows): Promise<number | undefined> => {
  const [{ points, first }] = await store.rows<{ points: number; first: number }>(
    `SELECT count() AS points, toUnixTimestamp64Milli(min(recordedAt)) AS first FROM ${POINTS}`,
  )
  return points === 0 ? undefined : first
}

/** Consecutive late steps of one tracker. */
export interface LateRange {
  organizationId: string
  trackerId: string
  /** ms since the epoch. */
  from: number
  /** Exclusive. */
  to: number
}

/** SQL for the rows of these ranges by a column of time, and its values. */
export const within = (time: string, ranges: readonly LateRange[]) => {
  const parameters: { [name: string]: string | number } = {}
  const conditions = ranges.map(({ organizationId, trackerId, from, to }, i) => {
    Object.assign(parameters, { [`o${i}`]: organizationId, [`t${i}`]: trackerId, [`from${i}`]: from, [`to${i}`]: to })
    return `(organizationId = {o${i}:UUID} AND trackerId = {t${i}:UUID} AND ${time} >= ${timeOf(`from${i}`)} AND ${time} < ${timeOf(`to${i}`)})`
  })
  return { condition: conditions.join(' OR '), parameters }
}

const LATE_ORDER = 'organizationId, trackerId, at'

interface Late {
  organizationId: string
  trackerId: string
  at: number
}

/** Late steps of an organization, of `trackerIds` or all. */
export const lateStepsOf = (
  store: Rows,
  { organizationId, trackerIds, from }: { organizationId: string; trackerIds: 'all' | readonly string[]; from: number },
  limit: number,
): Promise<LateRange[]> => {
  const whose = trackerIds === 'all' ? '' : 'AND trackerId IN {trackers:Array(UUID)}'
  const condition = `organizationId = {organization:UUID} ${whose} AND at >= ${timeOf('from')}`
  const trackers = trackerIds !== 'all' && { trackers: trackerIds }
  return lateWhere(store, condition, { organization: organizationId, from, limit, ...trackers })
}

/** Late steps marked up to that time, one tracker's together. */
export const lateSteps = (store: Rows, markedBy: number, limit: number): Promise<LateRange[]> =>
  lateWhere(store, 'markedAt <= {markedBy:Int64}', { markedBy, limit })

const lateWhere = async (store: Rows, condition: string, parameters: HistoryParameters): Promise<LateRange[]> => {
  const found = await store.rows<Late>(
    `SELECT toString(organizationId) AS organizationId, toString(trackerId) AS trackerId, toUnixTimestamp64Milli(at) AS at
    FROM (SELECT organizationId, trackerId, at FROM ${LATE} WHERE ${condition}
      GROUP BY organizationId, trackerId, at ORDER BY ${LATE_ORDER} LIMIT {limit:UInt64})
    ORDER BY ${LATE_ORDER} SETTINGS prefer_column_name_to_alias = 1`,
    parameters,
  )
  return rangesOf(found)
}

/** Consecutive steps of one tracker become one range. */
export const rangesOf = (sorted: readonly Late[]): LateRange[] => {
  const ranges: LateRange[] = []
  for (const { organizationId, trackerId, at } of sorted) {
    const last = ranges.at(-1)
    if (last?.trackerId === trackerId && last.organizationId === organizationId && last.to === at)
      last.to = at + STEP_MS
    else ranges.push({ organizationId, trackerId, from: at, to: at + STEP_MS })
  }
  return ranges
}

/** Called when they are rolled up. Steps marked later stay late. */
export const forgetLate = async (store: Store, ranges: readonly LateRange[], markedBy: number): Promise<void> => {
  const { condition, parameters } = within('at', ranges)
  await store.command(`DELETE FROM ${shardsOf(LATE, store)} WHERE markedAt <= {markedBy:Int64} AND (${condition})`, {
    ...parameters,
    markedBy,
  })
}

/** Late steps as a block for their table. `markedAt` is ms since the epoch. */
export const lateBlock = (marks: readonly Late[], markedAt: number): Uint8Array => {
  const organizations = new Uint8Array(marks.length * 16)
  const trackers = new Uint8Array(marks.length * 16)
  for (const [i, { organizationId, trackerId }] of marks.entries()) {
    writeUuid(organizationId, organizations, i * 16)
    writeUuid(trackerId, trackers, i * 16)
  }
  return encodeNativeBlock(
    [
      { name: 'organizationId', type: 'UUID', values: organizations },
      { name: 'trackerId', type: 'UUID', values: trackers },
      { name: 'at', type: "DateTime64(3, 'UTC')", values: BigInt64Array.from(marks, ({ at }) => BigInt(at)) },
      { name: 'markedAt', type: 'Int64', values: new BigInt64Array(marks.length).fill(BigInt(markedAt)) },
    ],
    marks.length,
  )
}

const STEP_OF_POINT = `fromUnixTimestamp64Milli(toInt64(intDiv(toUnixTimestamp64Milli(recordedAt), ${STEP_MS}) * ${STEP_MS}), 'UTC')`
const NOW = 'toUnixTimestamp64Milli(now64(3))'

/** Marks the steps of the points that stand beside the table, before they are inserted. */
export const markBeside = (): string =>
  `INSERT INTO ${LATE} SELECT DISTINCT organizationId, trackerId, ${STEP_OF_POINT}, ${NOW} FROM ${besideOf(POINTS)}`

/** SQL for the rows of these trackers or organizations, and its values. */
const rowsOf = (erasures: readonly HistoryErasure[]) => {
  const parameters: { [name: string]: string } = {}
  const conditions = erasures.map(({ organizationId, trackerId }, i) => {
    parameters[`o${i}`] = organizationId
    if (trackerId === undefined) return `organizationId = toUUIDOrZero({o${i}:String})`
    parameters[`t${i}`] = trackerId
    return `(organizationId = toUUIDOrZero({o${i}:String}) AND trackerId = toUUIDOrZero({t${i}:String}))`
  })
  return { condition: conditions.join(' OR '), parameters }
}

/** Call before erasing points: steps rolled up meanwhile are late, then gone. No points follow: marks need not age. */
export const markErased = (store: Pick<Store, 'command'>, erasures: readonly HistoryErasure[]): Promise<void> => {
  const { condition, parameters } = rowsOf(erasures)
  return store.command(
    `INSERT INTO ${LATE} SELECT organizationId, trackerId, ${STEP_OF_POINT} AS at, 0 FROM ${POINTS}
    WHERE ${condition} GROUP BY organizationId, trackerId, at`,
    parameters,
  )
}

/** Call it when the points are erased: their steps are removed, those of remaining points are late. */
export const eraseSteps = async (store: Store, erasures: readonly HistoryErasure[]): Promise<void> => {
  const { condition, parameters } = rowsOf(erasures)
  for (const table of ROLLED_TABLES)
    await store.command(`DELETE FROM ${shardsOf(table, store)} WHERE ${condition}`, parameters)
}
