import { type EventLog, eventsOf } from '../../engines/event-log.ts'
import type { TableStore } from '../../engines/table-store.ts'
import {
  ATTEMPTS_MADE,
  RUNS_SKIPPED,
  runFactOf,
  runsStream,
  type AttemptsMade,
  type RunsSkipped,
  type SkipReason,
} from '../../features/automations/events.ts'
import type { Clock } from '../../kernel/clock.ts'
import type { Fact } from '../../kernel/event.ts'
import { OwedRows, type Run } from './owed-rows.ts'
import { RUNS_PER_EVENT_MAX } from './owed-facts.ts'
import { RUNS_IN_MEMORY_MAX } from './backlog.ts'
import { PendingRuns } from './pending-runs.ts'
import type { SteadyTime } from './retry-schedule.ts'
import { RunsStream } from './runs-stream.ts'
import { SubjectRates } from './subject-rates.ts'

/** A partition that this process owes and pays for. */
export interface OwnedPartition {
  partition: number
  pending: PendingRuns
  stream: RunsStream
  rates: SubjectRates
  /** Runs from this sequence on were owed by this owner: nobody else can have attempted them. */
  ownSequence: number
  /** Position of the last transition looked at here; undefined before the first. */
  lookedAt: number | undefined
  /** Owed runs get their sequence in turn: one event at a time, whatever its source. */
  turn: Promise<unknown>
}

export interface TakeOptions {
  log: EventLog
  tables: TableStore
  clock: Clock
  time: SteadyTime
  onFailure: (error: unknown) => void
}

/** Changed rows after which a store is due at once. */
export const CHANGES_MAX = 5_000

/**
 * Takes a partition over: fences off the previous owner, then reads the owed runs from the table and the stream's
 * events after the table's checkpoint (all of them, where the table was lost).
 */
export const takePartition = async (options: TakeOptions, partition: number): Promise<OwnedPartition> => {
  const { log, tables, clock, time, onFailure } = options
  const pending = new PendingRuns(partition, new OwedRows(tables, partition), time)
  const onAppended = (fact: Fact, revision: number): void => pending.apply(fact, revision)
  const stream = await RunsStream.take({ log, clock, partition, onFailure, onAppended })
  const checkpoint = await pending.rows.take()
  if (checkpoint !== undefined) pending.standAt(checkpoint)
  else {
    const head = await log.headPosition()
    pending.standAt({ automations: head, log: head })
  }
  await replayTail(log, pending, stream.head)
  // No run is known and there may have been some: start beyond the number that the stream's events can have counted.
  if (pending.progress.sequence === 1 && stream.head > 0)
    pending.standAt({ sequence: RUNS_PER_EVENT_MAX * (stream.head + 1) + 1 })
  await pending.store()
  await pending.recall()
  const ownSequence = pending.progress.sequence
  return {
    partition,
    pending,
    stream,
    rates: new SubjectRates(),
    ownSequence,
    lookedAt: undefined,
    turn: Promise.resolve(),
  }
}

/** Whether no attempt of the run can have begun: one that did leaves a due time for the run, or ends it. */
export const isFirstAttempt = (
  { ownSequence }: Pick<OwnedPartition, 'ownSequence'>,
  { sequence, attempts, dueAt, alone }: Run,
): boolean => sequence >= ownSequence && attempts === 0 && dueAt === 0 && !alone

const replayTail = async (log: EventLog, pending: PendingRuns, head: number): Promise<void> => {
  for await (const event of eventsOf(log, runsStream(pending.partition), pending.progress.runs + 1, head)) {
    const fact = runFactOf(event)
    for (const [automationId, runIds] of concerned(fact)) await pending.fetch(runIds, automationId)
    pending.apply(fact, event.revision)
    if (pending.rows.changesWaiting > CHANGES_MAX) await pending.store()
  }
}

/** The runs named by an event, by automation. */
const concerned = ({ type, data }: Fact): Map<string, string[]> => {
  const named =
    type === RUNS_SKIPPED
      ? (data as RunsSkipped).runs.map(({ runId }) => ({ runId, automationId: (data as RunsSkipped).automationId }))
      : type === ATTEMPTS_MADE
        ? (data as AttemptsMade).attempts
        : []
  const runs = new Map<string, string[]>()
  for (const { automationId, runId } of named) runs.set(automationId, [...(runs.get(automationId) ?? []), runId])
  return runs
}

/** The editor of the automation may not see the event, or not do this. */
export const hiddenFact = ({ runId, automationId, owedAt, trigger }: Run): Fact =>
  skipFact(automationId, trigger.organizationId, 'hidden', [{ runId, owedAt }])

const skipFact = (
  automationId: string,
  organizationId: string,
  reason: SkipReason,
  runs: RunsSkipped['runs'],
): Fact<string, RunsSkipped> => ({ type: RUNS_SKIPPED, data: { automationId, organizationId, reason, runs } })

/** Ends every run of an automation not under way, also those in the table; answers the number. @throws StreamLost */
export const skipRuns = async ({ pending, stream }: OwnedPartition, automationId: string): Promise<number> => {
  let skipped = 0
  for (;;) {
    const backlog = pending.get(automationId)
    if (backlog === undefined) return skipped
    if (backlog.inOrderStored + backlog.aloneStored > 0 && !(await fetchPage(pending, automationId)))
      backlog.inOrderStored = backlog.aloneStored = 0
    const runs = backlog.order.idle().map(({ runId, owedAt }) => ({ runId, owedAt }))
    if (runs.length === 0) return skipped
    for (let from = 0; from < runs.length; from += RUNS_IN_MEMORY_MAX) {
      const some = runs.slice(from, from + RUNS_IN_MEMORY_MAX)
      await stream.append(skipFact(automationId, backlog.organizationId, 'deactivated', some))
    }
    skipped += runs.length
  }
}

/** Answers whether the table has any. */
const fetchPage = async (pending: PendingRuns, automationId: string): Promise<boolean> => {
  await pending.store()
  const inOrder = await pending.rows.inOrder(automationId, -1, RUNS_IN_MEMORY_MAX)
  const alone = await pending.rows.alone(automationId, RUNS_IN_MEMORY_MAX)
  const found = [...inOrder.runs, ...alone.runs].map(({ runId }) => runId)
  await pending.fetch(found, automationId)
  return found.length > 0
}
