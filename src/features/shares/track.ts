import { selectPoints } from '../../engines/clickhouse-sql/points.ts'
import type { HistoryReader } from '../../engines/history-store.ts'
import { distanceMeters } from '../../geo/distance.ts'
import type { Clock } from '../../kernel/clock.ts'
import { RecentMap } from '../../kernel/recent-map.ts'

export interface TrackPoint {
  /** ms since the epoch. */
  recordedAt: number
  /** 1e-7 degree. */
  latE7: number
  lngE7: number
}

export interface TrackQuestion {
  organizationId: string
  trackerId: string
  /** ms since the epoch, inclusive. */
  from: number
  to: number
}

/** Points per answer: a page draws no more. */
const POINTS_MAX = 500
const STEP_MS_MIN = 5_000
/** Interval of history queries for one share. */
const FRESH_MS = 10_000
const KEPT_MAX = 1_000

interface Kept {
  at: number
  points: Promise<TrackPoint[]>
}

/** Reads pieces of tracks, evenly thinned out, each once in ten seconds however many follow it. */
export class Tracks {
  private readonly history: HistoryReader
  private readonly clock: Clock
  private readonly kept = new RecentMap<string, Kept>(KEPT_MAX)

  constructor({ history, clock }: { history: HistoryReader; clock: Clock }) {
    this.history = history
    this.clock = clock
  }

  /** Oldest first. `name` identifies the piece, whose ends move on. @throws Failure overloaded, engine_down */
  read(name: string, question: TrackQuestion): Promise<TrackPoint[]> {
    const at = this.clock.monotonic()
    const before = this.kept.get(name)
    if (before !== undefined && at - before.at < FRESH_MS) return before.points
    const points = this.ask(question)
    this.kept.set(name, { at, points })
    points.catch(() => this.kept.set(name, { at: Number.NEGATIVE_INFINITY, points }))
    return points
  }

  private async ask({ organizationId, trackerId, from, to }: TrackQuestion): Promise<TrackPoint[]> {
    const intervalMs = Math.max(STEP_MS_MIN, Math.ceil((to - from) / (POINTS_MAX - 2)))
    const { sql, parameters } = selectPoints(
      { organizationId, trackerIds: [trackerId], from, to, intervalMs },
      { order: 'asc', limit: POINTS_MAX },
    )
    const rows = await this.history.rows<{ at: number; latE7: number; lngE7: number }>(
      `SELECT toUnixTimestamp64Milli(recordedAt) AS at, latE7, lngE7 FROM (${sql})`,
      parameters,
    )
    return rows.map(({ at, latE7, lngE7 }) => ({ recordedAt: at, latE7, lngE7 }))
  }
}

/** Speed in m/s along the points, over the whole time; undefined for less than a minute. */
export const speedAlong = (points: readonly TrackPoint[]): number | undefined => {
  const [first, last] = [points[0], points.at(-1)]
  if (first === undefined || last === undefined) return undefined
  const seconds = (last.recordedAt - first.recordedAt) / 1000
  if (seconds < 60) return undefined
  let meters = 0
  for (let i = 1; i < points.length; i++) {
    const [a, b] = [points[i - 1], points[i]]
    meters += distanceMeters(a.lngE7, a.latE7, b.lngE7, b.latE7)
  }
  return meters / seconds
}
