import { LAT_MAX_E7 } from './coordinates.ts'
import { onEdge } from './orientation.ts'
import { forEachEdgeIn, type Polygon } from './polygon.ts'

/**
 * Does a ring that nowhere crosses itself enclose anything, by the even-odd rule? One meridian says so of nearly every
 * ring; of slivers, and of rings that run back along themselves, their edges say it.
 */
export const enclosesArea = (ring: Polygon): boolean => isInsideOnMeridian(ring) || hasOddStretch(ring)

/** So far apart, crossings of a meridian are certainly two: what a double loses is less. */
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

/** Exact: cuts each edge where a vertex lies on it. A stretch that is run an odd number of times has the inside on one side. */
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
