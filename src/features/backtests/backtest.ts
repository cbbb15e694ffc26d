import type { UserCaller } from '../../kernel/caller.ts'
import type { Decider } from '../../kernel/decider.ts'
import { Failure } from '../../kernel/errors.ts'
import type { Fact } from '../../kernel/event.ts'
import type { GroupRules } from '../geofences/events.ts'
import {
  BACKTEST_DELETED,
  BACKTEST_FAILED,
  BACKTEST_FINISHED,
  BACKTEST_PROGRESSED,
  BACKTEST_REQUESTED,
  BACKTEST_STARTED,
  type BacktestDeleted,
  type BacktestFailed,
  type BacktestFinished,
  type BacktestProgressed,
  type BacktestRequested,
  type BacktestResult,
  type BacktestStarted,
} from './events.ts'
import { evolveBacktest, hasEnded, type BacktestRow } from './views.ts'

/** Which transitions a geofence would have made over history. */
export interface BacktestQuestion {
  caller: UserCaller
  geofenceId: string
  geofenceGroupId: string
  /** How many events the geofence's stream has. */
  geofenceVersion: number
  /** ms since the epoch, inclusive. */
  from: number
  to: number
  trackerIds?: readonly string[]
  /** Left out: those of the geofence's group. */
  rules: GroupRules
  signal: AbortSignal
}

/** The transitions, oldest first, as `GET /geofence-events` shows them; or how much there is to read where that is too much for one answer. */
export type BacktestAnswer = { transitions: object[] } | { total: number; rules: GroupRules }

/** @throws Failure not_found, overloaded, engine_down. */
export type RunBacktest = (question: BacktestQuestion) => Promise<BacktestAnswer>

export interface BacktestState {
  row: BacktestRow | undefined
  isDeleted: boolean
}

export type BacktestCommand =
  | { kind: 'request'; requested: BacktestRequested }
  | { kind: 'start'; attempt: number; at: number }
  | { kind: 'progress'; attempt: number; processed: number; at: number }
  | { kind: 'finish'; attempt: number; processed: number; result: BacktestResult; at: number }
  | { kind: 'fail'; code: string; message: string; at: number }
  | { kind: 'delete'; organizationId: string; at: number }

/**
 * The life of one back-test. What an attempt says that is no longer the one under way (cancelled, ended, begun anew
 * elsewhere) makes no fact; whoever runs it sees that by the state.
 */
export const backtestDecider = (backtestId: string): Decider<BacktestState, BacktestCommand> => ({
  initial: { row: undefined, isDeleted: false },
  decide: (command, state) => {
    if (command.kind === 'request') return request(command.requested, state)
    if (command.kind === 'delete') return remove(command, state.row)
    const { row } = state
    if (row === undefined || hasEnded(row)) return []
    const { organizationId } = row
    if (command.kind === 'start')
      return command.attempt === row.attempt + 1
        ? [fact<BacktestStarted>(BACKTEST_STARTED, { organizationId, attempt: command.attempt, at: command.at })]
        : []
    if (command.kind === 'fail')
      return [
        fact<BacktestFailed>(BACKTEST_FAILED, {
          organizationId,
          code: command.code,
          message: command.message,
          at: command.at,
        }),
      ]
    const { kind, ...said } = command
    if (said.attempt !== row.attempt) return []
    return kind === 'progress'
      ? [fact<BacktestProgressed>(BACKTEST_PROGRESSED, { organizationId, ...said })]
      : [
          fact<BacktestFinished>(BACKTEST_FINISHED, {
            organizationId,
            ...(said as Omit<BacktestFinished, 'organizationId'>),
          }),
        ]
  },
  evolve: ({ row, isDeleted }, happened) => ({
    row: evolveBacktest(backtestId, row, happened),
    isDeleted: isDeleted || happened.type === BACKTEST_DELETED,
  }),
})

const request = (requested: BacktestRequested, { row, isDeleted }: BacktestState): Fact[] => {
  if (isDeleted) throw new Failure('not_found')
  return row === undefined ? [fact<BacktestRequested>(BACKTEST_REQUESTED, requested)] : []
}

const remove = (
  { organizationId, at }: { organizationId: string; at: number },
  row: BacktestRow | undefined,
): Fact[] => {
  if (row === undefined || row.organizationId !== organizationId) throw new Failure('not_found')
  return [fact<BacktestDeleted>(BACKTEST_DELETED, { organizationId, ...(hasEnded(row) ? {} : { cancelled: row }), at })]
}

const fact = <Data>(type: string, data: Data): Fact => ({ type, data })
