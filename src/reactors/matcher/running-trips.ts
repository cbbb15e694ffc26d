import { type RunningTripsRow, runningTripsId } from '../../features/trips/views.ts'
import { inSlices } from '../../kernel/breath.ts'
import { runningTripAt } from './detect-trips.ts'
import type { MatcherState } from './state.ts'

/** From one time that the trips of a partition are stored to the next, at least. */
const STORE_MS = 10_000
const SLOTS_PER_SLICE = 4_096

/** What is stored of the trips that run in a partition. */
export class RunningTrips {
  private storedAtMs = Number.NEGATIVE_INFINITY
  /** Buckets that had trips when they were stored last. */
  private filled: ReadonlySet<string> = new Set()

  /** Rows by bucket, those that have become empty too; none where some were stored a moment ago. */
  async rowsOf(state: MatcherState, nowMs: number): Promise<ReadonlyMap<string, RunningTripsRow>> {
    const rows = new Map<string, RunningTripsRow>()
    if (nowMs - this.storedAtMs < STORE_MS) return rows
    this.storedAtMs = nowMs
    await inSlices(state.trackerIds.length, (from) => {
      const to = Math.min(state.trackerIds.length, from + SLOTS_PER_SLICE)
      for (let slot = from; slot < to; slot++) {
        const trackerId = state.trackerIds[slot]
        const trip = trackerId === undefined ? undefined : runningTripAt(state, slot)
        if (trackerId === undefined || trip === undefined) continue
        const bucket = runningTripsId(trackerId)
        const row = rows.get(bucket) ?? { trips: {} }
        row.trips[trackerId] = trip
        rows.set(bucket, row)
      }
      return to
    })
    const filled = new Set(rows.keys())
    for (const bucket of this.filled) if (!rows.has(bucket)) rows.set(bucket, { trips: {} })
    this.filled = filled
    return rows
  }
}
