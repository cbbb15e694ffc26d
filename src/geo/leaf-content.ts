import { LNG_MAX_E7 } from './coordinates.ts'
import { METERS_PER_E7 } from './distance.ts'
import type { FenceStore, Item } from './fence-store.ts'
import { SEGMENT_NUMBERS } from './great-circle.ts'
import { edgeMeetsBox, forEachEdgeIn, polygonContains, type Polygon } from './polygon.ts'
import { metersFrom, type Reach } from './reach.ts'
import { ROUNDING_METERS } from './safe-box.ts'
import type { Part } from './shape.ts'

/** A square of 2^width units: its closed box and its centre. */
export type Cell = Readonly<Record<'w' | 's' | 'e' | 'n' | 'lng' | 'lat', number>>

/** A part whose boundary may run through a cell, with the edges that do for a polygon. */
export type Cut = { readonly fence: number; readonly part: Part; readonly edges: readonly number[] }

/** Content of a cell: cuts, the fences that hold all of it, and the number of edges to test. */
export type Content = { readonly cuts: Cut[]; readonly covers: number[]; work: number }

/** Work of a circle, and of a corridor beside its segments, in edges. */
const REACH_WORK = 4

export const cellAt = (w: number, s: number, width: number): Cell => {
  const size = 2 ** width
  return { w, s, e: w + size - 1, n: s + size - 1, lng: w + size / 2, lat: s + size / 2 }
}

/** The content of a cell from the store; undefined as soon as it certainly has too much work. */
export const gather = (store: FenceStore, version: number, cell: Cell, workMax: number): Content | undefined => {
  const found: Item[] = []
  let sure = 0
  const { w, s, e, n } = cell
  const whole = store.search(version, w, s, e, n, (item) => {
    found.push(item)
    if (item.minX >= w && item.maxX <= e && item.minY >= s && item.maxY <= n) sure += workOf(item.part)
    return sure <= workMax
  })
  if (!whole) return undefined
  const content: Content = { cuts: [], covers: [], work: 0 }
  for (const { fence, part } of found) {
    // A part with two boxes may be found by both.
    if (part.boxes.length > 4 && content.cuts.some((cut) => cut.part === part && cut.fence === fence)) continue
    if (part.kind === 'reach') addReach(content, cell, fence, part)
    else {
      const edges: number[] = []
      forEachEdgeIn(part, w, s, e, n, (edge) => edges.push(edge))
      addPolygon(content, cell, fence, part, edges)
    }
  }
  return content
}

/** The content of a cell from that of a larger one around it. */
export const narrow = (larger: Content, cell: Cell): Content => {
  const content: Content = { cuts: [], covers: [...larger.covers], work: 0 }
  for (const { fence, part, edges } of larger.cuts) {
    if (part.kind === 'reach') addReach(content, cell, fence, part)
    else addPolygon(content, cell, fence, part, edgesWithin(part, edges, cell))
  }
  return content
}

const edgesWithin = ({ coords }: Polygon, edges: readonly number[], { w, s, e, n }: Cell): number[] => {
  const within: number[] = []
  for (let i = 0; i < edges.length; i++) if (edgeMeetsBox(coords, edges[i]! * 2, w, s, e, n)) within.push(edges[i]!)
  return within
}

const addPolygon = (content: Content, cell: Cell, fence: number, part: Polygon, edges: number[]): void => {
  content.work += edges.length
  if (edges.length > 0) content.cuts.push({ fence, part, edges })
  else if (polygonContains(part, withinTurn(cell.lng), cell.lat)) content.covers.push(fence)
}

/** Cells at the antimeridian reach beyond it, where a wide polygon does not have all its edges. */
export const withinTurn = (lngE7: number): number => Math.max(-LNG_MAX_E7, Math.min(LNG_MAX_E7, lngE7))

const addReach = (content: Content, cell: Cell, fence: number, part: Reach): void => {
  const holds = reachHolds(part, cell)
  if (holds === 'all') content.covers.push(fence)
  else if (holds === 'some') {
    content.cuts.push({ fence, part, edges: [] })
    content.work += workOf(part)
  }
}

/** Share of a cell within the reach. `some` is also possible for a cell near its boundary. */
export const reachHolds = (reach: Reach, cell: Cell): 'all' | 'some' | 'none' => {
  const inside = reach.meters - metersFrom(reach, cell.lng, cell.lat)
  // Nothing in the cell is farther from its centre than its corners are in units of latitude.
  const across = (cell.e - cell.lng + 1) * Math.SQRT2 * METERS_PER_E7 + ROUNDING_METERS
  return inside > across ? 'all' : inside < -across ? 'none' : 'some'
}

/** Work of a whole part, in edges. */
export const workOf = (part: Part): number =>
  part.kind === 'polygon' ? part.edgesTotal : REACH_WORK + part.segments.length / SEGMENT_NUMBERS
