import type { FenceSets } from './fence-sets.ts'
import { insideByEdges } from './leaf.ts'
import { type Cell, cellAt, reachHolds, withinTurn, workOf } from './leaf-content.ts'
import {
  CENTRE_LAT,
  CENTRE_LNG,
  COVERS,
  ENTRIES,
  LEAF_HEAD,
  type LeafPool,
  slotAt,
  hangNode,
  VISITS,
} from './leaf-pool.ts'
import { centresOf, visitsToSplit, writeEdge, writeHead } from './leaf-write.ts'
import { orientation } from './orientation.ts'
import { edgeMeetsBox, forEachEdgeIn, polygonContains } from './polygon.ts'
import type { Part } from './shape.ts'

/**
 * Replaces a leaf under a node whose slots are 2^shift units wide by four leaves, one for each quarter. Their content
 * is derived from that of the leaf; of polygons only the edges in it are needed.
 */
export const splitLeaf = (pool: LeafPool, sets: FenceSets, node: number, shift: number, leaf: number): void => {
  const [w, s] = [pool.ints[leaf]!, pool.ints[leaf + 1]!]
  const width = 31 - Math.clz32(pool.ints[leaf + 2]! - w)
  // The width of the leaf is now width + 1, that of a quarter width.
  const quarters = [0, 1, 2, 3].map((i) => cellAt(w + (i >> 1) * 2 ** width, s + (i & 1) * 2 ** width, width))
  const leaves = quarters.map((cell) => writeQuarter(pool, sets, leaf, cell, width))
  if (leaves.includes(NONE)) {
    pool.ints[leaf + VISITS] = -1
    return
  }
  const slot = slotAt(w, s, shift)
  const below = width < shift ? hangNode(pool, node, slot) : node
  leaves.forEach((quarter, i) => {
    const at = below + slotAt(quarters[i]!.w, quarters[i]!.s, width < shift ? shift - 2 : shift)
    if (width < shift) for (const other of SQUARE) pool.ints[at + other] = -quarter
    else if (pool.ints[at] === -leaf || pool.ints[at] === 0) pool.ints[at] = -quarter
  })
}

const NONE = 0
const SQUARE = [0, 1, 4, 5]

/** The leaf of a quarter, or NONE if every centre tried was on the line of an edge. */
const writeQuarter = (pool: LeafPool, sets: FenceSets, from: number, cell: Cell, width: number): number => {
  const end = endOf(pool.ints, from)
  const steps = stepsToClear(pool.ints, from, cell)
  if (steps < 0) return NONE
  const lng = cell.lng + steps
  const lat = cell.lat + steps * steps
  // As large as the leaf itself at most; the rest is given back.
  const leaf = pool.take(end - from)
  const { ints } = pool
  const covers: number[] = []
  let entries = 0
  let work = 0
  let to = leaf + LEAF_HEAD
  for (let at = from + LEAF_HEAD; at < end; ) {
    const fence = ints[at]!
    const edges = ints[at + 1]!
    let here: number
    if (edges < 0) {
      here = workHere(pool.parts[~edges]!, cell)
      ints[to] = fence
      ints[to + 1] = edges
      if (here > 0) to += 2
      else if (here === ALL) covers.push(fence)
      at += 2
    } else {
      const next = at + 2 + (edges >> 1) * 4
      const inside = insideByEdges(
        ints,
        at + 2,
        next,
        (edges & 1) === 1,
        ints[from + CENTRE_LNG]!,
        ints[from + CENTRE_LAT]!,
        lng,
        lat,
      )
      const written = copyEdges(ints, at + 2, next, to + 2, cell, lng, lat)
      here = (written - to - 2) / 4
      ints[to] = fence
      ints[to + 1] = here * 2 + (inside ? 1 : 0)
      if (here > 0) to = written
      else if (inside) covers.push(fence)
      at = next
    }
    if (here > 0) {
      entries++
      work += here
    }
  }
  writeHead(
    ints,
    leaf,
    cell,
    lng,
    lat,
    sets.addAll(ints[from + COVERS]!, covers, covers.length),
    entries,
    visitsToSplit(width, work),
  )
  pool.used = to
  return leaf
}

/** The edges that may have a point in the cell, turned so that the position is to their left; answers their end. */
const copyEdges = (
  ints: Int32Array,
  from: number,
  end: number,
  to: number,
  cell: Cell,
  lng: number,
  lat: number,
): number => {
  for (let at = from; at < end; at += 4) {
    if (!edgeMeetsBox(ints, at, cell.w, cell.s, cell.e, cell.n)) continue
    writeEdge(ints, to, ints[at]!, ints[at + 1]!, ints[at + 2]!, ints[at + 3]!, lng, lat)
    to += 4
  }
  return to
}

const ALL = -1

/** The work of a part that is tested as a whole in a cell: 0 where it has no point of it, ALL where it holds it. */
const workHere = (part: Part, cell: Cell): number => {
  if (part.kind === 'reach') {
    const holds = reachHolds(part, cell)
    return holds === 'some' ? workOf(part) : holds === 'all' ? ALL : 0
  }
  let edges = 0
  forEachEdgeIn(part, cell.w, cell.s, cell.e, cell.n, () => edges++)
  return edges > 0 ? edges : polygonContains(part, withinTurn(cell.lng), cell.lat) ? ALL : 0
}

const endOf = (ints: Int32Array, leaf: number): number => {
  let at = leaf + LEAF_HEAD
  for (let left = ints[leaf + ENTRIES]!; left > 0; left--) at += ints[at + 1]! < 0 ? 2 : 2 + (ints[at + 1]! >> 1) * 4
  return at
}

const stepsToClear = (ints: Int32Array, leaf: number, cell: Cell): number => {
  for (let i = 0, end = centresOf(cell); i < end; i++) if (isClear(ints, leaf, cell.lng + i, cell.lat + i * i)) return i
  return -1
}

const isClear = (ints: Int32Array, leaf: number, lng: number, lat: number): boolean => {
  let at = leaf + LEAF_HEAD
  for (let left = ints[leaf + ENTRIES]!; left > 0; left--) {
    const edges = ints[at + 1]!
    at += 2
    for (const end = edges < 0 ? at : at + (edges >> 1) * 4; at < end; at += 4) {
      if (orientation(ints[at]!, ints[at + 1]!, ints[at + 2]!, ints[at + 3]!, lng, lat) === 0) return false
    }
  }
  return true
}
