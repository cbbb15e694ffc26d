import { LNG_MAX_E7 } from './coordinates.ts'
import type { FenceSets } from './fence-sets.ts'
import type { FenceStore, Item } from './fence-store.ts'
import { CENTRE_LAT, CENTRE_LNG, cellStart, COVERS, ENTRIES, LEAF_HEAD, type LeafPool, NODE_SLOTS, slotAt } from './leaf-pool.ts'
import { METERS_PER_E7 } from './distance.ts'
import { orientation } from './orientation.ts'
import { edgeMeetsBox, forEachEdgeIn, polygonContains, type Polygon } from './polygon.ts'
import { metersFrom, type Reach } from './reach.ts'
import { ROUNDING_METERS } from './safe-box.ts'
import { SEGMENT_NUMBERS } from './great-circle.ts'
import type { Part } from './shape.ts'

export type Grown = { pool: LeafPool; store: FenceStore; sets: FenceSets; version: number }

/** A leaf with work for more than so many edges is split, down to cells of 2^8 units (2.8 m). */
const WORK_MAX = 8
const SHIFT_MIN = 8

/** What a circle, and each segment of a corridor, is in edges. */
const REACH_WORK = 4

/** A part whose boundary may run through a cell, of a polygon the edges that do. */
type Cut = { fence: number; part: Part; edges: number[] }

type Cell = { w: number; s: number; e: number; n: number; lng: number; lat: number }
type Content = { cuts: Cut[]; covers: number[]; work: number }

/**
 * Makes the leaf that holds the position, and the nodes above it, under an empty slot of `node`. Tries the square of four slots,
 * then the slot, then the same in a node below, until the work in it is small. Answers the leaf's offset.
 */
export const growLeaf = (grown: Grown, node: number, shift: number, lngE7: number, latE7: number): number => {
  let content: Content | undefined
  for (;;) {
    for (const width of [shift + 1, shift]) {
      const cell = cellOf(lngE7, latE7, width)
      const smallest = width <= SHIFT_MIN
      content = content === undefined ? gather(grown, cell, smallest ? Infinity : WORK_MAX) : narrow(content, cell)
      if (content === undefined || (content.work > WORK_MAX && !smallest)) continue
      const leaf = writeLeaf(grown, cell, content)
      hang(grown.pool, node, shift, width, lngE7, latE7, leaf)
      return leaf
    }
    const child = grown.pool.take(NODE_SLOTS)
    grown.pool.ints[node + slotAt(lngE7, latE7, shift)] = child
    node = child
    shift -= 2
  }
}

const cellOf = (lngE7: number, latE7: number, shift: number): Cell => {
  const w = cellStart(lngE7, shift)
  const s = cellStart(latE7, shift)
  const size = 2 ** shift
  return { w, s, e: w + size - 1, n: s + size - 1, lng: w + size / 2, lat: s + size / 2 }
}

/** A leaf of one slot, or of the empty ones among its square of four. */
const hang = ({ ints }: LeafPool, node: number, shift: number, width: number, lngE7: number, latE7: number, leaf: number): void => {
  const slot = slotAt(lngE7, latE7, shift)
  if (width === shift) ints[node + slot] = -leaf
  else for (const at of [0, 1, 4, 5]) if (ints[node + (slot & ~5) + at] === 0) ints[node + (slot & ~5) + at] = -leaf
}

/** The content of a cell from the store; undefined as soon as it is sure that there is too much work in it. */
const gather = ({ store, version }: Grown, cell: Cell, workMax: number): Content | undefined => {
  const found: Item[] = []
  let sure = 0
  const { w, s, e, n } = cell
  const whole = store.search(version, w, s, e, n, item => {
    found.push(item)
    if (item.minX >= w && item.maxX <= e && item.minY >= s && item.maxY <= n) sure += fullWork(item.part)
    return sure <= workMax
  })
  if (!whole) return undefined
  const content: Content = { cuts: [], covers: [], work: 0 }
  for (const { fence, part } of found) {
    if (content.cuts.some(cut => cut.part === part)) continue
    if (part.kind === 'reach') addReach(content, cell, fence, part)
    else {
      const edges: number[] = []
      forEachEdgeIn(part, w, s, e, n, edge => edges.push(edge))
      addPolygon(content, cell, fence, part, edges)
    }
  }
  return content
}

/** The content of a cell from that of a larger one around it. */
const narrow = (larger: Content, cell: Cell): Content => {
  const content: Content = { cuts: [], covers: [...larger.covers], work: 0 }
  for (const { fence, part, edges } of larger.cuts) {
    if (part.kind === 'reach') addReach(content, cell, fence, part)
    else addPolygon(content, cell, fence, part, edges.filter(edge => edgeMeetsBox(part.coords, edge, cell.w, cell.s, cell.e, cell.n)))
  }
  return content
}

const addPolygon = (content: Content, cell: Cell, fence: number, part: Polygon, edges: number[]): void => {
  content.work += edges.length
  if (edges.length > 0) content.cuts.push({ fence, part, edges })
  else if (polygonContains(part, withinTurn(cell.lng), cell.lat)) content.covers.push(fence)
}

/** Cells at the antimeridian reach beyond it, where a wide polygon does not have all its edges. */
const withinTurn = (lngE7: number): number => Math.max(-LNG_MAX_E7, Math.min(LNG_MAX_E7, lngE7))

const addReach = (content: Content, cell: Cell, fence: number, part: Reach): void => {
  const inside = part.meters - metersFrom(part, cell.lng, cell.lat)
  // Nothing in the cell is farther from its centre than its corners are in units of latitude.
  const across = (cell.e - cell.lng + 1) * Math.SQRT2 * METERS_PER_E7 + ROUNDING_METERS
  if (inside > across) content.covers.push(fence)
  else if (inside >= -across) {
    content.cuts.push({ fence, part, edges: [] })
    content.work += fullWork(part)
  }
}

const fullWork = (part: Part): number => (part.kind === 'polygon' ? part.edgesTotal : REACH_WORK + part.segments.length / SEGMENT_NUMBERS)

const writeLeaf = ({ pool, sets }: Grown, cell: Cell, { cuts, covers }: Content): number => {
  const centre = clearCentre(cell, cuts)
  const byEdges = (cut: Cut): boolean => centre !== undefined && cut.part.kind === 'polygon' && !cut.part.wide
  const leaf = pool.take(cuts.reduce((sum, cut) => sum + 2 + (byEdges(cut) ? cut.edges.length * 4 : 0), LEAF_HEAD))
  const { ints } = pool
  ints.set([cell.w, cell.s, cell.e, cell.n], leaf)
  ints[leaf + CENTRE_LNG] = centre?.[0] ?? cell.lng
  ints[leaf + CENTRE_LAT] = centre?.[1] ?? cell.lat
  ints[leaf + COVERS] = sets.of([...new Set(covers)].sort((a, b) => a - b))
  ints[leaf + ENTRIES] = cuts.length
  let at = leaf + LEAF_HEAD
  for (const cut of cuts) {
    ints[at] = cut.fence
    if (byEdges(cut)) at = writeEdges(ints, at + 1, cut.part as Polygon, cut.edges, centre!)
    else {
      ints[at + 1] = ~(pool.parts.push(cut.part) - 1)
      at += 2
    }
  }
  return leaf
}

const writeEdges = (ints: Int32Array, at: number, polygon: Polygon, edges: readonly number[], [lng, lat]: readonly [number, number]): number => {
  const { coords } = polygon
  ints[at++] = edges.length * 2 + (polygonContains(polygon, lng, lat) ? 1 : 0)
  for (const edge of edges) {
    const [a, b] = [edge * 2, edge * 2 + 2]
    const toLeft = orientation(coords[a]!, coords[a + 1]!, coords[b]!, coords[b + 1]!, lng, lat) > 0
    const [from, to] = toLeft ? [a, b] : [b, a]
    ints[at++] = coords[from]!
    ints[at++] = coords[from + 1]!
    ints[at++] = coords[to]!
    ints[at++] = coords[to + 1]!
  }
  return at
}

/**
 * A point of the cell that is on the line of no edge in it. The candidates lie on a parabola, which a line meets twice at most:
 * sixteen of them do for seven edges for sure, and nearly always for any number; undefined where they do not.
 */
const clearCentre = (cell: Cell, cuts: readonly Cut[]): readonly [number, number] | undefined => {
  for (let i = 0; i * i < (cell.n - cell.lat) / 2 && i < CENTRES_MAX; i++) {
    const centre = [cell.lng + i, cell.lat + i * i] as const
    if (cuts.every(cut => cut.edges.every(edge => isClear(cut.part as Polygon, edge, centre)))) return centre
  }
  return undefined
}

const CENTRES_MAX = 16

const isClear = ({ coords }: Polygon, edge: number, [lng, lat]: readonly [number, number]): boolean =>
  orientation(coords[edge * 2]!, coords[edge * 2 + 1]!, coords[edge * 2 + 2]!, coords[edge * 2 + 3]!, lng, lat) !== 0
