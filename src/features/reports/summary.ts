import { readStepState } from '../../engines/clickhouse-sql/point-steps.ts'
import { countTrips, type ReportFilter, sumPeriods } from '../../engines/clickhouse-sql/reports.ts'
import type { HistoryReader } from '../../engines/history-store.ts'
import type { Row } from '../../kernel/table.ts'
import { rowsOf } from '../../kit/http/written-rows.ts'
import { behind, type RowKey, type ReportRow } from './answer.ts'
import { rolledUp } from './rolled-up.ts'
import { type Per, periodsOf } from './periods.ts'
import { type ReportScope, trackersOf } from './tracker-walk.ts'

/** Names of trackers, in the order of the ids; undefined for those that are gone. */
export type NamesOf = (organizationId: string, trackerIds: readonly string[]) => Promise<(string | undefined)[]>

export interface SummaryQuestion {
  per: Per
  timeZone: string
  gapMs: number
}

interface Summed {
  tracker: string
  period: number
  meters: number
  drivenMeters: number
  drivingMs: number
  stoppedMs: number
  maxSpeed: number
  firstAt: number
  lastAt: number
}

interface Trips {
  tracker: string
  period: number
  trips: number
}

const ROWS_AT_ONCE = 50_000
/** Tracker days per query: more would occupy the engine for long, and exceed the memory of a statement. */
const TRACKER_DAYS_AT_ONCE = 100_000
const DAY_MS = 86_400_000

/** Driving of each tracker in each period, by tracker and period. */
export async function* summaryRows(
  history: HistoryReader,
  namesOf: NamesOf,
  scope: ReportScope,
  { per, timeZone, gapMs }: SummaryQuestion,
  after: RowKey | undefined,
  signal: AbortSignal,
): AsyncGenerator<ReportRow[]> {
  const { from, to, organizationId } = scope
  const { starts, names: periodNames, stepMs } = periodsOf(per, from, to, timeZone)
  const nameAt = new Map(starts.map((start, i) => [start, periodNames[i]]))
  const days = Math.max(1, (to - from) / DAY_MS)
  const trackersMax = Math.max(1, Math.floor(Math.min(ROWS_AT_ONCE / starts.length, TRACKER_DAYS_AT_ONCE / days)))
  const rules = { gapMs, stepMs }
  const state = await readStepState(history)
  for await (const trackerIds of trackersOf(history, scope, after?.[0], trackersMax)) {
    const filter = { ...scope, trackerIds }
    const [names, trips, rolled] = await Promise.all([
      namesOf(organizationId, trackerIds),
      tripsOf(history, filter, starts, signal),
      rolledUp(history, filter, rules, state),
    ])
    const called = new Map(names.map((name, i) => [trackerIds[i], name]))
    for await (const sums of rowsOf<Summed>(history, sumPeriods(filter, rules, starts, rolled), signal)) {
      const rows = sums.map((sum) => ({
        place: [sum.tracker, sum.period] as const,
        row: shown(sum, called.get(sum.tracker), nameAt.get(sum.period), trips.get(`${sum.tracker} ${sum.period}`)),
      }))
      yield behind(rows, after)
    }
  }
}

/** Number of trips that began, by tracker and period. */
const tripsOf = async (
  history: HistoryReader,
  filter: ReportFilter,
  starts: readonly number[],
  signal: AbortSignal,
): Promise<Map<string, number>> => {
  const found = new Map<string, number>()
  for await (const counted of rowsOf<Trips>(history, countTrips(filter, starts), signal))
    for (const { tracker, period, trips } of counted) found.set(`${tracker} ${period}`, trips)
  return found
}

const shown = (sum: Summed, name: string | undefined, period = '', trips = 0): Row => ({
  trackerId: sum.tracker,
  ...(name !== undefined && { name }),
  period,
  distanceMeters: rounded(sum.meters),
  drivingSeconds: sum.drivingMs / 1000,
  stoppedSeconds: sum.stoppedMs / 1000,
  trips,
  maxSpeed: sum.maxSpeed < 0 ? null : rounded(sum.maxSpeed),
  averageSpeed: sum.drivingMs === 0 ? null : rounded((sum.drivenMeters * 1000) / sum.drivingMs),
  firstAt: new Date(sum.firstAt).toISOString(),
  lastAt: new Date(sum.lastAt).toISOString(),
})

/** To 0.01, like stored points. */
export const rounded = (value: number): number => Math.round(value * 100) / 100
