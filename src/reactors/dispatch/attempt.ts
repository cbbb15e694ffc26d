import type { HttpOutcome } from '../../engines/http-caller.ts'
import type { AttemptMade } from '../../features/automations/events.ts'
import { retryAfterMs, retryDelayMs } from './retry-schedule.ts'
import { isGivenUp, type ReceiverHealth } from './receiver-health.ts'
import type { Run } from './run.ts'

const GONE = 410

export const isSuccess = (outcome: HttpOutcome): boolean =>
  outcome.kind === 'answered' && outcome.statusCode >= 200 && outcome.statusCode < 300

/**
 * What the log keeps of an attempt, and where its run stands after it.
 * @param at when the attempt began, `endedAt` when it was over, ms since the epoch
 */
export const attemptOf = (
  run: Run,
  outcome: HttpOutcome,
  at: number,
  endedAt: number,
  scheduleMs: readonly number[],
  seal: (answer: string) => string,
): AttemptMade => {
  const seen =
    outcome.kind === 'failed'
      ? { error: outcome.error }
      : { statusCode: outcome.statusCode, ...(outcome.answer !== '' && { answer: seal(outcome.answer) }) }
  const { runId, automationId, owedAt, trigger } = run
  const { organizationId } = trigger
  const made = { runId, automationId, organizationId, owedAt, at, durationMs: endedAt - at, ...seen }
  if (isSuccess(outcome)) return { ...made, failures: run.attempts, status: 'succeeded' }
  const failures = run.attempts + 1
  const delayMs =
    outcome.kind === 'answered' && outcome.statusCode === GONE ? undefined : retryDelayMs(scheduleMs, failures, runId)
  if (delayMs === undefined) return { ...made, failures, status: 'dead' }
  const askedMs = outcome.kind === 'answered' ? (retryAfterMs(outcome.retryAfter, endedAt) ?? 0) : 0
  const waitMs = Math.max(delayMs, askedMs)
  return { ...made, failures, status: 'pending', dueAt: endedAt + waitMs, delayMs: waitMs }
}

/** Why an automation ends with this outcome, if it does. */
export const reasonToEnd = (
  health: ReceiverHealth,
  outcome: HttpOutcome,
  now: number,
): 'gone' | 'failing' | undefined => {
  if (outcome.kind === 'answered' && outcome.statusCode === GONE) return 'gone'
  return isGivenUp(health, now) ? 'failing' : undefined
}
