import type { EventLog } from '../../engines/event-log.ts'
import type { HistoryStore } from '../../engines/history-store.ts'
import { unpackIds, type BacktestRequested } from '../../features/backtests/events.ts'
import { BACKTEST, type BacktestRow } from '../../features/backtests/views.ts'
import { backtestPoints } from '../../features/locations/history/streams.ts'
import type { UserCaller } from '../../kernel/caller.ts'
import type { JobWork } from '../../kit/jobs/attempt.ts'
import { backtest } from './backtest-geofence.ts'
import { accuracyMaxCmOf } from '../matcher/fences.ts'
import { eraseResults, ResultWriter, type ResultBounds } from './result-writer.ts'
import { shapeAt } from './shape-at.ts'

export interface RunServices {
  log: EventLog
  history: HistoryStore
  visibleTrackers(caller: Pick<UserCaller, 'organizationId' | 'hubIds'>): Promise<'all' | readonly string[]>
  /** Smaller ones in tests. */
  bounds?: ResultBounds
}

/** The work of back-tests that are jobs: each attempt streams the history from its beginning. */
export const backtestWork = (services: RunServices): JobWork<BacktestRequested, BacktestRow> => ({
  kind: BACKTEST,
  run: async ({ id, asked, attempt, signal, progress }) => {
    const { log, history, visibleTrackers, bounds } = services
    const { organizationId, hubIds, from, to } = asked
    const shape = await shapeAt(log, asked.geofenceId, asked.geofenceVersion)
    const scope = { organizationId, trackerIds: await visibleTrackers({ organizationId, hubIds }) }
    const trackerIds = asked.trackerIds === undefined ? undefined : unpackIds(asked.trackerIds)
    const accuracyMaxCm = accuracyMaxCmOf(asked.rules.maxAccuracy)
    const points = backtestPoints(history, scope, { trackerIds, from, to, accuracyMaxCm }, signal)
    const writer = await ResultWriter.open(log, { backtestId: id, organizationId, attempt }, bounds)
    let read = 0
    for await (const { transitions, processed } of backtest({ ...asked, shape }, points)) {
      signal.throwIfAborted()
      await writer.add(transitions)
      read = processed
      await progress(processed)
    }
    signal.throwIfAborted()
    return { processed: read, result: await writer.end() }
  },
  release: (id, attempt) => eraseResults(services.log, id, attempt),
})
