import {
  ATTEMPTS_MADE,
  RUN_REOPENED,
  RUNS_OWED,
  RUN_FACTS,
  RUNS_SKIPPED,
  runFactOf,
  type AttemptMade,
  type AttemptsMade,
  type RunReopened,
  type RunsOwed,
  type RunsSkipped,
} from '../src/features/automations/events.ts'
import { AUTOMATION_RUNS, owedRows, type RunRow } from '../src/features/automations/views.ts'
import type { Projection, Rows } from '../src/kit/consumers/projection.ts'

export const AUTOMATION_RUNS_PROJECTION = 'automation-runs'

const DAY_MS = 86_400_000

/** Every run with its attempts, kept so many days. */
export const automationRuns = (days: number): Projection => ({
  name: AUTOMATION_RUNS_PROJECTION,
  version: 3,
  tables: [AUTOMATION_RUNS],
  prefixes: ['automation-runs-'],
  inputs: RUN_FACTS,
  apply: async (event, rows) => {
    const table = new RunTable(rows, days)
    const { type, data } = runFactOf(event)
    if (type === RUNS_OWED) for (const row of owedRows(data as RunsOwed, event.stream)) table.put(row)
    else if (type === ATTEMPTS_MADE)
      for (const attempt of (data as AttemptsMade).attempts) await attempted(attempt, table)
    else if (type === RUNS_SKIPPED) await skipped(data as RunsSkipped, table)
    else if (type === RUN_REOPENED) await reopened(data as RunReopened, table)
  },
})

/** The rows of runs; each expires so many days after it was owed. */
class RunTable {
  private readonly rows: Rows
  private readonly days: number

  constructor(rows: Rows, days: number) {
    this.rows = rows
    this.days = days
  }

  get(organizationId: string, runId: string): Promise<RunRow | undefined> {
    return this.rows.get<RunRow>(AUTOMATION_RUNS.name, organizationId, runId)
  }

  put(row: RunRow): void {
    this.rows.put(AUTOMATION_RUNS.name, row.organizationId, row._id, row, row.createdAt + this.days * DAY_MS)
  }
}

const attempted = async (
  { organizationId, runId, status, dueAt, at, statusCode, durationMs, error, answer, failures }: AttemptMade,
  table: RunTable,
): Promise<void> => {
  const row = await table.get(organizationId, runId)
  if (row === undefined) return
  const attempts = [
    ...row.attempts.filter((attempt) => attempt.at !== at),
    { at, statusCode, durationMs, error, answer, failures },
  ]
  table.put({ ...row, status, attempts, dueAt })
}

const skipped = async ({ organizationId, runs, reason }: RunsSkipped, table: RunTable): Promise<void> => {
  for (const { runId } of runs) {
    const row = await table.get(organizationId, runId)
    if (row?.status === 'pending') table.put({ ...row, status: 'skipped', reason, dueAt: undefined })
  }
}

const reopened = async ({ trigger, runId, dueAt }: RunReopened, table: RunTable): Promise<void> => {
  const row = await table.get(trigger.organizationId, runId)
  if (row !== undefined) table.put({ ...row, status: 'pending', reason: undefined, dueAt })
}
