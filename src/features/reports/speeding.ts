import type { HistoryReader } from '../../engines/history-store.ts'
import { distanceMeters } from '../../geo/distance.ts'
import { behind, type RowKey, type ReportRow } from './answer.ts'
import type { Limit, LimitAt } from './fences.ts'
import { rounded } from './summary.ts'
import { type TrackPiece, tracksOf } from './read-tracks.ts'
import type { ReportScope } from './tracker-walk.ts'

interface Stretch extends Limit {
  trackerId: string
  from: number
  to: number
  maxSpeed: number
  /** Start of the stretch. */
  lat: number
  lng: number
}

/** Highest speed taken from a leg whose end reports none: above it, the position is wrong. */
const LEG_SPEED_MAX = 100

/** Stretches above the speed limit, by tracker and time. Points further apart than `gapMs` are never in one stretch. */
export async function* speedingRows(
  history: HistoryReader,
  scope: ReportScope,
  { limitAt, gapMs }: { limitAt: LimitAt; gapMs: number },
  after: RowKey | undefined,
  signal: AbortSignal,
): AsyncGenerator<ReportRow[]> {
  const finder = new SpeedingFinder(limitAt, gapMs)
  for await (const piece of tracksOf(history, scope, after?.[0], signal))
    yield behind(finder.push(piece).map(shown), after)
  yield behind(finder.end().map(shown), after)
}

/** Takes tracks piece by piece, and returns the stretches that have ended. */
export class SpeedingFinder {
  private readonly limitAt: LimitAt
  private readonly gapMs: number
  private current: Stretch | undefined
  private last: { trackerId: string; at: number; lat: number; lng: number } | undefined

  constructor(limitAt: LimitAt, gapMs: number) {
    this.limitAt = limitAt
    this.gapMs = gapMs
  }

  push({ trackerId, at, lat, lng, speed }: TrackPiece): Stretch[] {
    const ended: Stretch[] = []
    if (this.last?.trackerId !== trackerId) ended.push(...this.end())
    for (let i = 0; i < at.length; i++) {
      const point = { trackerId, at: at[i], lat: lat[i], lng: lng[i] }
      const found = this.excessAt(point, Number.isNaN(speed[i]) ? this.legSpeed(point) : speed[i])
      const { current, last } = this
      const goesOn = current !== undefined && found !== undefined && current.geofenceId === found.geofenceId
      if (goesOn && last !== undefined && point.at - last.at <= this.gapMs) {
        current.to = point.at
        current.maxSpeed = Math.max(current.maxSpeed, found.maxSpeed)
      } else {
        ended.push(...this.take())
        this.current = found
      }
      this.last = point
    }
    return ended
  }

  end(): Stretch[] {
    this.last = undefined
    return this.take()
  }

  private take(): Stretch[] {
    const { current } = this
    this.current = undefined
    return current === undefined ? [] : [current]
  }

  private legSpeed({ at, lat, lng }: { at: number; lat: number; lng: number }): number {
    const { last } = this
    if (last === undefined || at - last.at > this.gapMs) return 0
    const speed = (distanceMeters(last.lng, last.lat, lng, lat) * 1000) / (at - last.at)
    return speed <= LEG_SPEED_MAX ? speed : 0
  }

  private excessAt(
    { trackerId, at, lat, lng }: { trackerId: string; at: number; lat: number; lng: number },
    speed: number,
  ): Stretch | undefined {
    if (speed === 0) return undefined
    const limit = this.limitAt(lng, lat)
    if (limit === undefined || speed <= limit.limit) return undefined
    return { ...limit, trackerId, from: at, to: at, maxSpeed: speed, lat, lng }
  }
}

const shown = ({ trackerId, from, to, maxSpeed, limit, geofenceId, lat, lng }: Stretch): ReportRow => ({
  place: [trackerId, from],
  row: {
    trackerId,
    from: new Date(from).toISOString(),
    to: new Date(to).toISOString(),
    seconds: (to - from) / 1000,
    maxSpeed: rounded(maxSpeed),
    limit: rounded(limit),
    ...(geofenceId !== undefined && { geofenceId }),
    lat: lat / 1e7,
    lng: lng / 1e7,
  },
})
