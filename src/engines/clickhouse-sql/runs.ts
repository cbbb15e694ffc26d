import { encodeNativeBlock, type NativeColumn } from './native-block.ts'
import { RUNS } from './history-tables.ts'
import type { Statement } from './points.ts'

/** Change of a run by one event of the log; of a run's rows the set members count, of `state` the last. */
export interface RunChange {
  organizationId: string
  _id: string
  /** Time at which the run was owed, ms since the epoch: the same in all rows of a run. */
  createdAt: number
  /** Place of the change in the log. */
  at: { epoch: number; revision: number; ordinal: number }
  status: string
  reason?: string
  /** Due time of the next attempt, ms since the epoch. */
  dueAt?: number
  /** The attempt, as a JSON text. */
  attempt?: string
  /** Constant members, set when the run is owed; `trigger` is a JSON text. */
  owed?: { automationId: string; subjectId: string; partition: number; sequence: number; trigger: string }
}

/** Length of a position in the log as text: epoch, revision and ordinal in hexadecimal. */
const PLACE_CHARACTERS = 24

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
    texts('subjectId', ({ owed }) => owed?.subjectId ?? ''),
    { name: 'partition', type: 'UInt16', values: Uint16Array.from(changes, ({ owed }) => owed?.partition ?? 0) },
    {
      name: 'sequence',
      type: 'UInt64',
      values: BigUint64Array.from(changes, ({ owed }) => BigInt(owed?.sequence ?? 0)),
    },
    texts('trigger', ({ owed }) => owed?.trigger ?? ''),
    texts('state', stateOf),
    {
      name: 'attempts',
      type: 'Array(String)',
      values: { lists: changes.map(({ at, attempt }) => (attempt === undefined ? [] : [placeOf(at) + attempt])) },
    },
  ]
  return encodeNativeBlock(columns, changes.length)
}

/** `_id` of those of these runs of which the history has more than their end. */
export const selectRuns = (organizationIds: readonly string[], runIds: readonly string[]): Statement => ({
  sql: `SELECT _id FROM ${RUNS}
    WHERE organizationId IN {organizations:Array(String)} AND _id IN {ids:Array(String)} GROUP BY _id
    HAVING max(automationId) != ''`,
  parameters: { organizations: organizationIds, ids: runIds },
})

/** The last one in text order is the last one in the log. */
const stateOf = ({ at, status, reason = '', dueAt }: RunChange): string =>
  [placeOf(at), status, reason, dueAt ?? ''].join('|')

/** Text order is the order of the log. */
const placeOf = ({ epoch, revision, ordinal }: RunChange['at']): string =>
  hex(epoch, 4) + hex(revision, 12) + hex(ordinal, PLACE_CHARACTERS - 16)

const hex = (value: number, digits: number): string => value.toString(16).padStart(digits, '0')

/** The parts of `state`, for the answers of `HistoryRows`. */
export const readState = (state: string): { status: string; reason?: string; dueAt?: number } => {
  const [, status, reason, dueAt] = state.split('|')
  return { status, ...(reason !== '' && { reason }), ...(dueAt !== '' && { dueAt: Number(dueAt) }) }
}

/** The JSON texts of the attempts, in the order of the log. */
export const readAttempts = (attempts: readonly string[]): string[] =>
  [...attempts].sort().map((text) => text.slice(PLACE_CHARACTERS))

/** `status` of a row, as SQL. */
export const STATUS_SQL = "splitByChar('|', state)[2]"
