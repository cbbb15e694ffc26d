import type { HistoryParameters } from '../history-store.ts'
import { POINTS } from './history-tables.ts'
import { shardsOf, timeOf } from './layout.ts'
import { stepsOf, WAS_NOT_AHEAD } from './legs.ts'
import {
  type LateRange,
  ROLLED_TABLES,
  type Rows,
  STEP_MS,
  STEPS,
  type StepState,
  type Store,
  within,
} from './point-steps.ts'
import { rollTraces } from './traces.ts'

/* Rolling points up into steps and cells, some at a time. */

const ROLLED = `organizationId, trackerId, fromUnixTimestamp64Milli(toInt64(step * ${STEP_MS}), 'UTC') AS at, firstAt, lastAt,
  firstLat, firstLng, lastLat, lastLng, firstHasSpeed, meters, drivenMeters, drivingMs, stoppedMs, maxSpeed`
const ROLL_SETTINGS = 'SETTINGS do_not_merge_across_partitions_select_final = 1, prefer_column_name_to_alias = 1'

/** Points that one statement rolls up: it holds all of them in memory, in their order. */
export const ROLLED_AT_ONCE = 500_000

/** Number of points of each step between two times, repeated ones included, in order. */
export const countSteps = (store: Rows, from: number, to: number): Promise<{ at: number; points: number }[]> =>
  store.rows(
    `SELECT intDiv(toUnixTimestamp64Milli(recordedAt), ${STEP_MS}) * ${STEP_MS} AS at, count() AS points FROM ${POINTS}
    WHERE recordedAt >= ${timeOf('from')} AND recordedAt < ${timeOf('to')} GROUP BY at ORDER BY at`,
    { from, to },
  )

/** Points by their SQL condition, with its values. */
interface Chosen {
  condition: string
  parameters: HistoryParameters
}

/** Rolls up the existing points, some trackers at a time; cells of repeated points exist already. */
const roll = async (
  store: Store,
  { condition, parameters }: Chosen,
  { number, gapMs }: Omit<StepState, 'through'>,
  pointsMax: number,
): Promise<void> => {
  const question = `SELECT count() AS points FROM ${POINTS} WHERE ${condition}`
  const [{ points }] = await store.rows<{ points: number }>(question, parameters)
  const parts = Math.max(1, Math.ceil(points / pointsMax))
  const all = { ...parameters, number, gapMs, stepMs: STEP_MS }
  for (let part = 0; part < parts; part++) {
    const own = parts === 1 ? condition : `${condition} AND cityHash64(trackerId) % ${parts} = ${part}`
    await store.command(rollSteps(`${own} AND ${WAS_NOT_AHEAD}`), all)
    await store.command(rollTraces(own, STEP_MS), all)
  }
}

const rollSteps = (conditions: string): string =>
  `INSERT INTO ${STEPS} SELECT ${ROLLED}, {number:UInt64} AS version FROM (${stepsOf(conditions, { of: 'organizationId, trackerId' })}) ${ROLL_SETTINGS}`

/** Rolls up the steps between two times, of every tracker. */
export const rollUp = (
  store: Store,
  { from, to }: { from: number; to: number },
  rules: Omit<StepState, 'through'>,
  pointsMax = ROLLED_AT_ONCE,
): Promise<void> => {
  const condition = `recordedAt >= ${timeOf('from')} AND recordedAt < ${timeOf('to')}`
  return roll(store, { condition, parameters: { from, to } }, rules, pointsMax)
}

/** Rolls up the steps in these ranges again; `number` is higher than every one before. */
export const rollUpLate = async (
  store: Store,
  ranges: readonly LateRange[],
  rules: Omit<StepState, 'through'>,
  pointsMax = ROLLED_AT_ONCE,
): Promise<void> => {
  const { condition, parameters } = within('recordedAt', ranges)
  await roll(store, { condition: `(${condition})`, parameters }, rules, pointsMax)
  // Steps without points.
  const before = within('at', ranges)
  for (const table of ROLLED_TABLES)
    await store.command(
      `DELETE FROM ${shardsOf(table, store)} WHERE version < {number:UInt64} AND (${before.condition})`,
      {
        ...before.parameters,
        number: rules.number,
      },
    )
}
