import type { Position } from 'geojson'
import { fromE7, LNG_MAX_E7, TURN_E7, wrapLngE7 } from './coordinates.ts'
import { onEdge } from './orientation.ts'
import { forEachEdgeIn, makePolygon, polygonContains, type Polygon, type Ring } from './polygon.ts'
import { enclosesArea } from './ring-crossing.ts'
import { edgesCross, properCrossing } from './ring-crossing.ts'
import { ringOf } from './shape.ts'

export type ShapeError = { path: string; message: string }

const POSITIONS_MAX = 20_000
/** Half way round the earth: such a circle is all of it. */
const RADIUS_METERS_MAX = 20_015_115
const WIDTH_METERS_MAX = 1_000_000

/**
 * The first fault that keeps an input from being a fence, or undefined. `path` is a JSON pointer into the input. Rings
 * are judged as kept, at 1e-7 degree. Pure; up to some 0.1 s for 20,000 positions.
 */
export const validateShape = (input: unknown): ShapeError | undefined => {
  if (!isObject(input)) return error('', 'must be an object')
  if ('center' in input) return circleError(input)
  if ('geometry' in input) return corridorError(input)
  if (input.type === 'Polygon') return tooMany(input.coordinates, 2) ?? polygonError('/coordinates', input.coordinates)
  if (input.type !== 'MultiPolygon') {
    return error('/type', 'must be Polygon or MultiPolygon, or give center and radius, or geometry and width')
  }
  const polygons = input.coordinates
  const malformed = tooMany(polygons, 3) ?? listError('/coordinates', polygons, 1, 'polygons')
  return malformed ?? firstError(polygons as unknown[], polygonError, '/coordinates')
}

const circleError = ({ center, radius }: Record<string, unknown>): ShapeError | undefined => {
  if (!isObject(center)) return error('/center', 'must be {lat, lng}')
  return (
    degreesError('/center/lat', center.lat, 90) ??
    degreesError('/center/lng', center.lng, 180) ??
    metersError('/radius', radius, RADIUS_METERS_MAX)
  )
}

const corridorError = ({ geometry, width }: Record<string, unknown>): ShapeError | undefined => {
  if (!isObject(geometry) || geometry.type !== 'LineString') return error('/geometry/type', 'must be LineString')
  const path = '/geometry/coordinates'
  return (
    tooMany(geometry.coordinates, 1) ??
    listError(path, geometry.coordinates, 2, 'positions') ??
    firstError(geometry.coordinates as unknown[], positionError, path) ??
    lengthError(path, geometry.coordinates as Position[]) ??
    metersError('/width', width, WIDTH_METERS_MAX)
  )
}

const lengthError = (path: string, positions: Position[]): ShapeError | undefined => {
  const kept = ringOf(positions)
  return kept.some((degrees, i) => (degrees - kept[i % 2]!) % TURN_E7 !== 0)
    ? undefined
    : error(path, 'must hold two positions that differ: a corridor has a length; for a place give center and radius')
}

const polygonError = (path: string, coordinates: unknown): ShapeError | undefined => {
  const malformed =
    listError(path, coordinates, 1, 'rings') ?? firstError(coordinates as unknown[], ringFormError, path)
  if (malformed) return malformed
  const rings = (coordinates as Position[][]).map(ringOf)
  const polygons = rings.map((ring) => makePolygon([ring], AROUND_TWICE_E7))
  return (
    firstError(polygons, crossingError, path) ??
    firstError(polygons, areaError, path) ??
    firstError(rings.slice(1), (at, hole) => holeError(at, hole, polygons[0]!), path, 1)
  )
}

const ringFormError = (path: string, ring: unknown): ShapeError | undefined => {
  const malformed = listError(path, ring, 4, 'positions') ?? firstError(ring as unknown[], positionError, path)
  if (malformed) return malformed
  const [first, last] = [(ring as Position[])[0]!, (ring as Position[]).at(-1)!]
  return first[0] === last[0] && first[1] === last[1]
    ? undefined
    : error(path, 'must be closed: its last position must equal its first')
}

const crossingError = (path: string, polygon: Polygon): ShapeError | undefined => {
  const near = properCrossing(polygon)
  return near && error(path, `must not cross itself: an edge at ${place(near[0], near[1])} does`)
}

const areaError = (path: string, polygon: Polygon): ShapeError | undefined =>
  enclosesArea(polygon) ? undefined : error(path, 'must enclose an area')

// Rings that cross the antimeridian are judged unwrapped, an edge at most half a turn beyond ±180°, so their edges are
// there as far as one turn and a half.
const AROUND_TWICE_E7 = 3 * LNG_MAX_E7

/**
 * An edge of a hole that crosses no edge of the ring properly changes sides at most where a vertex of the ring lies on
 * it: it is cut there, and the middle of each piece tells its side.
 */
const holeError = (path: string, hole: Ring, ring: Polygon): ShapeError | undefined => {
  const { coords, starts } = makePolygon([hole])
  for (let p = 1; p < starts.length; p++) {
    for (let i = starts[p - 1]! * 2; i < starts[p]! * 2 - 2; i += 2) {
      const [ax, ay, bx, by] = [coords[i]!, coords[i + 1]!, coords[i + 2]!, coords[i + 3]!]
      if (edgeLeaves(ring, ax, ay, bx, by))
        return error(path, `must lie inside the outer ring: an edge at ${place(ax, ay)} does not`)
    }
  }
  return undefined
}

const edgeLeaves = (ring: Polygon, ax: number, ay: number, bx: number, by: number): boolean => {
  let crosses = false
  const cuts: [x: number, y: number][] = [
    [ax, ay],
    [bx, by],
  ]
  const { coords } = ring
  forEachEdgeIn(ring, Math.min(ax, bx), Math.min(ay, by), Math.max(ax, bx), Math.max(ay, by), (edge) => {
    const [cx, cy, dx, dy] = [coords[edge * 2]!, coords[edge * 2 + 1]!, coords[edge * 2 + 2]!, coords[edge * 2 + 3]!]
    crosses ||= edgesCross(ax, ay, bx, by, cx, cy, dx, dy)
    if (onEdge(ax, ay, bx, by, cx, cy)) cuts.push([cx, cy])
    if (onEdge(ax, ay, bx, by, dx, dy)) cuts.push([dx, dy])
  })
  if (crosses) return true
  cuts.sort(([px, py], [qx, qy]) => px - qx || py - qy)
  // Twice a coordinate is an integer that a double holds, so the middle is exact.
  return cuts.some(([x, y], i) => i > 0 && !holds(ring, (cuts[i - 1]![0] + x) / 2, (cuts[i - 1]![1] + y) / 2))
}

const holds = (ring: Polygon, x: number, y: number): boolean => polygonContains(ring, ring.wide ? wrapLngE7(x) : x, y)

const positionError = (path: string, position: unknown): ShapeError | undefined => {
  if (!Array.isArray(position) || position.length < 2) return error(path, 'must be a position: [longitude, latitude]')
  if (!position.every((number) => Number.isFinite(number))) return error(path, 'must hold finite numbers')
  return degreesError(`${path}/0`, position[0], 180) ?? degreesError(`${path}/1`, position[1], 90)
}

const degreesError = (path: string, value: unknown, max: number): ShapeError | undefined => {
  if (!Number.isFinite(value)) return error(path, 'must be a finite number')
  return Math.abs(value as number) <= max ? undefined : error(path, `must be between -${max} and ${max}`)
}

const metersError = (path: string, value: unknown, max: number): ShapeError | undefined => {
  if (!Number.isFinite(value)) return error(path, 'must be a number of metres')
  return (value as number) > 0 && (value as number) <= max
    ? undefined
    : error(path, `must be over 0 and at most ${max} metres`)
}

const listError = (path: string, value: unknown, min: number, of: string): ShapeError | undefined => {
  if (!Array.isArray(value)) return error(path, `must be an array of ${of}`)
  return value.length >= min ? undefined : error(path, `must hold at least ${min} ${of}`)
}

/** Counted before any other check. */
const tooMany = (coordinates: unknown, depth: number): ShapeError | undefined =>
  countPositions(coordinates, depth) > POSITIONS_MAX
    ? error('', `must not have over ${POSITIONS_MAX} positions`)
    : undefined

const countPositions = (value: unknown, depth: number): number => {
  if (!Array.isArray(value)) return 0
  return depth === 1 ? value.length : value.reduce<number>((sum, item) => sum + countPositions(item, depth - 1), 0)
}

const firstError = <T>(
  items: readonly T[],
  check: (path: string, item: T) => ShapeError | undefined,
  path: string,
  offset = 0,
): ShapeError | undefined => {
  for (let i = 0; i < items.length; i++) {
    const found = check(`${path}/${i + offset}`, items[i]!)
    if (found) return found
  }
  return undefined
}

const error = (path: string, message: string): ShapeError => ({ path, message })

const place = (lngE7: number, latE7: number): string => `${fromE7(wrapLngE7(lngE7))}, ${fromE7(latE7)}`

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
