import type { EventLog } from '../../engines/event-log.ts'
import type { TableStore } from '../../engines/table-store.ts'
import {
  ATTEMPTS_MADE,
  RUNS_SKIPPED,
  runFactOf,
  runsStream,
  type AttemptsMade,
  type RunsSkipped,
} from '../../features/automations/events.ts'
import type { Clock } from '../../kernel/clock.ts'
import type { Fact } from '../../kernel/event.ts'
import { OwedTable } from './owed-table.ts'
import { RUNS_PER_EVENT_MAX } from './owe-runs.ts'
import { PendingRuns } from './pending-runs.ts'
import { RunsStream } from './runs-stream.ts'
import type { SteadyTime } from './retry-schedule.ts'
import type { OwnedPartition } from './sender.ts'

export interface TakeOptions {
  log: EventLog
  tables: TableStore
  clock: Clock
  time: SteadyTime
  onFailure: (error: unknown) => void
}

/** Changed rows after which a store is due at once. */
export const CHANGES_MAX = 5_000
const PAGE_EVENTS = 200

/**
 * Takes a partition over: fences the owner before off, then reads what is owed from the table and what the stream tells
 * after the table's checkpoint (all of it, where the table was lost).
 */
export const takePartition = async (options: TakeOptions, partition: number): Promise<OwnedPartition> => {
  const { log, tables, clock, time, onFailure } = options
  const pending = new PendingRuns(partition, new OwedTable(tables, partition), time)
  const stream = await RunsStream.take({
    log,
    clock,
    partition,
    onFailure,
    onAppended: (fact, revision) => pending.apply(fact, revision),
  })
  const checkpoint = await pending.table.take()
  if (checkpoint !== undefined) pending.standAt(checkpoint)
  else pending.standAt({ automations: await log.headPosition() })
  await replayTail(log, pending, stream.head)
  // No run is known and some may have been: beyond what so many events can have counted.
  if (pending.place.sequence === 1 && stream.head > 0)
    pending.standAt({ sequence: RUNS_PER_EVENT_MAX * (stream.head + 1) + 1 })
  await pending.store()
  await pending.recall()
  return { partition, pending, stream }
}

const replayTail = async (log: EventLog, pending: PendingRuns, head: number): Promise<void> => {
  let from = pending.place.runs + 1
  while (from <= head) {
    const events = await log.read(runsStream(pending.partition), from, PAGE_EVENTS)
    if (events.length === 0) return
    for (const event of events) {
      const fact = runFactOf(event)
      for (const [automationId, runIds] of concerned(fact)) await pending.fetch(runIds, automationId)
      pending.apply(fact, event.revision)
      if (pending.table.changesWaiting > CHANGES_MAX) await pending.store()
    }
    from = events[events.length - 1].revision + 1
  }
}

/** The runs that an event speaks of, by automation. */
const concerned = ({ type, data }: Fact): Map<string, string[]> => {
  const runs = new Map<string, string[]>()
  if (type === RUNS_SKIPPED) {
    const { automationId, runs: skipped } = data as RunsSkipped
    runs.set(
      automationId,
      skipped.map(({ runId }) => runId),
    )
  }
  if (type !== ATTEMPTS_MADE) return runs
  for (const { automationId, runId } of (data as AttemptsMade).attempts)
    runs.set(automationId, [...(runs.get(automationId) ?? []), runId])
  return runs
}
