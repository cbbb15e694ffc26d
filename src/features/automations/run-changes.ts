import type { Fact, RecordedEvent } from '../../kernel/event.ts'
import {
  ATTEMPTS_MADE,
  AUTOMATION_DEACTIVATED,
  type AttemptsMade,
  RUN_REOPENED,
  RUNS_SKIPPED,
  type RunReopened,
  type RunsSkipped,
  runFactOf,
} from './events.ts'
import type { RunRow } from './views.ts'

/** Rows of runs, once they include events of their streams; undefined if expired. @throws Failure engine_down */
export type RunsAt = (
  organizationId: string,
  runIds: readonly string[],
  events: readonly Pick<RecordedEvent, 'stream' | 'revision'>[],
) => Promise<(RunRow | undefined)[]>

/** Effect of one event on a run, whose row may already be newer. */
interface RunChange {
  organizationId: string
  runId: string
  /** Number among the runs of the event, from 1. */
  ordinal: number
  at(row: RunRow): RunRow
}

export const changesOf = ({ type, data }: Fact, loggedAt: number): RunChange[] => {
  if (type === ATTEMPTS_MADE) {
    return (data as AttemptsMade).attempts.map(({ organizationId, runId, status, dueAt, at: attemptedAt }, i) => ({
      organizationId,
      runId,
      ordinal: i + 1,
      at: (row) => ({
        ...row,
        status,
        reason: undefined,
        dueAt,
        attempts: row.attempts.slice(0, row.attempts.findIndex(({ at }) => at === attemptedAt) + 1),
      }),
    }))
  }
  if (type === RUNS_SKIPPED) {
    const { organizationId, runs, reason } = data as RunsSkipped
    return runs.map(({ runId }, i) => ({
      organizationId,
      runId,
      ordinal: i + 1,
      at: (row) => ({
        ...row,
        status: 'skipped',
        reason,
        dueAt: undefined,
        attempts: row.attempts.filter(({ at }) => at <= loggedAt),
      }),
    }))
  }
  if (type !== RUN_REOPENED) return []
  const { trigger, runId, dueAt } = data as RunReopened
  const at = (row: RunRow): RunRow => ({
    ...row,
    status: 'pending',
    reason: undefined,
    dueAt,
    attempts: row.attempts.filter((attempt) => attempt.at < loggedAt),
  })
  return [{ organizationId: trigger.organizationId, runId, ordinal: 1, at }]
}

/** Most rows read ahead: those of a page that names more are read event by event. */
const AHEAD_MAX = 1_000

/** The rows of all runs that a page of events changes, by one question: one for each event takes milliseconds each. */
export const readAhead = async (
  runs: RunsAt,
  organizationId: string,
  events: readonly RecordedEvent[],
): Promise<RunsAt> => {
  const ids = new Set<string>()
  const newest = new Map<string, RecordedEvent>()
  for (const event of events) {
    if (event.type === AUTOMATION_DEACTIVATED) continue
    for (const change of changesOf(runFactOf(event), event.loggedAt)) {
      if (change.organizationId !== organizationId) continue
      ids.add(change.runId)
      newest.set(event.stream, event)
    }
  }
  if (ids.size > AHEAD_MAX) return runs
  const named = [...ids]
  const rows = await runs(organizationId, named, [...newest.values()])
  const byId = new Map(named.map((id, i) => [id, rows[i]]))
  return async (_organizationId, runIds) => runIds.map((id) => byId.get(id))
}
