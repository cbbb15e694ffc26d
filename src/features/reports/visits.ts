import { selectVisits, type VisitFilter } from '../../engines/clickhouse-sql/reports.ts'
import type { HistoryReader } from '../../engines/history-store.ts'
import { rowsOf } from '../../kit/http/written-rows.ts'
import type { RowKey, ReportRow } from './answer.ts'

interface Visit {
  trackerId: string
  geofenceId: string
  enteredAt: number
  /** 0: not before the end of the report. */
  leftAt: number
}

/** Stays in geofences, by tracker and entry. An open one lasts to the end of the report, or to now. */
export async function* visitRows(
  history: HistoryReader,
  filter: VisitFilter,
  now: number,
  { after, limit }: { after: RowKey | undefined; limit?: number },
  signal: AbortSignal,
): AsyncGenerator<ReportRow[]> {
  const place = after && { trackerId: after[0], enteredAt: Number(after[1]), geofenceId: String(after[2]) }
  // One more row shows whether a page follows.
  const statement = selectVisits(filter, place, limit === undefined ? undefined : limit + 1)
  const openTo = Math.min(filter.to, now)
  for await (const visits of rowsOf<Visit>(history, statement, signal))
    yield visits.map((visit) => shown(visit, openTo))
}

const shown = ({ trackerId, geofenceId, enteredAt, leftAt }: Visit, openTo: number): ReportRow => ({
  place: [trackerId, enteredAt, geofenceId],
  row: {
    trackerId,
    geofenceId,
    enteredAt: new Date(enteredAt).toISOString(),
    ...(leftAt !== 0 && { leftAt: new Date(leftAt).toISOString() }),
    seconds: Math.max(0, (leftAt === 0 ? openTo : leftAt) - enteredAt) / 1000,
  },
})
