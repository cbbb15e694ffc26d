import { partContains } from './contains.ts'
import type { FenceSets } from './fence-sets.ts'
import { CENTRE_LAT, CENTRE_LNG, COVERS, ENTRIES, LEAF_HEAD, type LeafPool } from './leaf-pool.ts'
import { orientation } from './orientation.ts'
import { forEachEdgeIn } from './polygon.ts'
import { keepOffEdge, keepOffReach } from './safe-box.ts'

/** The set of the fences that hold a position of the leaf. */
export const locateIn = (pool: LeafPool, sets: FenceSets, leaf: number, lngE7: number, latE7: number): number => {
  const { ints } = pool
  let found = 0
  let at = leaf + LEAF_HEAD
  for (let left = ints[leaf + ENTRIES]!; left > 0; left--) {
    const fence = ints[at]!
    const edges = ints[at + 1]!
    at += 2
    if (edges < 0) {
      if (partContains(pool.parts[~edges]!, lngE7, latE7)) holding[found++] = fence
      continue
    }
    const end = at + (edges >> 1) * 4
    if (
      insideByEdges(ints, at, end, (edges & 1) === 1, ints[leaf + CENTRE_LNG]!, ints[leaf + CENTRE_LAT]!, lngE7, latE7)
    ) {
      holding[found++] = fence
    }
    at = end
  }
  return sets.addAll(ints[leaf + COVERS]!, holding, found)
}

/** The fences found by `locateIn`; kept from call to call, so that none makes garbage. */
const holding: number[] = []

/** Writes a box of the leaf that holds the position and nothing of any boundary. */
export const safeBoxIn = (
  pool: LeafPool,
  leaf: number,
  lngE7: number,
  latE7: number,
  boxes: Int32Array,
  slot: number,
): void => {
  const { ints } = pool
  for (let i = 0; i < 4; i++) boxes[slot + i] = ints[leaf + i]!
  let at = leaf + LEAF_HEAD
  for (let left = ints[leaf + ENTRIES]!; left > 0; left--) {
    const edges = ints[at + 1]!
    at += 2
    if (edges < 0) keepOffPart(pool, ~edges, lngE7, latE7, boxes, slot)
    else {
      for (const end = at + (edges >> 1) * 4; at < end; at += 4) {
        keepOffEdge(boxes, slot, lngE7, latE7, ints[at]!, ints[at + 1]!, ints[at + 2]!, ints[at + 3]!)
      }
    }
  }
}

/**
 * Inside or on an edge, by the parity of the edges between the point and the centre. The centre is to the left of every edge
 * and on the line of none. So an edge that the point is left of is not between them; one that it is right of is, where the
 * edge has its ends on both sides of the line through point and centre. An end on that line counts to the right of it, the
 * same for both edges that meet there.
 */
export const insideByEdges = (
  ints: Int32Array,
  at: number,
  end: number,
  centreInside: boolean,
  cx: number,
  cy: number,
  px: number,
  py: number,
): boolean => {
  let inside = centreInside
  for (; at < end; at += 4) {
    const ax = ints[at]!
    const ay = ints[at + 1]!
    const bx = ints[at + 2]!
    const by = ints[at + 3]!
    const side = orientation(ax, ay, bx, by, px, py)
    if (side > 0) continue
    if (side === 0) {
      if (px >= Math.min(ax, bx) && px <= Math.max(ax, bx) && py >= Math.min(ay, by) && py <= Math.max(ay, by))
        return true
    } else if (orientation(px, py, cx, cy, ax, ay) > 0 !== orientation(px, py, cx, cy, bx, by) > 0) inside = !inside
  }
  return inside
}

const keepOffPart = (pool: LeafPool, index: number, px: number, py: number, boxes: Int32Array, slot: number): void => {
  const part = pool.parts[index]!
  if (part.kind === 'reach') return keepOffReach(boxes, slot, px, py, part)
  const { coords } = part
  forEachEdgeIn(part, boxes[slot]!, boxes[slot + 1]!, boxes[slot + 2]!, boxes[slot + 3]!, (edge) => {
    keepOffEdge(
      boxes,
      slot,
      px,
      py,
      coords[edge * 2]!,
      coords[edge * 2 + 1]!,
      coords[edge * 2 + 2]!,
      coords[edge * 2 + 3]!,
    )
  })
}
