import { boxesOfRange } from './box.ts'
import { eastwardE7, LAT_MAX_E7, TURN_E7 } from './coordinates.ts'
import { distanceMeters, e7ToRadians, EARTH_RADIUS_METERS, METERS_PER_E7 } from './distance.ts'
import { angleToSegment, SEGMENT_NUMBERS, segmentLatitudes, writeSegment, writeVector } from './great-circle.ts'

/** All positions within some metres of a point (a circle) or of great-circle segments (a stretch of a corridor). */
export type Reach = {
  readonly kind: 'reach'
  readonly lngE7: number
  readonly latE7: number
  readonly meters: number
  /** Prepared segments; none for a circle. */
  readonly segments: Float64Array
  /** One box, or two on both sides of the antimeridian: west, south, east, north. Never too small. */
  readonly boxes: Int32Array
}

/** `path`: longitude and latitude in turn, E7; one position makes a circle. */
export const makeReach = (path: readonly number[], meters: number): Reach => {
  const vectors = new Float64Array((path.length / 2) * 3)
  for (let i = 0; i < path.length / 2; i++) writeVector(path[i * 2]!, path[i * 2 + 1]!, vectors, i * 3)
  const segments = new Float64Array((path.length / 2 - 1) * SEGMENT_NUMBERS)
  for (let i = 0; i < path.length / 2 - 1; i++) writeSegment(vectors, i * 3, i * 3 + 3, segments, i * SEGMENT_NUMBERS)
  return {
    kind: 'reach',
    lngE7: path[0]!,
    latE7: path[1]!,
    meters,
    segments,
    boxes: boxesAround(path, segments, meters),
  }
}

/** Metres from a position to the point or path of the reach. */
export const metersFrom = (reach: Reach, lngE7: number, latE7: number): number => {
  const { segments } = reach
  if (segments.length === 0) return distanceMeters(reach.lngE7, reach.latE7, lngE7, latE7)
  writeVector(lngE7, latE7, vector, 0)
  let angle = Infinity
  for (let at = 0; at < segments.length; at += SEGMENT_NUMBERS) {
    angle = Math.min(angle, angleToSegment(segments, at, vector[0]!, vector[1]!, vector[2]!))
  }
  return angle * EARTH_RADIUS_METERS
}

const vector = new Float64Array(3)

// Two units (2 cm) more on every side than the exact box, for rounding losses.
const MARGIN_E7 = 2

const boxesAround = (path: readonly number[], segments: Float64Array, meters: number): Int32Array => {
  let [south, north] = [path[1]!, path[1]!]
  let [lng, west, east] = [path[0]!, path[0]!, path[0]!]
  for (let i = 2; i < path.length; i += 2) {
    lng += eastwardE7(path[i - 2]!, 0, path[i]!, 0)
    west = Math.min(west, lng)
    east = Math.max(east, lng)
    const [low, high] = segmentLatitudes(segments, (i / 2 - 1) * SEGMENT_NUMBERS)
    south = Math.min(south, low / e7ToRadians(1))
    north = Math.max(north, high / e7ToRadians(1))
  }
  const padLat = meters / METERS_PER_E7
  south = Math.floor(south - padLat) - MARGIN_E7
  north = Math.ceil(north + padLat) + MARGIN_E7
  const padLng = longitudePad(Math.max(-south, north) - padLat - MARGIN_E7, meters)
  return boxesOfRange(Math.floor(west - padLng) - MARGIN_E7, south, Math.ceil(east + padLng) + MARGIN_E7, north)
}

/** Extent in longitude of a circle about a point at that latitude: all around where it holds a pole. */
const longitudePad = (latE7: number, meters: number): number => {
  const angle = meters / EARTH_RADIUS_METERS
  const sine = Math.sin(angle) / Math.cos(e7ToRadians(latE7))
  const holdsPole = latE7 + meters / METERS_PER_E7 >= LAT_MAX_E7 - MARGIN_E7 || !(sine < 1)
  return holdsPole ? TURN_E7 : (Math.asin(sine) / e7ToRadians(1)) * (1 + 1e-9)
}
