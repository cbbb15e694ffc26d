import type { EventLog } from '../../engines/event-log.ts'
import type { HistoryStore } from '../../engines/history-store.ts'
import { backtestDecider, type BacktestCommand, type BacktestState } from '../../features/backtests/backtest.ts'
import { backtestStream, unpackIds, type BacktestRequested } from '../../features/backtests/events.ts'
import { backtestPoints } from '../../features/locations/history/streams.ts'
import type { UserCaller } from '../../kernel/caller.ts'
import type { Clock } from '../../kernel/clock.ts'
import { decodeJson } from '../../kernel/event.ts'
import { handleCommand } from '../../kit/commands/handle-command.ts'
import { idFrom } from '../../kit/commands/ids.ts'
import { backtest } from './backtest-geofence.ts'
import { accuracyMaxCmOf } from '../matcher/fences.ts'
import { ResultWriter, type ResultBounds } from './result-writer.ts'
import { shapeAt } from './shape-at.ts'

export interface RunServices {
  log: EventLog
  history: HistoryStore
  clock: Clock
  visibleTrackers(caller: Pick<UserCaller, 'organizationId' | 'hubIds'>): Promise<'all' | readonly string[]>
  /** Smaller ones in tests. */
  bounds?: ResultBounds
}

/** Progress is logged after so much of the points at the earliest, and so long after it was logged last. */
const PROGRESS_SHARE = 0.01
const PROGRESS_MS = 1_000

/** One attempt of a back-test: reads the history in a stream and logs progress and end. The state says whether it is still wanted. */
export const runBacktest = async (
  services: RunServices,
  backtestId: string,
  attempt: number,
  signal: AbortSignal,
): Promise<void> => {
  const { log, history, clock, visibleTrackers, bounds } = services
  const tell = teller(services, backtestId, attempt)
  const { row } = await tell({ kind: 'start', attempt, at: clock.now() })
  const asked = await requestOf(log, backtestId)
  if (row?.attempt !== attempt || asked === undefined) return
  const { organizationId, geofenceId, geofenceVersion, hubIds, from, to, trackerIds } = asked
  const shape = await shapeAt(log, geofenceId, geofenceVersion)
  const scope = { organizationId, trackerIds: await visibleTrackers({ organizationId, hubIds }) }
  const named = trackerIds === undefined ? undefined : unpackIds(trackerIds)
  const points = backtestPoints(
    history,
    scope,
    { trackerIds: named, from, to, accuracyMaxCm: accuracyMaxCmOf(asked.rules.maxAccuracy) },
    signal,
  )
  const writer = await ResultWriter.open(log, { backtestId, organizationId, attempt }, bounds)
  const progress = { processed: 0, logged: 0, toldAtMs: clock.monotonic() }
  for await (const { transitions, processed } of backtest({ ...asked, shape }, points)) {
    signal.throwIfAborted()
    await writer.add(transitions)
    progress.processed = processed
    const elapsedMs = clock.monotonic()
    if (processed - progress.logged < asked.total * PROGRESS_SHARE || elapsedMs - progress.toldAtMs < PROGRESS_MS)
      continue
    // The total is an estimate, and leaves out each tracker's last point before.
    const at = clock.now()
    const told = await tell({ kind: 'progress', attempt, processed: Math.min(processed, asked.total), at })
    if (told.row?.attempt !== attempt) return
    Object.assign(progress, { logged: processed, toldAtMs: elapsedMs })
  }
  const result = await writer.end()
  signal.throwIfAborted()
  await tell({ kind: 'finish', attempt, processed: progress.processed, result, at: clock.now() })
}

/** Logs what happens to a back-test; event ids follow from the attempt. */
export const teller = ({ log }: Pick<RunServices, 'log'>, backtestId: string, attempt: number) => {
  let told = 0
  const ids = { next: () => idFrom('backtest', backtestId, attempt, told++) }
  return async (command: BacktestCommand): Promise<BacktestState> => {
    const metadata = { actor: 'reactor:backtests', $correlationId: backtestId }
    const { state } = await handleCommand(log, backtestStream(backtestId), backtestDecider(backtestId), command, {
      ids,
      metadata,
    })
    return state
  }
}

const requestOf = async (log: EventLog, backtestId: string): Promise<BacktestRequested | undefined> => {
  const [first] = await log.read(backtestStream(backtestId), 0, 1)
  return first?.revision === 0 ? decodeJson<BacktestRequested>(first.data) : undefined
}
