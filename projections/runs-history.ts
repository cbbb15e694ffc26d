import { RUNS } from '../src/engines/clickhouse-sql/history-tables.ts'
import { type RunChange, runsBlock, selectRunTimes } from '../src/engines/clickhouse-sql/runs.ts'
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
    const buffer = () => runBuffer(services.history, services.epoch, services.erasures.known)
    super({ ...services, name: RUNS_HISTORY, buffer, ageMsMax: 100 })
  }
}

/** The rows of runs. */
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

/** Whether it says by itself that it is about what is erased; attempts and ends name the run alone. */
const isErased = (erased: Erased, { organizationId, about }: Told): boolean =>
  about === undefined ? erased.hasAllOf(organizationId) : erased.has(organizationId, about.subject.id, about.at)

type Told = Omit<RunChange, 'createdAt'> & { createdAt: number | undefined; about?: RunTrigger }

/**
 * What these events say of runs. Attempts from before they said when their run was owed are asked of the history, which
 * has the runs that were owed earlier; so are those of organizations of which something is erased. Of a run that the
 * history does not have there is nothing to say.
 */
const runChanges = async (
  history: Pick<HistoryStore, 'rows'>,
  told: readonly Told[],
  erased: Erased,
): Promise<RunChange[]> => {
  const mustBeThere = ({ organizationId, createdAt, about }: Told): boolean =>
    createdAt === undefined || (about === undefined && erased.hasOf(organizationId))
  const times = new Map(told.flatMap((one) => (mustBeThere(one) ? [] : [[one._id, one.createdAt as number]])))
  const unknown = told.filter((one) => mustBeThere(one) && !times.has(one._id))
  const organizationIds = [...new Set(unknown.map(({ organizationId }) => organizationId))]
  const ids = [...new Set(unknown.map(({ _id }) => _id))]
  for (let from = 0; from < ids.length; from += IDS_MAX) {
    const { sql, parameters } = selectRunTimes(organizationIds, ids.slice(from, from + IDS_MAX))
    for (const { _id, createdAt } of await history.rows<{ _id: string; createdAt: number }>(sql, parameters))
      times.set(_id, createdAt)
  }
  return told.flatMap((change) => {
    const createdAt = mustBeThere(change) ? times.get(change._id) : change.createdAt
    return createdAt === undefined ? [] : [{ ...change, createdAt }]
  })
}

/** An attempt as the history keeps it. */
const attemptText = ({ at, statusCode, durationMs, error, answer, wrote, failures }: AttemptMade): string =>
  JSON.stringify({ at, statusCode, durationMs, error, answer, wrote, failures } satisfies RunRow['attempts'][number])

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
      const createdAt = isUndated ? undefined : owedAt
      return [{ organizationId, _id: runId, createdAt, at: at(0), status: 'pending', dueAt, about: trigger }]
    }
    default:
      return []
  }
}
