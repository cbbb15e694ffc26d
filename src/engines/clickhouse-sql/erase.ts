import { shardsOf, timeOf } from './layout.ts'
import type { HistoryErasure, HistoryParameters, HistoryStore } from '../history-store.ts'
import { AUDIT, POINTS, RUNS, TRANSITIONS, TRIPS } from './history-tables.ts'
import { eraseSteps, markErased, STEPS } from './point-steps.ts'
import { TRACES } from './traces.ts'

type Store = Pick<HistoryStore, 'command' | 'rows' | 'cluster'>

/** Erasures of one statement. */
const ERASURES_MAX = 20
/** Runs of one statement. */
const IDS_MAX = 1_000
/** Most that a point's time may be ahead of the clock; such points were logged before their time. */
const AHEAD_MS_MAX = 24 * 3_600_000

/** Erases the rows of these: `HistoryStore.erase` of every engine. */
export const eraseRows = async (store: Store, erasures: readonly HistoryErasure[]): Promise<void> => {
  for (let from = 0; from < erasures.length; from += ERASURES_MAX) {
    const some = erasures.slice(from, from + ERASURES_MAX)
    // While the rows still name their trackers: attempts name only the run.
    for (const erasure of some) if (erasure.trackerId !== undefined) await eraseRunsOf(store, erasure)
    await markErased(store, some)
    await eraseFrom(store, POINTS, some, pointsOf)
    await eraseSteps(store, some)
    await eraseFrom(store, TRANSITIONS, some, rowsOf('at'))
    await eraseFrom(store, TRIPS, some, rowsOf('startedAt'))
    const whole = some.filter(({ trackerId }) => trackerId === undefined)
    await eraseFrom(store, RUNS, whole, rowsOf('createdAt'))
    await eraseFrom(store, AUDIT, whole, rowsOf('at'))
  }
  // Hidden rows are removed from their parts in the background; without this they stay on the disk until a merge.
  if (erasures.length > 0)
    for (const table of [POINTS, STEPS, TRACES, TRANSITIONS, TRIPS, RUNS, AUDIT])
      await store.command(`ALTER TABLE ${shardsOf(table, store)} APPLY DELETED MASK SETTINGS mutations_sync = 0`)
}

/** SQL for the rows of one erasure, whose parameters end with its number. */
type Condition = (erasure: HistoryErasure, no: number) => string

const eraseFrom = async (
  store: Store,
  table: string,
  erasures: readonly HistoryErasure[],
  conditionOf: Condition,
): Promise<void> => {
  if (erasures.length === 0) return
  const parameters: HistoryParameters = {}
  for (const [no, { organizationId, trackerId, through }] of erasures.entries())
    Object.assign(parameters, {
      [`organization${no}`]: organizationId,
      ...(trackerId !== undefined && { [`tracker${no}`]: trackerId }),
      ...(through !== undefined && { [`through${no}`]: through }),
    })
  await store.command(
    `DELETE FROM ${shardsOf(table, store)} WHERE ${erasures.map(conditionOf).join(' OR ')}`,
    parameters,
  )
}

const pointsOf: Condition = ({ trackerId, through }, no) => {
  const conditions = [`organizationId = toUUIDOrZero({organization${no}:String})`]
  if (trackerId !== undefined) conditions.push(`trackerId = toUUIDOrZero({tracker${no}:String})`)
  if (through !== undefined)
    conditions.push(
      `(recordedAt <= ${timeOf(`through${no}`)} OR version < 9223372036854775808 AND recordedAt <= ${timeOf(`through${no}`)} + toIntervalMillisecond(${AHEAD_MS_MAX}))`,
    )
  return `(${conditions.join(' AND ')})`
}

const rowsOf =
  (time: string): Condition =>
  ({ trackerId, through }, no) => {
    const conditions = [`organizationId = {organization${no}:String}`]
    if (trackerId !== undefined) conditions.push(`trackerId = {tracker${no}:String}`)
    if (through !== undefined) conditions.push(`${time} <= ${timeOf(`through${no}`)}`)
    return `(${conditions.join(' AND ')})`
  }

/** A run belongs to its event, which may have happened long before the run was owed. */
const eraseRunsOf = async (
  store: Store,
  { organizationId, trackerId, through = Number.MAX_SAFE_INTEGER }: HistoryErasure,
): Promise<void> => {
  for (;;) {
    const found = await store.rows<{ _id: string }>(
      `SELECT DISTINCT _id FROM ${RUNS} WHERE organizationId = {organization:String} AND subjectId = {tracker:String}
        AND JSONExtractInt(trigger, 'at') <= {through:Int64} LIMIT ${IDS_MAX}`,
      { organization: organizationId, tracker: trackerId as string, through },
    )
    if (found.length === 0) return
    await store.command(
      `DELETE FROM ${shardsOf(RUNS, store)} WHERE organizationId = {organization:String} AND _id IN {ids:Array(String)}`,
      { organization: organizationId, ids: found.map(({ _id }) => _id) },
    )
  }
}
