import type { EventLog } from '../../engines/event-log.ts'
import type { TableStore } from '../../engines/table-store.ts'
import { automation as automationDecider } from '../../features/automations/automation.ts'
import { automationStream, type AttemptMade, type RunTrigger } from '../../features/automations/events.ts'
import { openDetails, sealAnswer } from '../../features/automations/sealed.ts'
import { AUTOMATIONS, type AutomationRow } from '../../features/automations/views.ts'
import type { Subject } from '../../features/automations/events.ts'
import { RECORD } from '../../features/data/events.ts'
import { ROUTING_RESULT } from '../../features/routing/views.ts'
import { TASK } from '../../features/tasks/views.ts'
import type { Details } from '../../features/automations/action-type.ts'
import type { UserCaller } from '../../kernel/caller.ts'
import type { Clock } from '../../kernel/clock.ts'
import { Failure } from '../../kernel/errors.ts'
import { loadState } from '../../kit/commands/load-state.ts'
import type { Settle } from '../../kit/consumers/settle.ts'
import type { Keyring } from '../../kit/keys/keyring.ts'
import type { Action, Actions, Outcome } from './actions/action.ts'
import type { Directory } from './directory.ts'
import { seeEvent } from './event-data.ts'
import type { Run } from './owed-rows.ts'
import { RETRY_AFTER_MAX_MS, retryDelayMs } from './retry-schedule.ts'

export interface AttemptOptions {
  log: EventLog
  tables: TableStore
  clock: Clock
  keyring: Keyring
  directory: Directory
  actions: Actions
  /** Delay before each retry, ms. */
  scheduleMs: readonly number[]
  /** Waits for the lists; without it they are taken to be complete. */
  settle?: Settle
}

export interface Attempted {
  outcome: Seen
  attempt: AttemptMade
  /** It called an outside server. */
  isOutside: boolean
}

/** An outcome that the log of runs keeps. */
type Seen = Exclude<Outcome, { kind: 'hidden' }>

/**
 * The present automation. Where the table lacks it, or has an older version than the known one, its stream decides: a
 * table that is being built must not end runs.
 */
export const findAutomation = async (
  { log, tables }: Pick<AttemptOptions, 'log' | 'tables'>,
  organizationId: string,
  automationId: string,
  versionMin: number,
): Promise<AutomationRow | undefined> => {
  const row = await tables.get<AutomationRow>(AUTOMATIONS.name, organizationId, automationId)
  if (row !== undefined && row.version >= versionMin) return row
  return (await loadState(log, automationStream(automationId), automationDecider)).state.row
}

/**
 * One attempt: performs the automation's action, with the present state of the event's data, and answers the new state
 * of its run. `hidden` when the automation's last editor now may not see the event, or not do this.
 * @param isFirst no attempt of the run can have begun before
 */
export const attemptRun = async (
  options: AttemptOptions,
  run: Run,
  automation: AutomationRow,
  isFirst: boolean,
): Promise<Attempted | 'hidden'> => {
  const { clock, keyring, directory, actions } = options
  const action = actions[automation.automationType]
  if (action === undefined) throw new Error(`there is no action ${automation.automationType}`)
  const details = detailsOf(keyring, automation)
  // Before rights are looked at: the rights at the time of the action count.
  if (action.readsLists(details, run.trigger)) await assertListed(options, run.trigger)
  const [editor, seen] = await Promise.all([
    directory.editor(run.trigger.organizationId, automation.editorId),
    seeEvent(directory, run.trigger, run.owedAt),
  ])
  if (editor === undefined || !seen.isFor(editor) || !mayDo(editor, action)) return 'hidden'
  const data = await seen.data(editor)
  const at = clock.now()
  const begunMs = clock.monotonic()
  const isSeenBy = (user: UserCaller): boolean => seen.isFor(user)
  const outcome = await action.attempt({ automation, details, run, isFirst, editor, data, isSeenBy })
  if (outcome.kind === 'hidden') return 'hidden'
  const attempt = attemptOf(options, run, outcome, at, Math.round(clock.monotonic() - begunMs))
  return { outcome, attempt, isOutside: action.isOutside(details) }
}

/** Attempts that begin together share the row, and its opened secrets. */
const opened = new WeakMap<AutomationRow, Details>()

const detailsOf = (keyring: Keyring, automation: AutomationRow): Details => {
  const details = opened.get(automation) ?? openDetails(keyring, automation)
  opened.set(automation, details)
  return details
}

const LISTED_MS = 10_000

/** Types of the events that write a subject of the log. */
const WRITES: { readonly [type in Subject['type']]: readonly string[] } = {
  task: [TASK.created, TASK.changed],
  record: [RECORD.created],
  routingResult: [ROUTING_RESULT.created, ROUTING_RESULT.changed],
  tracker: [],
}

/**
 * An action that reads lists may be faster than they are: without the cause of the run, it would be refused for good.
 * @throws Failure engine_down while they are behind
 */
const assertListed = async (
  { settle }: Pick<AttemptOptions, 'settle'>,
  { subject, position }: RunTrigger,
): Promise<void> => {
  if (settle === undefined || position === undefined) return
  const types = WRITES[subject.type]
  if (!(await settle({ position, types }, LISTED_MS))) throw new Failure('engine_down')
}

const mayDo = ({ permissions }: UserCaller, { needs }: Action): boolean =>
  needs.every((permission) => permissions.has(permission))

/** Log entry of an attempt that began at `at` (ms since the epoch), and the state of its run after it. */
const attemptOf = (
  { keyring, scheduleMs }: AttemptOptions,
  run: Run,
  outcome: Seen,
  at: number,
  durationMs: number,
): AttemptMade => {
  const { runId, automationId, owedAt, trigger } = run
  const { statusCode, answer } = outcome
  const wrote = outcome.kind === 'done' ? outcome.wrote : undefined
  const error = outcome.kind === 'done' ? undefined : outcome.error
  return {
    runId,
    automationId,
    organizationId: trigger.organizationId,
    owedAt,
    at,
    durationMs,
    ...standingAfter(scheduleMs, run, outcome, at + durationMs),
    ...(statusCode !== undefined && { statusCode }),
    ...(answer !== undefined && { answer: sealAnswer(keyring, answer) }),
    ...(wrote !== undefined && { wrote: JSON.stringify(wrote) }),
    ...(error !== undefined && { error }),
  }
}

const standingAfter = (
  scheduleMs: readonly number[],
  { runId, attempts }: Run,
  outcome: Seen,
  endedAt: number,
): Pick<AttemptMade, 'failures' | 'status' | 'dueAt' | 'delayMs'> => {
  if (outcome.kind === 'done') return { failures: attempts, status: 'succeeded' }
  const failures = attempts + 1
  const scheduledMs = outcome.ends === undefined ? retryDelayMs(scheduleMs, failures, runId) : undefined
  if (scheduledMs === undefined) return { failures, status: 'dead' }
  const delayMs = Math.max(scheduledMs, Math.min(outcome.retryAfterMs ?? 0, RETRY_AFTER_MAX_MS))
  return { failures, status: 'pending', dueAt: endedAt + delayMs, delayMs }
}
