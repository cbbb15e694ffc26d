import { RUNS } from '../src/engines/clickhouse-sql/history-tables.ts'
import { type RunChange, runsBlock, selectRunTimes } from '../src/engines/clickhouse-sql/runs.ts'
import type { HistoryStore } from '../src/engines/history-store.ts'
import {
  ATTEMPTS_MADE,
  type AttemptsMade,
  RUN_FACTS,
  RUN_REOPENED,
  runFactOf,
  RUNS_OWED,
  RUNS_SKIPPED,
  type RunReopened,
  type RunsOwed,
  type RunsSkipped,
  runsStream,
} from '../src/features/automations/events.ts'
import { owedRows } from '../src/features/automations/views.ts'
import type { Fact, RecordedEvent } from '../src/kernel/event.ts'
import { type EntryRows, HistoryConsumer, type HistoryServices, type Placed } from './history-consumer.ts'

export const RUNS_HISTORY = 'automation-runs'

/** One event of a stream of runs; `fact` is absent for what says nothing of a run. */
export interface RunsEntry {
  revision: number
  fact?: Fact
  /** What the fact says of the time when its run was owed is that of the fact itself. */
  isUndated?: boolean
}

export const decodeRuns = (event: RecordedEvent): RunsEntry => ({
  revision: event.revision,
  ...(RUN_FACTS.includes(event.type) && { fact: runFactOf(event) }),
  ...(event.type === 'runReopened.v1' && { isUndated: true }),
})

/** Ids of one question to the history. */
const IDS_MAX = 1_000

/** Puts runs of automations with their attempts into the history. */
export class RunsHistory extends HistoryConsumer<RunsEntry> {
  constructor(services: HistoryServices) {
    super({ ...services, ...runRows(services.history, services.epoch), name: RUNS_HISTORY })
  }
}

/** The rows of runs. */
export const runRows = (history: Pick<HistoryStore, 'rows'>, epoch: number): EntryRows<RunsEntry> => ({
  rowsOf: ({ fact }) => (fact === undefined ? 0 : 1),
  blocks: async (entries) => {
    const changes = await runChanges(history, entries, epoch)
    return changes.length === 0 ? [] : [{ table: RUNS, block: runsBlock(changes) }]
  },
})

type Told = Omit<RunChange, 'createdAt'> & { createdAt: number | undefined }

/**
 * What these events say of runs. Attempts from before they said when their run was owed are asked of the history, which
 * has the runs that were owed earlier; of a run that it no longer has there is nothing to say.
 */
const runChanges = async (
  history: Pick<HistoryStore, 'rows'>,
  entries: readonly Placed<RunsEntry>[],
  epoch: number,
): Promise<RunChange[]> => {
  const told = entries.flatMap(({ partition, entry }) => changesOf(partition, entry, epoch))
  const times = new Map(told.flatMap(({ _id, createdAt }) => (createdAt === undefined ? [] : [[_id, createdAt]])))
  const unknown = told.filter(({ _id, createdAt }) => createdAt === undefined && !times.has(_id))
  const organizationIds = [...new Set(unknown.map(({ organizationId }) => organizationId))]
  const ids = [...new Set(unknown.map(({ _id }) => _id))]
  for (let from = 0; from < ids.length; from += IDS_MAX) {
    const { sql, parameters } = selectRunTimes(organizationIds, ids.slice(from, from + IDS_MAX))
    for (const { _id, createdAt } of await history.rows<{ _id: string; createdAt: number }>(sql, parameters))
      times.set(_id, createdAt)
  }
  return told.flatMap((change) => {
    const createdAt = change.createdAt ?? times.get(change._id)
    return createdAt === undefined ? [] : [{ ...change, createdAt }]
  })
}

const changesOf = (partition: number, { revision, fact, isUndated }: RunsEntry, epoch: number): Told[] => {
  const at = (ordinal: number) => ({ epoch, revision, ordinal })
  switch (fact?.type) {
    case RUNS_OWED:
      return owedRows(fact.data as RunsOwed, runsStream(partition)).map((row, i) => ({
        organizationId: row.organizationId,
        _id: row._id,
        createdAt: row.createdAt,
        at: at(i),
        status: row.status,
        reason: row.reason,
        owed: { ...row, trigger: JSON.stringify(row.trigger) },
      }))
    case ATTEMPTS_MADE:
      return (fact.data as AttemptsMade).attempts.map(
        (
          { organizationId, runId, owedAt, status, dueAt, at: madeAt, statusCode, durationMs, error, answer, failures },
          i,
        ) => ({
          organizationId,
          _id: runId,
          createdAt: owedAt,
          at: at(i),
          status,
          dueAt,
          attempt: JSON.stringify({ at: madeAt, statusCode, durationMs, error, answer, failures }),
        }),
      )
    case RUNS_SKIPPED: {
      const { organizationId, reason, runs } = fact.data as RunsSkipped
      return runs.map(({ runId, owedAt }, i) => ({
        organizationId,
        _id: runId,
        createdAt: owedAt,
        at: at(i),
        status: 'skipped',
        reason,
      }))
    }
    case RUN_REOPENED: {
      const { trigger, runId, owedAt, dueAt } = fact.data as RunReopened
      const { organizationId } = trigger
      const createdAt = isUndated ? undefined : owedAt
      return [{ organizationId, _id: runId, createdAt, at: at(0), status: 'pending', dueAt }]
    }
    default:
      return []
  }
}
