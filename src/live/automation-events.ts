import {
  ATTEMPTS_MADE,
  AUTOMATION_DEACTIVATED,
  RUN_REOPENED,
  RUNS_OWED,
  RUNS_SKIPPED,
  type AttemptsMade,
  type RunReopened,
  type RunsOwed,
  type RunsSkipped,
} from '../features/automations/events.ts'
import { evolveRow, owedRows, type AutomationRow, type RunRow } from '../features/automations/views.ts'
import { decodeJson, type RecordedEvent } from '../kernel/event.ts'
import { foldStream } from '../kit/commands/fold-stream.ts'
import type { LiveEvent } from './event-ring.ts'
import type { HubOptions } from './hub-options.ts'

/** The streams of automations and of their runs. */
export const AUTOMATION_STREAMS = 'automation-'

/** What one event made of a run, whose row may know more by now. */
interface RunChange {
  organizationId: string
  runId: string
  /** Its place among the runs of the event, from 1. */
  ordinal: number
  at(row: RunRow): RunRow
}

/** The runs that an event is about, each as its GET answered it then, or the automation that it deactivates; for the organizations that are chosen. */
export const automationEvents = async (
  { log, sources }: HubOptions,
  event: RecordedEvent,
  partition: number,
  isChosen: (organizationId: string) => boolean,
): Promise<{ organizationId: string; told: LiveEvent }[]> => {
  const liveEvent = (seen: number, shown: () => object, trackerId?: string): LiveEvent => {
    let text: string | undefined
    return {
      channel: 'automation',
      trackerId,
      partition,
      place: { revision: event.position, seen },
      text: () => (text ??= JSON.stringify(shown())),
    }
  }
  if (event.type === AUTOMATION_DEACTIVATED) {
    const organizationId = event.metadata.organizationId ?? ''
    const row = isChosen(organizationId)
      ? await foldStream<AutomationRow | undefined>(log, event.stream, event.revision, undefined, evolveRow)
      : undefined
    return row === undefined ? [] : [{ organizationId, told: liveEvent(1, () => sources.automationShown(row)) }]
  }
  const runs = event.type === RUNS_OWED ? owedRuns(event, isChosen) : await changedRuns(sources, event, isChosen)
  return runs.map(({ row, ordinal }) => ({
    organizationId: row.organizationId,
    told: liveEvent(ordinal, () => sources.runShown(row), row.trackerId),
  }))
}

interface RunThen {
  row: RunRow
  ordinal: number
}

const owedRuns = (event: RecordedEvent, isChosen: (organizationId: string) => boolean): RunThen[] =>
  owedRows(decodeJson<RunsOwed>(event.data), event)
    .map((row, i) => ({ row, ordinal: i + 1 }))
    .filter(({ row }) => isChosen(row.organizationId))

const changedRuns = async (
  sources: HubOptions['sources'],
  event: RecordedEvent,
  isChosen: (organizationId: string) => boolean,
): Promise<RunThen[]> => {
  const changes = changesOf(event).filter(({ organizationId }) => isChosen(organizationId))
  const runs: RunThen[] = []
  for (const organizationId of new Set(changes.map((change) => change.organizationId))) {
    const own = changes.filter((change) => change.organizationId === organizationId)
    const rows = await sources.runs(
      organizationId,
      own.map(({ runId }) => runId),
      event.position,
    )
    for (const [i, { at, ordinal }] of own.entries()) {
      const row = rows[i]
      if (row !== undefined) runs.push({ row: at(row), ordinal })
    }
  }
  return runs.sort((a, b) => a.ordinal - b.ordinal)
}

const changesOf = ({ type, data, loggedAt }: RecordedEvent): RunChange[] => {
  if (type === ATTEMPTS_MADE) {
    return decodeJson<AttemptsMade>(data).attempts.map(
      ({ organizationId, runId, status, dueAt, at: attemptedAt }, i) => ({
        organizationId,
        runId,
        ordinal: i + 1,
        at: (row) => ({
          ...row,
          status,
          reason: undefined,
          dueAt,
          attempts: row.attempts.filter(({ at }) => at <= attemptedAt),
        }),
      }),
    )
  }
  if (type === RUNS_SKIPPED) {
    const { organizationId, runIds, reason } = decodeJson<RunsSkipped>(data)
    return runIds.map((runId, i) => ({
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
  const { trigger, runId, dueAt } = decodeJson<RunReopened>(data)
  const at = (row: RunRow): RunRow => ({
    ...row,
    status: 'pending',
    reason: undefined,
    dueAt,
    attempts: row.attempts.filter((attempt) => attempt.at < loggedAt),
  })
  return [{ organizationId: trigger.organizationId, runId, ordinal: 1, at }]
}
