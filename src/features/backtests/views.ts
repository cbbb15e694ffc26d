import type { UserCaller } from '../../kernel/caller.ts'
import type { Fact } from '../../kernel/event.ts'
import type { Row, TableDeclaration } from '../../kernel/table.ts'
import { formatTime } from '../../kit/http/request-context.ts'
import type { GroupRules } from '../geofences/events.ts'
import {
  BACKTEST_DELETED,
  BACKTEST_FAILED,
  BACKTEST_FINISHED,
  BACKTEST_PROGRESSED,
  BACKTEST_REQUESTED,
  BACKTEST_STARTED,
  unpackIds,
  type BacktestDeleted,
  type BacktestFailed,
  type BacktestFinished,
  type BacktestProgressed,
  type BacktestRequested,
  type BacktestResult,
  type BacktestStarted,
} from './events.ts'

export type BacktestStatus = 'queued' | 'processing' | 'completed' | 'failed' | 'cancelled'

export interface BacktestRow extends Row {
  _id: string
  organizationId: string
  userId: string
  geofenceId: string
  geofenceGroupId: string
  geofenceVersion: number
  status: BacktestStatus
  /** How many attempts began. */
  attempt: number
  /** Points that it reads: an estimate until it is completed. */
  total: number
  processed: number
  /** ms since the epoch, inclusive. */
  from: number
  to: number
  /** How many trackers were named; absent: all that the user sees. */
  trackers?: number
  rules: GroupRules
  result?: BacktestResult
  error?: { code: string; message: string }
  /** ms since the epoch. */
  createdAt: number
  updatedAt: number
  /** How many events its stream has. */
  version: number
}

export const BACKTESTS: TableDeclaration = {
  name: 'backtests',
  version: 1,
  equality: ['geofenceId', 'status', 'userId'],
  range: ['createdAt'],
}

export const hasEnded = ({ status }: BacktestRow): boolean => status !== 'queued' && status !== 'processing'

/** The row after one more event of its stream; undefined once it is deleted. */
export const evolveBacktest = (
  id: string,
  row: BacktestRow | undefined,
  { type, data }: Fact,
): BacktestRow | undefined => {
  if (type === BACKTEST_REQUESTED) return requestedRow(id, data as BacktestRequested)
  if (row === undefined || type === BACKTEST_DELETED) return undefined
  const next = { ...row, version: row.version + 1, updatedAt: (data as { at: number }).at }
  switch (type) {
    case BACKTEST_STARTED:
      return { ...next, status: 'processing', attempt: (data as BacktestStarted).attempt, processed: 0 }
    case BACKTEST_PROGRESSED:
      return { ...next, processed: (data as BacktestProgressed).processed }
    case BACKTEST_FINISHED: {
      const { processed, result } = data as BacktestFinished
      return { ...next, status: 'completed', total: processed, processed, result }
    }
    case BACKTEST_FAILED: {
      const { code, message } = data as BacktestFailed
      return { ...next, status: 'failed', error: { code, message } }
    }
    default:
      return next
  }
}

const requestedRow = (_id: string, { trackerIds, hubIds: _hubIds, at, ...asked }: BacktestRequested): BacktestRow => ({
  _id,
  ...asked,
  ...(trackerIds !== undefined && { trackers: unpackIds(trackerIds).length }),
  status: 'queued',
  attempt: 0,
  processed: 0,
  createdAt: at,
  updatedAt: at,
  version: 1,
})

/** What its deletion says of one that had not ended: the row as those who watch it see it last. */
export const cancelledRow = (deleted: BacktestDeleted): BacktestRow | undefined =>
  deleted.cancelled && ({ ...deleted.cancelled, status: 'cancelled', updatedAt: deleted.at } as BacktestRow)

/** A back-test as its GET and the live channel show it. */
export const backtestShown = (row: BacktestRow): { [member: string]: unknown } => {
  const {
    _id,
    organizationId,
    geofenceId,
    geofenceGroupId,
    userId,
    status,
    total,
    processed,
    from,
    to,
    trackers,
    rules,
    result,
    error,
  } = row
  return {
    _id,
    organizationId,
    geofenceId,
    geofenceGroupId,
    userId,
    status,
    total,
    processed,
    ...(result !== undefined && { transitions: result.transitions }),
    ...(error !== undefined && { error }),
    from: formatTime(from),
    to: formatTime(to),
    ...(trackers !== undefined && { trackers }),
    ...rules,
    createdAt: formatTime(row.createdAt),
    updatedAt: formatTime(row.updatedAt),
    version: row.version,
  }
}

/** Whoever asked for it may read it, and whoever sees every hub: it counts points of trackers that others may not see. */
export const seesBacktest = (caller: Pick<UserCaller, 'hubIds' | 'userId'>, userId: string): boolean =>
  caller.hubIds === 'all' || caller.userId === userId
