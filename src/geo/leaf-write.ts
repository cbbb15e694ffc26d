import type { FenceSets } from './fence-sets.ts'
import type { Cell, Content, Cut } from './leaf-content.ts'
import { CENTRE_LAT, CENTRE_LNG, COVERS, ENTRIES, LEAF_HEAD, type LeafPool, VISITS } from './leaf-pool.ts'
import { orientation } from './orientation.ts'
import { polygonContains, type Polygon } from './polygon.ts'

/** A leaf with more edges to test is split, once it has been queried often enough to be worth it. */
const WORK_MAX = 8
const VISITS_TO_SPLIT = 2

/** Smaller leaves may have more work, so that fences along one border end the splitting, at the latest at 2.8 m. */
const WORK_MORE_PER_HALVING = 4
const WIDTH_OF_WORK_MAX = 14
export const WIDTH_MIN = 8

/** Small enough ones never: -1. */
export const visitsToSplit = (width: number, work: number): number => {
  const workMax = WORK_MAX + WORK_MORE_PER_HALVING * Math.max(0, WIDTH_OF_WORK_MAX - width)
  return width <= WIDTH_MIN || work <= workMax ? -1 : VISITS_TO_SPLIT
}

/** Writes the leaf of a cell of 2^width units to the pool, as `LeafPool` describes it, and answers its offset. */
export const writeLeaf = (
  pool: LeafPool,
  sets: FenceSets,
  cell: Cell,
  width: number,
  { cuts, covers, work }: Content,
): number => {
  const steps = stepsToClear(cell, cuts)
  const lng = cell.lng + Math.max(0, steps)
  const lat = cell.lat + Math.max(0, steps) ** 2
  const byEdges = (cut: Cut): boolean => steps >= 0 && cut.part.kind === 'polygon' && !cut.part.wide
  const leaf = pool.take(cuts.reduce((sum, cut) => sum + 2 + (byEdges(cut) ? cut.edges.length * 4 : 0), LEAF_HEAD))
  const { ints } = pool
  const covering = covers.length === 0 ? 0 : sets.of([...new Set(covers)].sort((a, b) => a - b))
  writeHead(ints, leaf, cell, lng, lat, covering, cuts.length, steps < 0 ? -1 : visitsToSplit(width, work))
  let at = leaf + LEAF_HEAD
  for (const cut of cuts) {
    ints[at] = cut.fence
    if (byEdges(cut)) at = writeEdges(ints, at + 1, cut.part as Polygon, cut.edges, lng, lat)
    else {
      ints[at + 1] = ~(pool.parts.push(cut.part) - 1)
      at += 2
    }
  }
  return leaf
}

export const writeHead = (
  ints: Int32Array,
  leaf: number,
  cell: Cell,
  lng: number,
  lat: number,
  covers: number,
  entries: number,
  visits: number,
): void => {
  ints[leaf] = cell.w
  ints[leaf + 1] = cell.s
  ints[leaf + 2] = cell.e
  ints[leaf + 3] = cell.n
  ints[leaf + CENTRE_LNG] = lng
  ints[leaf + CENTRE_LAT] = lat
  ints[leaf + COVERS] = covers
  ints[leaf + ENTRIES] = entries
  ints[leaf + VISITS] = visits
}

/** Writes an edge turned so that a position, which is not on its line, is to its left. */
export const writeEdge = (
  ints: Int32Array,
  at: number,
  ax: number,
  ay: number,
  bx: number,
  by: number,
  lng: number,
  lat: number,
): void => {
  const toLeft = orientation(ax, ay, bx, by, lng, lat) > 0
  ints[at] = toLeft ? ax : bx
  ints[at + 1] = toLeft ? ay : by
  ints[at + 2] = toLeft ? bx : ax
  ints[at + 3] = toLeft ? by : ay
}

/**
 * Candidates for the centre of a leaf are n steps east of its middle, and n squared north. They lie on a parabola,
 * which a line meets twice at most: sixteen do for seven edges for sure, and nearly always for any number.
 */
export const centresOf = (cell: Cell): number => Math.min(CENTRES_MAX, Math.ceil(Math.sqrt((cell.n - cell.lat) / 2)))

const CENTRES_MAX = 16

const writeEdges = (
  ints: Int32Array,
  at: number,
  polygon: Polygon,
  edges: readonly number[],
  lng: number,
  lat: number,
): number => {
  const { coords } = polygon
  ints[at++] = edges.length * 2 + (polygonContains(polygon, lng, lat) ? 1 : 0)
  for (let i = 0; i < edges.length; i++, at += 4) {
    const edge = edges[i]! * 2
    writeEdge(ints, at, coords[edge]!, coords[edge + 1]!, coords[edge + 2]!, coords[edge + 3]!, lng, lat)
  }
  return at
}

const stepsToClear = (cell: Cell, cuts: readonly Cut[]): number => {
  for (let i = 0, end = centresOf(cell); i < end; i++) if (isClear(cuts, cell.lng + i, cell.lat + i * i)) return i
  return -1
}

const isClear = (cuts: readonly Cut[], lng: number, lat: number): boolean => {
  for (let c = 0; c < cuts.length; c++) {
    const { part, edges } = cuts[c]!
    for (let i = 0; i < edges.length; i++) {
      const { coords } = part as Polygon
      const edge = edges[i]! * 2
      if (orientation(coords[edge]!, coords[edge + 1]!, coords[edge + 2]!, coords[edge + 3]!, lng, lat) === 0)
        return false
    }
  }
  return true
}
