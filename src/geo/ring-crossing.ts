import { LAT_MAX_E7 } from './coordinates.ts'
import { onEdge, orientation } from './orientation.ts'
import { forEachEdgeIn, type Polygon } from './polygon.ts'

/**
 * Do any two edges cross properly, at a point inside both? Shamos–Hoey: a line sweeps from west to east over the edges under
 * it, in order from south to north, and tests those that become neighbours. Until the first crossing that order holds, also
 * where edges touch or lie on each other, since edges that end at a vertex leave before others begin there. Exact.
 * Answers a vertex of one of the two edges, longitude and latitude in E7.
 */
export const properCrossing = (polygon: Polygon): readonly [lngE7: number, latE7: number] | undefined => {
  const edges = sweepEdges(polygon)
  const order = new Int32Array(edges.total)
  let size = 0
  const crosses = (lower: number): boolean =>
    lower >= 0 && lower + 1 < size && cross(edges, order[lower]!, order[lower + 1]!)
  for (const event of edges.events) {
    const edge = event >> 1
    if ((event & 1) === LEAVE) {
      const at = placeOf(edges, order, size, edge)
      order.copyWithin(at, at + 1, size--)
      if (crosses(at - 1)) return [edges.rightX[edge]!, edges.rightY[edge]!]
    } else {
      const at = placeFor(edges, order, size, edge)
      order.copyWithin(at + 1, at, size++)
      order[at] = edge
      if (crosses(at - 1) || crosses(at)) return [edges.leftX[edge]!, edges.leftY[edge]!]
    }
  }
  return undefined
}

/** Do two edges cross at a point inside both? */
export const edgesCross = (
  ax: number,
  ay: number,
  bx: number,
  by: number,
  cx: number,
  cy: number,
  dx: number,
  dy: number,
): boolean =>
  opposite(orientation(ax, ay, bx, by, cx, cy), orientation(ax, ay, bx, by, dx, dy)) &&
  opposite(orientation(cx, cy, dx, dy, ax, ay), orientation(cx, cy, dx, dy, bx, by))

const LEAVE = 0
const ENTER = 1

type SweepEdges = {
  total: number
  leftX: Float64Array
  leftY: Float64Array
  rightX: Float64Array
  rightY: Float64Array
  /** Edge * 2 + (LEAVE | ENTER), by place from west to east, then south to north, leaving before entering. */
  events: Int32Array
}

const sweepEdges = ({ coords, starts, edgesTotal }: Polygon): SweepEdges => {
  const leftX = new Float64Array(edgesTotal)
  const leftY = new Float64Array(edgesTotal)
  const rightX = new Float64Array(edgesTotal)
  const rightY = new Float64Array(edgesTotal)
  let total = 0
  for (let path = 1; path < starts.length; path++) {
    for (let i = starts[path - 1]! * 2; i < starts[path]! * 2 - 2; i += 2) {
      const [ax, ay, bx, by] = [coords[i]!, coords[i + 1]!, coords[i + 2]!, coords[i + 3]!]
      if (ax === bx && ay === by) continue
      const forward = ax < bx || (ax === bx && ay < by)
      leftX[total] = forward ? ax : bx
      leftY[total] = forward ? ay : by
      rightX[total] = forward ? bx : ax
      rightY[total++] = forward ? by : ay
    }
  }
  const x = (event: number) => ((event & 1) === ENTER ? leftX : rightX)[event >> 1]!
  const y = (event: number) => ((event & 1) === ENTER ? leftY : rightY)[event >> 1]!
  const events = Int32Array.from({ length: total * 2 }, (_, i) => i).sort(
    (p, q) => x(p) - x(q) || y(p) - y(q) || (p & 1) - (q & 1),
  )
  return { total, leftX, leftY, rightX, rightY, events }
}

/** Side of an edge on which a point lies: > 0 to its north. */
const side = (edges: SweepEdges, edge: number, x: number, y: number): number =>
  orientation(edges.leftX[edge]!, edges.leftY[edge]!, edges.rightX[edge]!, edges.rightY[edge]!, x, y)

const placeFor = (edges: SweepEdges, order: Int32Array, size: number, edge: number): number => {
  let low = 0
  let high = size
  while (low < high) {
    const middle = (low + high) >> 1
    const start = side(edges, order[middle]!, edges.leftX[edge]!, edges.leftY[edge]!)
    const above = start !== 0 ? start > 0 : side(edges, order[middle]!, edges.rightX[edge]!, edges.rightY[edge]!) >= 0
    if (above) low = middle + 1
    else high = middle
  }
  return low
}

const placeOf = (edges: SweepEdges, order: Int32Array, size: number, edge: number): number => {
  let low = 0
  let high = size
  while (low < high) {
    const middle = (low + high) >> 1
    if (side(edges, order[middle]!, edges.rightX[edge]!, edges.rightY[edge]!) > 0) low = middle + 1
    else high = middle
  }
  return order.indexOf(edge, low)
}

const cross = (edges: SweepEdges, a: number, b: number): boolean =>
  edgesCross(
    edges.leftX[a]!,
    edges.leftY[a]!,
    edges.rightX[a]!,
    edges.rightY[a]!,
    edges.leftX[b]!,
    edges.leftY[b]!,
    edges.rightX[b]!,
    edges.rightY[b]!,
  )

const opposite = (a: number, b: number): boolean => (a > 0 && b < 0) || (a < 0 && b > 0)

/**
 * Does a ring that nowhere crosses itself enclose anything, by the even-odd rule? One meridian decides it for nearly
 * every ring; for slivers, and for rings that run back along themselves, their edges do.
 */
export const enclosesArea = (ring: Polygon): boolean => isInsideOnMeridian(ring) || hasOddStretch(ring)

/** Crossings of a meridian this far apart are certainly two: a double loses less. */
const APART_E7 = 1

/** Looks along the meridian through the middle, half a unit beside every vertex. */
const isInsideOnMeridian = (ring: Polygon): boolean => {
  const { boxes } = ring
  const lng = Math.floor((boxes[0]! + boxes[2]!) / 2) + 0.5
  let inside = ring.north
  let from = LAT_MAX_E7
  for (const lat of crossings(ring, lng).sort((a, b) => b - a)) {
    if (inside && from - lat > APART_E7) return true
    inside = !inside
    from = lat
  }
  return inside && from + LAT_MAX_E7 > APART_E7
}

const crossings = ({ coords, starts }: Polygon, lng: number): number[] => {
  const lats: number[] = []
  for (let path = 1; path < starts.length; path++) {
    for (let i = starts[path - 1]! * 2; i < starts[path]! * 2 - 2; i += 2) {
      const [ax, ay, bx, by] = [coords[i]!, coords[i + 1]!, coords[i + 2]!, coords[i + 3]!]
      if (ax < lng !== bx < lng) lats.push(ay + ((by - ay) * (lng - ax)) / (bx - ax))
    }
  }
  return lats
}

/** Exact: cuts each edge at vertices on it. A stretch run an odd number of times has the inside on one side. */
const hasOddStretch = (ring: Polygon): boolean => {
  const odd = new Set<string>()
  const { coords, starts } = ring
  for (let path = 1; path < starts.length; path++) {
    for (let i = starts[path - 1]! * 2; i < starts[path]! * 2 - 2; i += 2) {
      const cuts = cutsOf(ring, coords[i]!, coords[i + 1]!, coords[i + 2]!, coords[i + 3]!)
      for (let k = 1; k < cuts.length; k++) {
        const [[px, py], [qx, qy]] = [cuts[k - 1]!, cuts[k]!]
        const stretch = `${px},${py},${qx},${qy}`
        if ((px !== qx || py !== qy) && !odd.delete(stretch)) odd.add(stretch)
      }
    }
  }
  return odd.size > 0
}

/** The ends of an edge and the vertices that lie on it, from one end to the other. */
const cutsOf = (ring: Polygon, ax: number, ay: number, bx: number, by: number): [x: number, y: number][] => {
  const cuts: [x: number, y: number][] = [
    [ax, ay],
    [bx, by],
  ]
  const { coords } = ring
  forEachEdgeIn(ring, Math.min(ax, bx), Math.min(ay, by), Math.max(ax, bx), Math.max(ay, by), (edge) => {
    for (const at of [edge * 2, edge * 2 + 2])
      if (onEdge(ax, ay, bx, by, coords[at]!, coords[at + 1]!)) cuts.push([coords[at]!, coords[at + 1]!])
  })
  return cuts.sort(([px, py], [qx, qy]) => px - qx || py - qy)
}
