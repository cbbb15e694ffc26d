// One day of one tracker: its position at a moment, its trips and stops, and their totals.
import { bearing, distance, isReachable, type Position, splitTrack, type TimedPosition } from '../map/geometry.ts'

export interface TrackPoint extends TimedPosition {
  /** Metres per second, as reported or computed from the step. */
  speed: number
}

export interface Stretch {
  type: 'trip' | 'stop'
  from: number
  to: number
  /** Metres; 0 for a stop. */
  distance: number
  /** Start of the stretch. */
  position: Position
}

export interface Track {
  trackerId: string
  name: string
  points: TrackPoint[]
  lines: Position[][]
  stretches: Stretch[]
  totals: Totals
}

export interface Totals {
  meters: number
  drivingMs: number
  stoppedMs: number
  maxSpeed: number
}

export interface RawPoint {
  recordedAt: string
  lat: number
  lng: number
  speed?: number
}

/** Points of a day. A line leaves out what lies on it, also where the tracker stood or changed its speed. */
export interface RawPoints {
  /** Those that give the line. */
  shape: readonly RawPoint[]
  /** Those at regular times. */
  course: readonly RawPoint[]
}

export interface RawTrip {
  startedAt: string
  finishedAt: string | null
  distance: number
}

/** After this long without a point, and at another place afterwards, the position is unknown. */
const GAP_MS = 10 * 60_000
const SAME_PLACE_METERS = 150
const STOP_MS = 60_000
const MOVING_METERS_PER_SECOND = 1.4

export const trackOf = (
  trackerId: string,
  name: string,
  { shape, course }: RawPoints,
  trips: readonly RawTrip[],
  range: { from: number; to: number },
): Track => {
  const points = pointsOf([...shape, ...course])
  // Of the line alone: the noise of a receiver at rest is no distance.
  const { lines, meters } = splitTrack(pointsOf(shape), isReachable)
  const stretches = stretchesOf(points, trips, range)
  const lasting = (type: Stretch['type']): number =>
    stretches.filter((one) => one.type === type).reduce((sum, { from, to }) => sum + to - from, 0)
  // A way there and back on a straight road is one line: its trips know how long it was.
  const driven = stretches.reduce((sum, one) => sum + one.distance, 0)
  const maxSpeed = points.reduce((max, { speed }) => Math.max(max, speed), 0)
  const totals = { meters: Math.max(meters, driven), drivingMs: lasting('trip'), stoppedMs: lasting('stop'), maxSpeed }
  return { trackerId, name, points, lines, stretches, totals }
}

/** In order of time, each moment once. */
const pointsOf = (raw: readonly RawPoint[]): TrackPoint[] => {
  const points: TrackPoint[] = []
  const dated = raw.map(({ recordedAt, ...rest }) => ({ at: Date.parse(recordedAt), ...rest }))
  for (const { at, lat, lng, speed } of dated.sort((a, b) => a.at - b.at)) {
    const point = { at, position: [lng, lat] as Position }
    const before = points.at(-1)
    if (before?.at === at) continue
    points.push({ ...point, speed: speed ?? (before === undefined ? 0 : stepSpeed(before, point)) })
  }
  return points
}

const stepSpeed = (from: TimedPosition, to: TimedPosition): number => {
  const seconds = (to.at - from.at) / 1000
  return seconds > 0 && isReachable(from, to) ? distance(from.position, to.position) / seconds : 0
}

/** Trips within the range, and the stretches between them while the tracker was heard. */
const stretchesOf = (
  points: readonly TrackPoint[],
  trips: readonly RawTrip[],
  range: { from: number; to: number },
): Stretch[] => {
  const first = points[0]
  const last = points.at(-1)
  if (first === undefined || last === undefined) return []
  const found: Stretch[] = []
  let at = first.at
  const sorted = trips
    .map((trip) => ({
      from: Math.max(range.from, Date.parse(trip.startedAt)),
      to: Math.min(range.to, trip.finishedAt === null ? last.at : Date.parse(trip.finishedAt)),
      trip,
    }))
    .filter(({ from, to }) => to > from)
    .sort((a, b) => a.from - b.from)
  for (const { from, to, trip } of sorted) {
    if (from - at >= STOP_MS) found.push(stretch('stop', points, at, from, 0))
    const isWhole = from === Date.parse(trip.startedAt) && to === Date.parse(trip.finishedAt ?? '')
    found.push(stretch('trip', points, from, to, isWhole ? trip.distance : metersIn(points, from, to)))
    at = Math.max(at, to)
  }
  if (last.at - at >= STOP_MS) found.push(stretch('stop', points, at, last.at, 0))
  return found
}

/** Metres of a trip within the day. */
const metersIn = (points: readonly TrackPoint[], from: number, to: number): number =>
  splitTrack(points.slice(Math.max(0, indexAt(points, from)), indexAt(points, to) + 1), isReachable).meters

const stretch = (
  type: Stretch['type'],
  points: readonly TrackPoint[],
  from: number,
  to: number,
  meters: number,
): Stretch => ({ type, from, to, distance: meters, position: points[Math.max(0, indexAt(points, from))]!.position })

/** The last point not later than `at`; -1 before the first. */
export const indexAt = (points: readonly TimedPosition[], at: number): number => {
  let [low, high] = [0, points.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (points[middle]!.at <= at) low = middle + 1
    else high = middle
  }
  return low - 1
}

export interface Moment {
  position: Position
  heading: number
  speed: number
  isMoving: boolean
  /** The position is unknown: the last known one is shown. */
  isGap: boolean
}

/** Position of the tracker; undefined before its first point. */
export const momentAt = ({ points }: Pick<Track, 'points'>, at: number): Moment | undefined => {
  const index = indexAt(points, at)
  const from = points[index]
  if (from === undefined) return undefined
  const to = points[index + 1]
  if (to === undefined) return still(from, at - from.at > GAP_MS)
  const meters = distance(from.position, to.position)
  if (meters < 1) return still(from, false)
  if (to.at - from.at > GAP_MS && meters > SAME_PLACE_METERS) return still(from, true)
  if (!isReachable(from, to)) return still(from, true)
  const part = (at - from.at) / (to.at - from.at)
  const speed = to.speed
  return {
    position: between(from.position, to.position, part),
    heading: bearing(from.position, to.position),
    speed,
    isMoving: speed >= MOVING_METERS_PER_SECOND,
    isGap: false,
  }
}

const still = ({ position }: TrackPoint, isGap: boolean): Moment => ({
  position,
  heading: Number.NaN,
  speed: 0,
  isMoving: false,
  isGap,
})

const between = ([lng1, lat1]: Position, [lng2, lat2]: Position, part: number): Position => {
  const dLng = ((((lng2 - lng1 + 180) % 360) + 360) % 360) - 180
  return [lng1 + dLng * part, lat1 + (lat2 - lat1) * part]
}
