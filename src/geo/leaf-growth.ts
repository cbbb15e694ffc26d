import type { FenceSets } from './fence-sets.ts'
import type { FenceStore } from './fence-store.ts'
import { cellAt, type Content, gather, narrow } from './leaf-content.ts'
import { cellStart, type LeafPool, slotAt, hangNode } from './leaf-pool.ts'
import { WIDTH_MIN, writeLeaf } from './leaf-write.ts'

/** Most edges that a leaf begins with: fewer would cost more searching than they save where few positions come. */
const WORK_AT_FIRST = 64

type Versioned = {
  readonly pool: LeafPool
  readonly sets: FenceSets
  readonly store: FenceStore
  readonly version: number
}

/**
 * Makes the leaf that holds the position, and the nodes above it, under an empty slot of `node`, whose slots are 2^shift units
 * wide. Tries the square of four slots, then the slot, then the same in a node below, until there is little enough work.
 */
export const growLeaf = (
  { pool, sets, store, version }: Versioned,
  node: number,
  shift: number,
  lngE7: number,
  latE7: number,
): number => {
  let content: Content | undefined
  for (;;) {
    for (const width of [shift + 1, shift]) {
      const cell = cellAt(cellStart(lngE7, width), cellStart(latE7, width), width)
      const workMax = width === WIDTH_MIN ? Infinity : WORK_AT_FIRST
      content = content === undefined ? gather(store, version, cell, workMax) : narrow(content, cell)
      if (content === undefined || content.work > workMax) continue
      const leaf = writeLeaf(pool, sets, cell, width, content)
      if (width === shift) pool.ints[node + slotAt(lngE7, latE7, shift)] = -leaf
      else hangInSquare(pool.ints, leaf, node, slotAt(lngE7, latE7, shift))
      return leaf
    }
    node = hangNode(pool, node, slotAt(lngE7, latE7, shift))
    shift -= 2
  }
}

/** Hangs it into the empty ones of the square of four slots. */
const hangInSquare = (ints: Int32Array, leaf: number, node: number, slot: number): void => {
  for (const other of SQUARE) if (ints[node + (slot & ~5) + other] === 0) ints[node + (slot & ~5) + other] = -leaf
}

const SQUARE = [0, 1, 4, 5]
