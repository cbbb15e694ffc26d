import { readStepState } from '../../engines/clickhouse-sql/point-steps.ts'
import { selectTrackers } from '../../engines/clickhouse-sql/reports.ts'
import type { HistoryReader } from '../../engines/history-store.ts'

/** Trackers and time of a report; both bounds inclusive, ms since the epoch. */
export interface ReportScope {
  organizationId: string
  /** Requested trackers that the caller may see. */
  trackerIds: 'all' | readonly string[]
  from: number
  to: number
}

/** Small, so that the first answer comes soon; later batches are larger. */
const FIRST_TRACKERS = 8

/**
 * Trackers of a report, in batches, in the engine's order: a fleet is never queried at once. `from` is the first
 * tracker.
 */
export async function* trackersOf(
  history: HistoryReader,
  scope: ReportScope,
  from: string | undefined,
  trackersMax: number,
): AsyncGenerator<string[]> {
  const { trackerIds } = scope
  let count = Math.min(FIRST_TRACKERS, trackersMax)
  const isBefore = (id: string): boolean => from !== undefined && rankOf(id) < rankOf(from)
  if (trackerIds !== 'all') {
    const ids = [...new Set(trackerIds)].filter((id) => !isBefore(id)).sort((a, b) => (rankOf(a) < rankOf(b) ? -1 : 1))
    for (let at = 0; at < ids.length; count = Math.min(count * 2, trackersMax)) {
      yield ids.slice(at, at + count)
      at += count
    }
    return
  }
  let after = from ?? NO_TRACKER
  const rolledTo = (await readStepState(history))?.through ?? Number.MIN_SAFE_INTEGER
  for (let some = from === undefined ? [] : [from]; ; some = []) {
    const { sql, parameters } = selectTrackers(scope, after, count, rolledTo)
    const found = await history.rows<{ tracker: string }>(sql, parameters)
    some.push(...found.map(({ tracker }) => tracker))
    if (some.length > 0) yield some
    if (found.length < count) return
    after = some[some.length - 1]
    count = Math.min(count * 2, trackersMax)
  }
}

const NO_TRACKER = '00000000-0000-0000-0000-000000000000'

/** Key that sorts like UUIDs in the engine: the second half counts before the first. */
export const rankOf = (id: string): string => id.slice(19) + id.slice(0, 18)
