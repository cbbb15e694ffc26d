import { RUNS } from '../src/engines/clickhouse-sql/history-tables.ts'
import { type RunChange, runsBlock, selectRuns } from '../src/engines/clickhouse-sql/runs.ts'
import type { HistoryStore } from '../src/engines/history-store.ts'
import {
  ATTEMPTS_MADE,
  type AttemptMade,
  type AttemptsMade,
  RUN_FACTS,
  RUN_REOPENED,
  runFactOf,
  RUNS_OWED,
  RUNS_SKIPPED,
  type RunReopened,
  type RunsOwed,
  type RunsSkipped,
  type RunTrigger,
  runsStream,
} from '../src/features/automations/events.ts'
import { owedRows, type RunRow } from '../src/features/automations/views.ts'
import type { Fact, RecordedEvent } from '../src/kernel/event.ts'
import type { Erased } from './erasures.ts'
import { EntryBuffer, HistoryConsumer, type HistoryServices } from './history-consumer.ts'

export const RUNS_HISTORY = 'automation-runs'

/** One event of a stream of runs; `fact` is absent for an event without a run. */
export interface RunsEntry {
  revision: number
  fact?: Fact
}

export const decodeRuns = (event: RecordedEvent): RunsEntry => ({
  revision: event.revision,
  ...(RUN_FACTS.includes(event.type) && { fact: runFactOf(event) }),
})

/** Ids of one question to the history. */
const IDS_MAX = 1_000

export class RunsHistory extends HistoryConsumer<RunsEntry> {
  constructor(services: HistoryServices) {
    const buffer = () => runBuffer(services.history, services.epoch, services.erasures.known)
    super({ ...services, name: RUNS_HISTORY, buffer, ageMsMax: 100 })
  }
}

export const runBuffer = (history: Pick<HistoryStore, 'rows'>, epoch: number, erased: Erased): EntryBuffer<RunsEntry> =>
  new EntryBuffer(
    ({ fact }) => (fact === undefined ? 0 : 1),
    async (entries) => {
      const told = entries.flatMap(({ partition, entry }) => changesOf(partition, entry, epoch))
      const changes = await runChanges(
        history,
        erased.isEmpty ? told : told.filter((one) => !isErased(erased, one)),
        erased,
      )
      return changes.length === 0 ? [] : [{ table: RUNS, block: runsBlock(changes) }]
    },
  )

/** Whether it names erased data by itself; attempts and ends only name the run. */
const isErased = (erased: Erased, { organizationId, about }: Told): boolean =>
  about === undefined ? erased.hasAllOf(organizationId) : erased.has(organizationId, about.subject.id, about.at)

type Told = RunChange & { about?: RunTrigger }

/**
 * Changes of runs by these events. An attempt or end in an organization with erasures counts only where the history has
 * its run: it does not name its subject itself.
 */
const runChanges = async (
  history: Pick<HistoryStore, 'rows'>,
  told: readonly Told[],
  erased: Erased,
): Promise<RunChange[]> => {
  const mustBeThere = ({ organizationId, about }: Told): boolean => about === undefined && erased.hasOf(organizationId)
  const known = new Set(told.flatMap((one) => (mustBeThere(one) ? [] : [one._id])))
  const unknown = told.filter((one) => mustBeThere(one) && !known.has(one._id))
  const organizationIds = [...new Set(unknown.map(({ organizationId }) => organizationId))]
  const ids = [...new Set(unknown.map(({ _id }) => _id))]
  for (let from = 0; from < ids.length; from += IDS_MAX) {
    const { sql, parameters } = selectRuns(organizationIds, ids.slice(from, from + IDS_MAX))
    for (const { _id } of await history.rows<{ _id: string }>(sql, parameters)) known.add(_id)
  }
  return told.filter(({ _id }) => known.has(_id))
}

const attemptText = ({ at, statusCode, durationMs, error, answer, wrote, failures }: AttemptMade): string =>
  JSON.stringify({ at, statusCode, durationMs, error, answer, wrote, failures } satisfies RunRow['attempts'][number])

const changesOf = (partition: number, { revision, fact }: RunsEntry, epoch: number): Told[] => {
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
        about: row.trigger,
      }))
    case ATTEMPTS_MADE:
      return (fact.data as AttemptsMade).attempts.map((made, i) => ({
        organizationId: made.organizationId,
        _id: made.runId,
        createdAt: made.owedAt,
        at: at(i),
        status: made.status,
        dueAt: made.dueAt,
        attempt: attemptText(made),
      }))
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
      return [{ organizationId, _id: runId, createdAt: owedAt, at: at(0), status: 'pending', dueAt, about: trigger }]
    }
    default:
      return []
  }
}
