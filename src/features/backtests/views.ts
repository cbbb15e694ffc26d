import type { TableDeclaration } from '../../kernel/table.ts'
import { formatTime } from '../../kit/http/request-context.ts'
import { defineJob, type JobBounds, type JobRow, type JobView } from '../../kit/jobs/job.ts'
import { seesJob } from '../../kit/jobs/who-sees.ts'
import type { GroupRules } from '../geofences/events.ts'
import { type BacktestRequested, type BacktestResult, unpackIds } from './events.ts'

/** `total` counts points; it is an estimate until the job is completed. */
export interface BacktestRow extends JobRow<BacktestResult> {
  userId: string
  geofenceId: string
  geofenceGroupId: string
  geofenceVersion: number
  /** ms since the epoch, inclusive. */
  from: number
  to: number
  /** Number of named trackers; if absent, all that the user sees. */
  trackers?: number
  rules: GroupRules
}

/** A back-test that runs as a job; streams `backtest-<id>`. */
export const BACKTEST = defineJob<BacktestRequested, BacktestRow>({
  kind: 'backtest',
  row: ({ trackerIds, hubIds: _hubIds, at: _at, ...asked }) => ({
    ...asked,
    ...(trackerIds !== undefined && { trackers: unpackIds(trackerIds).length }),
  }),
})

export const BACKTESTS: TableDeclaration = {
  name: 'backtests',
  version: 2,
  equality: ['_id', 'geofenceId', 'status', 'userId'],
  range: ['createdAt'],
}

export const BACKTEST_BOUNDS: JobBounds = { table: BACKTESTS, plural: 'back-tests', organizationMax: 10 }

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

export const BACKTEST_VIEW: JobView<BacktestRow> = {
  kind: BACKTEST,
  shown: backtestShown,
  sees: seesJob,
  isOfGeofences: true,
}
