// Geometry of the console. Positions are [longitude, latitude] in degrees, lengths are metres.

export type Position = [lng: number, lat: number]

export interface TimedPosition {
  at: number
  position: Position
}

const EARTH_RADIUS_METERS = 6_371_008.8
const RADIANS = Math.PI / 180
/** After a longer time without a point, the tracker's path is unknown. */
export const GAP_MS = 5 * 60_000
/** A step that is both this long and this fast is no journey: a demo that restarts, two devices under one id. */
const JUMP_METERS = 500
const JUMP_METERS_PER_SECOND = 85

/** On the sphere. */
export const distance = ([lng1, lat1]: Position, [lng2, lat2]: Position): number => {
  const sinLat = Math.sin(((lat2 - lat1) / 2) * RADIANS)
  const sinLng = Math.sin(((lng2 - lng1) / 2) * RADIANS)
  const h = sinLat ** 2 + Math.cos(lat1 * RADIANS) * Math.cos(lat2 * RADIANS) * sinLng ** 2
  return 2 * EARTH_RADIUS_METERS * Math.asin(Math.min(1, Math.sqrt(h)))
}

/** From one position to another, in degrees clockwise from north. */
export const bearing = ([lng1, lat1]: Position, [lng2, lat2]: Position): number => {
  const dLng = (lng2 - lng1) * RADIANS
  const y = Math.sin(dLng) * Math.cos(lat2 * RADIANS)
  const x =
    Math.cos(lat1 * RADIANS) * Math.sin(lat2 * RADIANS) -
    Math.sin(lat1 * RADIANS) * Math.cos(lat2 * RADIANS) * Math.cos(dLng)
  return (Math.atan2(y, x) / RADIANS + 360) % 360
}

export const destination = ([lng, lat]: Position, bearingDegrees: number, meters: number): Position => {
  const angle = meters / EARTH_RADIUS_METERS
  const turn = bearingDegrees * RADIANS
  const sinLat = Math.sin(lat * RADIANS) * Math.cos(angle) + Math.cos(lat * RADIANS) * Math.sin(angle) * Math.cos(turn)
  const y = Math.sin(turn) * Math.sin(angle) * Math.cos(lat * RADIANS)
  const x = Math.cos(angle) - Math.sin(lat * RADIANS) * sinLat
  return [lng + Math.atan2(y, x) / RADIANS, Math.asin(sinLat) / RADIANS]
}

/** Whether a tracker can have moved from one point to the next. */
export const isReachable = (from: TimedPosition, to: TimedPosition): boolean => {
  const meters = distance(from.position, to.position)
  return meters < JUMP_METERS || meters / ((to.at - from.at) / 1000) < JUMP_METERS_PER_SECOND
}

/** Whether two consecutive points can be joined by a line. */
export const isStep = (from: TimedPosition, to: TimedPosition): boolean =>
  to.at - from.at <= GAP_MS && isReachable(from, to)

/**
 * Cuts points in order of time where two cannot be joined; use `isReachable` if points were left out. Returns the lines
 * of at least two positions, and their total length in metres.
 */
export const splitTrack = (
  points: readonly TimedPosition[],
  areJoined = isStep,
): { lines: Position[][]; meters: number } => {
  const lines: Position[][] = []
  let meters = 0
  let before: TimedPosition | undefined
  for (const point of points) {
    if (before === undefined || !areJoined(before, point)) lines.push([])
    else meters += distance(before.position, point.position)
    lines.at(-1)!.push(point.position)
    before = point
  }
  return { lines: lines.filter((line) => line.length > 1).map(unwrapped), meters }
}

/** Longitudes that continue beyond 180 instead of jumping to the other end of the map. */
export const unwrapped = (positions: readonly Position[]): Position[] => {
  let turns = 0
  return positions.map(([lng, lat], index) => {
    const step = index === 0 ? 0 : lng - positions[index - 1]![0]
    if (step > 180) turns--
    if (step < -180) turns++
    return [lng + turns * 360, lat]
  })
}

/** A closed ring of 64 corners at `radius` around a centre. */
export const circleRing = (center: Position, radius: number): Position[] =>
  Array.from({ length: 65 }, (_, i) => destination(center, ((i % 64) / 64) * 360, radius))

/** Width in metres of a pixel of the map at zoom 0 on the equator. */
const METERS_PER_PIXEL = (2 * Math.PI * EARTH_RADIUS_METERS) / 512

/** Number of pixels of `meters` at zoom 0 at this latitude; each zoom doubles it. */
export const pixelsAtZoom0 = (meters: number, lat: number): number =>
  meters / (METERS_PER_PIXEL * Math.cos(lat * RADIANS))

/** Metres from a place to a line, on a plane that touches the sphere at the place: accurate enough for a map. */
export const distanceToLine = ([lng, lat]: Position, line: readonly Position[]): number => {
  const scale = Math.cos(lat * RADIANS)
  const flat = line.map(([x, y]): Position => [turned(x - lng) * scale, y - lat])
  let best = flat.length === 1 ? Math.hypot(...flat[0]!) : Number.POSITIVE_INFINITY
  for (let i = 1; i < flat.length; i++) best = Math.min(best, distanceToOrigin(flat[i - 1]!, flat[i]!))
  return best * RADIANS * EARTH_RADIUS_METERS
}

const turned = (degrees: number): number => ((((degrees + 180) % 360) + 360) % 360) - 180

const distanceToOrigin = ([ax, ay]: Position, [bx, by]: Position): number => {
  const [dx, dy] = [bx - ax, by - ay]
  const length2 = dx * dx + dy * dy
  const part = length2 === 0 ? 0 : Math.max(0, Math.min(1, -(ax * dx + ay * dy) / length2))
  return Math.hypot(ax + part * dx, ay + part * dy)
}

/** Whether a place is in a ring, by the even-odd rule. */
export const isInRing = ([lng, lat]: Position, ring: readonly Position[]): boolean => {
  const straight = unwrapped(ring)
  const x = lng + Math.round((straight[0]![0] - lng) / 360) * 360
  return [x - 360, x, x + 360].some((at) => crossings(at, lat, straight) % 2 === 1)
}

const crossings = (x: number, y: number, ring: readonly Position[]): number => {
  let count = 0
  for (let i = 1; i < ring.length; i++) {
    const [ax, ay] = ring[i - 1]!
    const [bx, by] = ring[i]!
    if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) count++
  }
  return count
}
