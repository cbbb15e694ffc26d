import type { LegRules } from '../../engines/clickhouse-sql/legs.ts'
import { rangesOf, STEP_MS, type StepState } from '../../engines/clickhouse-sql/point-steps.ts'
import { type ReportFilter, type RolledUp, selectLate } from '../../engines/clickhouse-sql/reports.ts'
import type { HistoryReader } from '../../engines/history-store.ts'

/** With more late steps, all points are summed. */
const LATE_MAX = 5_000
const RANGES_MAX = 100

/** Part of a report that is already rolled up; undefined if all points are to be summed. */
export const rolledUp = async (
  history: HistoryReader,
  filter: ReportFilter,
  { gapMs, stepMs }: LegRules,
  state: StepState | undefined,
): Promise<RolledUp | undefined> => {
  if (stepMs !== STEP_MS || state?.gapMs !== gapMs) return undefined
  const from = Math.ceil(filter.from / STEP_MS) * STEP_MS
  const to = Math.min(Math.floor((filter.to + 1) / STEP_MS) * STEP_MS, state.through)
  if (from >= to) return undefined
  const { sql, parameters } = selectLate({ ...filter, from, to }, LATE_MAX)
  const found = await history.rows<{ organizationId: string; trackerId: string; at: number }>(sql, parameters)
  const late = rangesOf(found)
  return found.length === LATE_MAX || late.length > RANGES_MAX ? undefined : { from, to, late }
}
