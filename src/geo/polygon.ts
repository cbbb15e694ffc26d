import { eastwardE7, LAT_MAX_E7, LNG_MAX_E7, TURN_E7, wrapLngE7 } from './coordinates.ts'
import { orientation } from './orientation.ts'
import { makeSlabs, slabAt, type Slabs } from './slabs.ts'

/** A ring as kept: longitude and latitude in turn, closed, in E7. */
export type Ring = readonly number[]

/**
 * The edges of one polygon, straight in longitude and latitude. Edge i runs from vertex i to vertex i + 1 of `coords`
 * (longitude, latitude in turn); paths begin at `starts`, the last of which is the end of all.
 *
 * A polygon that touches or crosses the antimeridian is `wide`: each of its edges is a path of its own, unwrapped, and
 * again a turn away where it reaches into -180..180 there too. So any longitude in -180..180 finds its edges.
 */
export type Polygon = {
  readonly kind: 'polygon'
  readonly coords: Int32Array | Float64Array
  readonly starts: Int32Array
  readonly edgesTotal: number
  readonly wide: boolean
  /** The north pole is inside: the parity of a point that has no edge to its north. */
  readonly north: boolean
  /** One box, or two on both sides of the antimeridian: west, south, east, north. */
  readonly boxes: Int32Array
  slabs: Slabs | undefined
}

const EDGES_WITHOUT_SLABS = 64

/**
 * A polygon from its rings (even-odd over all of them). A ring that goes round a pole holds the pole on its own side of
 * the equator. `reachE7`: longitude on both sides up to which a wide polygon has its edges.
 */
export const makePolygon = (rings: readonly Ring[], reachE7 = LNG_MAX_E7): Polygon => {
  const unwrapped = rings.map(unwrap)
  const wide = unwrapped.some((ring) => ring.turns !== 0 || ring.west <= -LNG_MAX_E7 || ring.east >= LNG_MAX_E7)
  const paths = wide ? unwrapped.flatMap((ring) => edgeCopies(ring.path, reachE7)) : unwrapped.map((ring) => ring.path)
  const coords = new (wide ? Float64Array : Int32Array)(paths.reduce((sum, path) => sum + path.length, 0))
  const starts = new Int32Array(paths.length + 1)
  paths.forEach((path, i) => {
    coords.set(path, starts[i]! * 2)
    starts[i + 1] = starts[i]! + path.length / 2
  })
  const odd = unwrapped.filter((ring) => ring.turns % 2 !== 0)
  const north = odd.filter((ring) => ring.latSum >= 0).length % 2 === 1
  const boxes = boxesOf(
    coords,
    wide,
    north,
    odd.some((ring) => ring.latSum < 0),
  )
  return {
    kind: 'polygon',
    coords,
    starts,
    edgesTotal: coords.length / 2 - paths.length,
    wide,
    north,
    boxes,
    slabs: undefined,
  }
}

/**
 * Inside or on an edge. Exact. By the parity of the edges that the meridian meets between the point and the north pole;
 * an edge holds its western end, not its eastern one.
 */
export const polygonContains = (polygon: Polygon, px: number, py: number): boolean => {
  let inside = polygon.north
  if (polygon.edgesTotal > EDGES_WITHOUT_SLABS) {
    const slabs = slabsOf(polygon)
    const slab = slabAt(slabs, px)
    for (let k = slabs.first[slab]!, end = slabs.first[slab + 1]!; k < end; k++) {
      const met = meets(polygon.coords, slabs.of[k]! * 2, px, py)
      if (met === TOUCHES) return true
      if (met === NORTH_OF_POINT) inside = !inside
    }
    return inside
  }
  for (let path = 1; path < polygon.starts.length; path++) {
    for (let i = polygon.starts[path - 1]! * 2, end = polygon.starts[path]! * 2 - 2; i < end; i += 2) {
      const met = meets(polygon.coords, i, px, py)
      if (met === TOUCHES) return true
      if (met === NORTH_OF_POINT) inside = !inside
    }
  }
  return inside
}

/** Calls back with each edge that may have a point in the closed box (never leaves one out; may give a few more). */
export const forEachEdgeIn = (
  polygon: Polygon,
  w: number,
  s: number,
  e: number,
  n: number,
  each: (edge: number) => void,
): void => {
  const { coords, starts } = polygon
  if (polygon.edgesTotal > EDGES_WITHOUT_SLABS) {
    const slabs = slabsOf(polygon)
    const from = slabAt(slabs, w)
    for (let slab = from, to = slabAt(slabs, e); slab <= to; slab++) {
      for (let k = slabs.first[slab]!, end = slabs.first[slab + 1]!; k < end; k++) {
        const edge = slabs.of[k]!
        // An edge in several slabs counts in the first of them only.
        const begins = slabAt(slabs, Math.min(coords[edge * 2]!, coords[edge * 2 + 2]!))
        if (slab === Math.max(begins, from) && edgeMeetsBox(coords, edge * 2, w, s, e, n)) each(edge)
      }
    }
    return
  }
  for (let path = 1; path < starts.length; path++) {
    for (let edge = starts[path - 1]!, end = starts[path]! - 1; edge < end; edge++) {
      if (edgeMeetsBox(coords, edge * 2, w, s, e, n)) each(edge)
    }
  }
}

/** May the edge whose ends are the two positions at coords[at..at + 3] have a point in the closed box? Never a false no. */
export const edgeMeetsBox = (
  coords: Int32Array | Float64Array,
  at: number,
  w: number,
  s: number,
  e: number,
  n: number,
): boolean => {
  const ax = coords[at]!
  const ay = coords[at + 1]!
  const bx = coords[at + 2]!
  const by = coords[at + 3]!
  if ((ax < w && bx < w) || (ax > e && bx > e) || (ay < s && by < s) || (ay > n && by > n)) return false
  const dx = bx - ax
  const dy = by - ay
  const left = dx * ((s + n) / 2 - ay)
  const right = dy * ((w + e) / 2 - ax)
  const reach = (Math.abs(dx) * (n - s) + Math.abs(dy) * (e - w)) / 2
  return Math.abs(left - right) - 1e-15 * (Math.abs(left) + Math.abs(right)) <= reach * (1 + 1e-15)
}

const MISSES = 0
const NORTH_OF_POINT = 1
const TOUCHES = 2

const meets = (coords: Int32Array | Float64Array, at: number, px: number, py: number): number => {
  const ax = coords[at]!
  const ay = coords[at + 1]!
  const bx = coords[at + 2]!
  const by = coords[at + 3]!
  const fromWest = ax <= px
  if (fromWest === bx <= px) {
    if (ax !== px && bx !== px) return MISSES
    if ((ax === px && ay === py) || (bx === px && by === py)) return TOUCHES
    return ax === bx && ay < py !== by < py ? TOUCHES : MISSES
  }
  if (ay < py && by < py) return MISSES
  if (ay > py && by > py) return NORTH_OF_POINT
  const side = orientation(ax, ay, bx, by, px, py)
  return side === 0 ? TOUCHES : side < 0 === fromWest ? NORTH_OF_POINT : MISSES
}

const slabsOf = (polygon: Polygon): Slabs => (polygon.slabs ??= edgeSlabs(polygon))

const edgeSlabs = ({ coords, starts, edgesTotal }: Polygon): Slabs => {
  const ids = new Int32Array(edgesTotal)
  const west = new Float64Array(edgesTotal)
  const east = new Float64Array(edgesTotal)
  let count = 0
  for (let path = 1; path < starts.length; path++) {
    for (let edge = starts[path - 1]!; edge < starts[path]! - 1; edge++, count++) {
      ids[count] = edge
      west[count] = Math.min(coords[edge * 2]!, coords[edge * 2 + 2]!)
      east[count] = Math.max(coords[edge * 2]!, coords[edge * 2 + 2]!)
    }
  }
  return makeSlabs(ids, west, east)
}

type Unwrapped = { path: number[]; turns: number; west: number; east: number; latSum: number }

/** The ring without jumps and without positions that repeat the one before. */
const unwrap = (ring: Ring): Unwrapped => {
  const path = [ring[0]!, ring[1]!]
  let west = ring[0]!
  let east = west
  let latSum = 0
  for (let i = 2; i < ring.length; i += 2) {
    const lng = path.at(-2)! + eastwardE7(ring[i - 2]!, ring[i - 1]!, ring[i]!, ring[i + 1]!)
    const lat = ring[i + 1]!
    latSum += lat
    west = Math.min(west, lng)
    east = Math.max(east, lng)
    if (lng !== path.at(-2) || lat !== path.at(-1)) path.push(lng, lat)
  }
  if (path.length === 2) path.push(path[0]!, path[1]!)
  return { path, turns: Math.round((path.at(-2)! - path[0]!) / TURN_E7), west, east, latSum }
}

/** Every edge as a path of two vertices, once for each turn at which it reaches into ±reachE7. */
const edgeCopies = (path: number[], reachE7: number): number[][] => {
  const copies: number[][] = []
  for (let i = 0; i + 3 < path.length; i += 2) {
    const home = wrapLngE7(path[i]!)
    const dx = path[i + 2]! - path[i]!
    const first = Math.ceil((-reachE7 - Math.max(home, home + dx)) / TURN_E7)
    const last = Math.floor((reachE7 - Math.min(home, home + dx)) / TURN_E7)
    for (let turn = first; turn <= last; turn++) {
      const lng = home + turn * TURN_E7
      copies.push([lng, path[i + 1]!, lng + dx, path[i + 3]!])
    }
  }
  return copies
}

const boxesOf = (coords: ArrayLike<number>, wide: boolean, north: boolean, south: boolean): Int32Array => {
  const east = [Infinity, Infinity, -Infinity, -Infinity]
  const west = [Infinity, Infinity, -Infinity, -Infinity]
  for (let i = 0; i < coords.length; i += wide ? 4 : 2) {
    const to = wide ? i + 2 : i
    const [w, e] = [Math.min(coords[i]!, coords[to]!), Math.max(coords[i]!, coords[to]!)]
    const [s, n] = [Math.min(coords[i + 1]!, coords[to + 1]!), Math.max(coords[i + 1]!, coords[to + 1]!)]
    if (!wide) extend(east, w, s, e, n)
    else {
      if (e >= 0 && w <= LNG_MAX_E7) extend(east, Math.max(0, w), s, Math.min(LNG_MAX_E7, e), n)
      if (w < 0 && e >= -LNG_MAX_E7) extend(west, Math.max(-LNG_MAX_E7, w), s, Math.min(0, e), n)
    }
  }
  const found = [east, west].filter((box) => box[0] !== Infinity)
  if (north || south)
    for (const box of found) extend(box, box[0]!, south ? -LAT_MAX_E7 : box[1]!, box[2]!, north ? LAT_MAX_E7 : box[3]!)
  return Int32Array.from(found.flat())
}

const extend = (box: number[], w: number, s: number, e: number, n: number): void => {
  box[0] = Math.min(box[0]!, w)
  box[1] = Math.min(box[1]!, s)
  box[2] = Math.max(box[2]!, e)
  box[3] = Math.max(box[3]!, n)
}
