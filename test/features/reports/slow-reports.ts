import { distance } from '@turf/turf'
import type { PlainPoint } from '../../support/trace-batches.ts'

/* What reports should answer, computed point by point in the plainest way. */

const metersBetween = (a: PlainPoint, b: PlainPoint): number =>
  distance([a.lngE7 / 1e7, a.latE7 / 1e7], [b.lngE7 / 1e7, b.latE7 / 1e7], { units: 'meters' })

/** Each tracker's points without repeats and points ahead of the clock, oldest first. */
export const byTracker = (points: readonly PlainPoint[], from: number, to: number): Map<string, PlainPoint[]> => {
  const seen = new Set<string>()
  const found = new Map<string, PlainPoint[]>()
  for (const point of points) {
    const key = `${point.trackerId} ${point.recordedAt}`
    if (seen.has(key) || point.recordedAt < from || point.recordedAt > to || (point.flags & 256) !== 0) continue
    seen.add(key)
    found.set(point.trackerId, [...(found.get(point.trackerId) ?? []), point])
  }
  for (const track of found.values()) track.sort((a, b) => a.recordedAt - b.recordedAt)
  return found
}

/** As `hourCycle` days of a zone are written: Canada writes them as ISO 8601 does. */
export const dayIn = (timeZone: string): ((at: number) => string) => {
  const format = new Intl.DateTimeFormat('en-CA', { timeZone })
  return (at) => format.format(at)
}

const speedAt = (point: PlainPoint, before: PlainPoint | undefined, gapMs: number): number | undefined => {
  if ((point.flags & 4) !== 0) return (point.speedCms ?? 0) / 100
  if (before === undefined || point.recordedAt - before.recordedAt > gapMs) return undefined
  const speed = metersBetween(before, point) / ((point.recordedAt - before.recordedAt) / 1000)
  return speed > 100 ? undefined : speed
}

export const slowSummary = (
  points: readonly PlainPoint[],
  question: { from: number; to: number; gapMs: number; periodOf: (at: number) => string },
) => {
  const rows = new Map<string, ReturnType<typeof emptySums>>()
  for (const [trackerId, track] of byTracker(points, question.from, question.to)) {
    for (const [i, point] of track.entries()) {
      const key = `${trackerId} ${question.periodOf(point.recordedAt)}`
      const row = rows.get(key) ?? emptySums(point.recordedAt)
      rows.set(key, row)
      row.lastAt = point.recordedAt
      const before = track[i - 1] as PlainPoint | undefined
      row.maxSpeed = Math.max(row.maxSpeed, speedAt(point, before, question.gapMs) ?? -1)
      if (before === undefined || point.recordedAt - before.recordedAt > question.gapMs) continue
      const meters = metersBetween(before, point)
      const seconds = (point.recordedAt - before.recordedAt) / 1000
      row.distanceMeters += meters
      if (meters > seconds) row.drivenMeters += meters
      row[meters > seconds ? 'drivingSeconds' : 'stoppedSeconds'] += seconds
    }
  }
  return rows
}

const emptySums = (firstAt: number) => ({
  distanceMeters: 0,
  drivenMeters: 0,
  drivingSeconds: 0,
  stoppedSeconds: 0,
  maxSpeed: -1,
  firstAt,
  lastAt: firstAt,
})

/** Every stretch is tried from every point, to its end. */
export const slowStops = (
  points: readonly PlainPoint[],
  { from, to, minSeconds, radiusMeters }: { from: number; to: number; minSeconds: number; radiusMeters: number },
) => {
  const stops: { trackerId: string; from: number; to: number; lat: number; lng: number }[] = []
  for (const [trackerId, track] of byTracker(points, from, to)) {
    for (let i = 0; i < track.length; i++) {
      let end = i
      while (end + 1 < track.length && metersBetween(track[i], track[end + 1]) <= radiusMeters) end++
      const [first, last] = [track[i], track[end]]
      if (last.recordedAt - first.recordedAt < minSeconds * 1000) continue
      stops.push({
        trackerId,
        from: first.recordedAt,
        to: last.recordedAt,
        lat: first.latE7 / 1e7,
        lng: first.lngE7 / 1e7,
      })
      i = end
    }
  }
  return stops
}

export const slowSpeeding = (
  points: readonly PlainPoint[],
  question: { from: number; to: number; gapMs: number; limitAt: (point: PlainPoint) => number | undefined },
) => {
  const found: { trackerId: string; from: number; to: number; maxSpeed: number; limit: number }[] = []
  for (const [trackerId, track] of byTracker(points, question.from, question.to)) {
    let wasOver: number | undefined
    for (const [i, point] of track.entries()) {
      const before = track[i - 1] as PlainPoint | undefined
      const speed = speedAt(point, before, question.gapMs)
      const limit = question.limitAt(point)
      const isOver = speed !== undefined && limit !== undefined && speed > limit
      const isNear = before !== undefined && point.recordedAt - before.recordedAt <= question.gapMs
      const last = found[found.length - 1]
      if (isOver && wasOver === limit && isNear) {
        last.to = point.recordedAt
        last.maxSpeed = Math.max(last.maxSpeed, speed)
      } else if (isOver) found.push({ trackerId, from: point.recordedAt, to: point.recordedAt, maxSpeed: speed, limit })
      wasOver = isOver ? limit : undefined
    }
  }
  return found
}
