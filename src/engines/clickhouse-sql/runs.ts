import { encodeNativeBlock, type NativeColumn } from './native-block.ts'
import { RUNS } from './history-tables.ts'
import type { Statement } from './points.ts'

/** What one event of the log says of a run; of a run's rows those members that are set count, of `state` the last. */
export interface RunChange {
  organizationId: string
  _id: string
  /** When the run was owed, ms since the epoch: the same in all rows of a run. */
  createdAt: number
  /** Where the change stands in the log. */
  at: { epoch: number; revision: number; ordinal: number }
  status: string
  reason?: string
  /** When the next attempt is due, ms since the epoch. */
  dueAt?: number
  /** JSON texts. */
  attempts?: readonly string[]
  /** What never changes, told when the run is owed; `trigger` is a JSON text. */
  owed?: { automationId: string; trackerId: string; partition: number; sequence: number; trigger: string }
}

/** Changes of runs as a block for their table. */
export const runsBlock = (changes: readonly RunChange[]): Uint8Array => {
  const texts = (name: string, value: (change: RunChange) => string): NativeColumn => ({
    name,
    type: 'String',
    values: changes.map(value),
  })
  const columns: NativeColumn[] = [
    texts('organizationId', ({ organizationId }) => organizationId),
    {
      name: 'createdAt',
      type: "DateTime64(3, 'UTC')",
      values: BigInt64Array.from(changes, ({ createdAt }) => BigInt(createdAt)),
    },
    texts('_id', ({ _id }) => _id),
    texts('automationId', ({ owed }) => owed?.automationId ?? ''),
    texts('trackerId', ({ owed }) => owed?.trackerId ?? ''),
    { name: 'partition', type: 'UInt16', values: Uint16Array.from(changes, ({ owed }) => owed?.partition ?? 0) },
    {
      name: 'sequence',
      type: 'UInt64',
      values: BigUint64Array.from(changes, ({ owed }) => BigInt(owed?.sequence ?? 0)),
    },
    texts('trigger', ({ owed }) => owed?.trigger ?? ''),
    texts('state', stateOf),
    { name: 'attempts', type: 'Array(String)', values: { lists: changes.map(({ attempts = [] }) => attempts) } },
  ]
  return encodeNativeBlock(columns, changes.length)
}

/** When these runs were owed, of those that the history has: `_id` and `createdAt` in ms. */
export const selectRunTimes = (organizationIds: readonly string[], runIds: readonly string[]): Statement => ({
  sql: `SELECT _id, toUnixTimestamp64Milli(min(runs.createdAt)) AS createdAt FROM ${RUNS} AS runs
    WHERE organizationId IN {organizations:Array(String)} AND _id IN {ids:Array(String)} GROUP BY _id`,
  parameters: { organizations: organizationIds, ids: runIds },
})

/** The last one in text order is the last one in the log. */
const stateOf = ({ at: { epoch, revision, ordinal }, status, reason = '', dueAt }: RunChange): string =>
  [hex(epoch, 4) + hex(revision, 12) + hex(ordinal, 8), status, reason, dueAt ?? ''].join('|')

const hex = (value: number, digits: number): string => value.toString(16).padStart(digits, '0')

/** What `state` says, for the answers of `HistoryRows`. */
export const readState = (state: string): { status: string; reason?: string; dueAt?: number } => {
  const [, status, reason, dueAt] = state.split('|')
  return { status, ...(reason !== '' && { reason }), ...(dueAt !== '' && { dueAt: Number(dueAt) }) }
}

/** `status` of a row, as SQL. */
export const STATUS_SQL = "splitByChar('|', state)[2]"
