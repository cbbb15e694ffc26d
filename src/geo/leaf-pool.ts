import type { Part } from './shape.ts'

/**
 * The quadtree of a fence index in one growing Int32Array. Nodes and leaves keep their meaning while they exist: a slot
 * only ever goes from empty to a leaf, and from a leaf to the result of its split. So versions of the index share
 * everything apart from their edits.
 *
 * A node is 16 slots, four by four, column by column from the west: 0 not made yet, > 0 the offset of a node, < 0 that of a
 * leaf, negated. A slot of the root is 2^30 units wide, a slot of its children 2^28, and so on. A leaf may fill four slots.
 *
 * A leaf is its closed box (west, south, east, north), its centre (any position in it that is on the line of no edge here),
 * the set of the fences that hold all of it, the number of entries, the visits until it is split (-1: never), and an entry
 * for each polygon or reach whose boundary may run through it:
 * - fence, count * 2 + (is the centre inside?), and `count` edges of four integers, turned so that the centre is to
 *   their left;
 * - or fence, ~(index in `parts`): a part that is tested as such.
 */
export class LeafPool {
  ints = new Int32Array(1024)
  used = 16
  readonly parts: Part[] = []

  /** The offset of `count` integers of any content. */
  take(count: number): number {
    const at = this.used
    this.used += count
    if (this.used > this.ints.length) {
      const grown = new Int32Array(Math.max(this.used, this.ints.length * 2))
      grown.set(this.ints)
      this.ints = grown
    }
    return at
  }
}

/** The offset of a new node in a slot. */
export const hangNode = (pool: LeafPool, node: number, slot: number): number => {
  const child = takeNode(pool)
  pool.ints[node + slot] = child
  return child
}

/** The offset of a node whose slots are empty. */
export const takeNode = (pool: LeafPool): number => {
  const node = pool.take(NODE_SLOTS)
  pool.ints.fill(0, node, node + NODE_SLOTS)
  return node
}

const NODE_SLOTS = 16
export const ROOT_SHIFT = 30

export const CENTRE_LNG = 4
export const CENTRE_LAT = 5
export const COVERS = 6
export const ENTRIES = 7
export const VISITS = 8
export const LEAF_HEAD = 9

/** The slot of a node, whose slots are 2^shift wide, that holds the position. */
export const slotAt = (lngE7: number, latE7: number, shift: number): number =>
  // The sign bit turned, an Int32 is its distance from the western or southern end of the root.
  ((((lngE7 ^ 0x80000000) >>> shift) & 3) << 2) | (((latE7 ^ 0x80000000) >>> shift) & 3)

/** The western or southern end of the cell of 2^shift units that holds the coordinate. */
export const cellStart = (e7: number, shift: number): number => (e7 >> shift) * 2 ** shift

/** A root without the leaves that meet any of the closed boxes: west, south, east, north of each in turn. */
export const rootWithout = (pool: LeafPool, root: number, boxes: Int32Array): number => {
  const end = -(2 ** 31)
  for (let i = 0; i < boxes.length; i += 4)
    root = copyWithout(pool, root, ROOT_SHIFT, end, end, boxes.subarray(i, i + 4))
  return root
}

/**
 * A copy of a node, whose slots are 2^shift wide from (west, south), without the leaves that meet the closed box; shares the
 * nodes that do not. Slots that are small beside the box go whole, so an edit costs at most some hundred nodes.
 */
const copyWithout = (
  pool: LeafPool,
  node: number,
  shift: number,
  west: number,
  south: number,
  box: ArrayLike<number>,
): number => {
  const copy = takeNode(pool)
  const size = 2 ** shift
  const small = size * 8 <= Math.max(box[2]! - box[0]!, box[3]! - box[1]!)
  for (let slot = 0; slot < NODE_SLOTS; slot++) {
    const child = pool.ints[node + slot]!
    const w = west + (slot >> 2) * size
    const s = south + (slot & 3) * size
    if (child < 0) {
      if (!leafMeets(pool.ints, -child, box)) pool.ints[copy + slot] = child
    } else if (child > 0) {
      const apart = w > box[2]! || w + size <= box[0]! || s > box[3]! || s + size <= box[1]!
      const kept = apart ? child : small || holds(box, w, s, size) ? 0 : copyWithout(pool, child, shift - 2, w, s, box)
      pool.ints[copy + slot] = kept
    }
  }
  return copy
}

const leafMeets = (ints: Int32Array, leaf: number, box: ArrayLike<number>): boolean =>
  ints[leaf]! <= box[2]! && ints[leaf + 2]! >= box[0]! && ints[leaf + 1]! <= box[3]! && ints[leaf + 3]! >= box[1]!

const holds = (box: ArrayLike<number>, w: number, s: number, size: number): boolean =>
  w >= box[0]! && s >= box[1]! && w + size <= box[2]! && s + size <= box[3]!
