import { FenceSets } from './fence-sets.ts'
import { FenceStore } from './fence-store.ts'
import { FenceEditing } from './fence-editing.ts'
import { growLeaf } from './leaf-growth.ts'
import { locateIn, safeBoxIn } from './leaf.ts'
import { shapeContains } from './contains.ts'
import { LeafPool, ROOT_SHIFT, rootWithout, slotAt, takeNode, VISITS } from './leaf-pool.ts'
import { splitLeaf } from './leaf-split.ts'
import type { Shape } from './shape.ts'

/** `fence`: an integer from 0 to 2^31 - 1 chosen by the caller; adding an existing one replaces its shape. */
export type FenceEdit = {
  readonly remove?: readonly number[]
  readonly add?: readonly { readonly fence: number; readonly shape: Shape }[]
}

export type FenceIndexOptions = {
  /** Leaves are dropped, and made again on demand, when those of a version take more (default 128 MiB). */
  readonly leafBytesMax?: number
}

const LEAF_BYTES_MAX = 128 * 1024 * 1024
const ITEMS_BURIED_AT_RELEASE = 256
const ITEMS_BURIED_AT_LEAF = 8

/** State shared by the versions of one index beside the fences. */
type Line = { newest: number; editing: boolean; readonly leafIntsMax: number }

type State = {
  readonly changedBoxes: Int32Array
  readonly fencesTotal: number
  readonly store: FenceStore
  readonly sets: FenceSets
  readonly version: number
  readonly line: Line
  pool: LeafPool
  root: number
}

/**
 * Which of many fences hold a position? One immutable version of the fences; `with` makes the next. Its leaves are made on first
 * use: see `LeafPool`. Positions are E7, within ±180° and ±90°.
 */
export class FenceIndex {
  readonly #state: State

  private constructor(state: State) {
    this.#state = state
    state.store.use(state.version)
    state.line.newest = state.version
  }

  static empty({ leafBytesMax = LEAF_BYTES_MAX }: FenceIndexOptions = {}): FenceIndex {
    const line = { newest: 0, editing: false, leafIntsMax: leafBytesMax / 4 }
    const nothing = { changedBoxes: new Int32Array(0), fencesTotal: 0, version: 0 }
    return new FenceIndex({ ...nothing, line, store: new FenceStore(), sets: new FenceSets(), ...noLeaves() })
  }

  /** Boxes in which answers may differ from the version before: west, south, east, north in turn, none across ±180°. */
  get changedBoxes(): Int32Array {
    return this.#state.changedBoxes
  }

  get fencesTotal(): number {
    return this.#state.fencesTotal
  }

  /** The set of the fences that hold the position, boundary included; 0 for none. */
  locate(lngE7: number, latE7: number): number {
    const leaf = this.#leafAt(lngE7, latE7)
    return locateIn(this.#state.pool, this.#state.sets, leaf, lngE7, latE7)
  }

  /**
   * As `locate`; writes a box around the position within which the answer is the same to boxes[4 * slot..]: west, south, east,
   * north, sides included. Ask again only where a position is outside of it, or a later version changed something there.
   */
  locateSafe(lngE7: number, latE7: number, boxes: Int32Array, slot: number): number {
    const leaf = this.#leafAt(lngE7, latE7)
    safeBoxIn(this.#state.pool, leaf, lngE7, latE7, boxes, slot * 4)
    return locateIn(this.#state.pool, this.#state.sets, leaf, lngE7, latE7)
  }

  /** Does that one fence of this version hold the position? False for a missing fence. */
  contains(fence: number, lngE7: number, latE7: number): boolean {
    const shape = this.#state.store.shape(fence, this.#state.version)
    return shape !== undefined && shapeContains(shape, lngE7, latE7)
  }

  shape(fence: number): Shape | undefined {
    return this.#state.store.shape(fence, this.#state.version)
  }

  /** The fences of a set, rising. Ids mean the same in all versions since `compacted`. */
  members(set: number): readonly number[] {
    return this.#state.sets.members(set)
  }

  /** The id of a set, e.g. one that was stored as its members; in any order. */
  setOf(fences: Iterable<number>): number {
    return this.#state.sets.of([...new Set(fences)].sort((a, b) => a - b))
  }

  /** Number of different sets that have had an id so far; `compacted` starts over. */
  get setsTotal(): number {
    return this.#state.sets.total
  }

  /**
   * The next version, from the newest one (else throws). This one stays usable until `release`. Parts apart from the
   * edit are shared; the edit costs in proportion to itself.
   */
  with(edit: FenceEdit): FenceIndex {
    const slices = this.withSlices(edit)
    for (;;) {
      const slice = slices.next()
      if (slice.done) return slice.value
    }
  }

  /**
   * As `with`, for large edits: a generator that yields about every two milliseconds. Other versions answer meanwhile,
   * another edit cannot begin. Left early (`return`), nothing has changed.
   */
  *withSlices({ remove = [], add = [] }: FenceEdit): Generator<undefined, FenceIndex> {
    const { store, version, fencesTotal } = this.#begin()
    const editing = new FenceEditing(store, version + 1)
    try {
      for (const fence of remove) if (editing.remove(fence)) yield
      for (const { fence, shape } of add) if (editing.add(fence, shape)) yield
      const changedBoxes = editing.finish()
      return this.#next({
        changedBoxes,
        fencesTotal: fencesTotal + editing.fencesGained,
        ...this.#leavesApartFrom(changedBoxes),
      })
    } finally {
      editing.undoUnlessFinished()
      this.#state.line.editing = false
    }
  }

  /**
   * The next version, with the same fences and set ids that start over: when `setsTotal` has grown far beyond the ids
   * in use. Users that move to it turn each id they hold into `next.setOf(previous.members(id))`.
   */
  compacted(): FenceIndex {
    this.#begin()
    this.#state.line.editing = false
    return this.#next({ changedBoxes: new Int32Array(0), sets: new FenceSets(), ...noLeaves() })
  }

  /** This version is no longer used: data that only it needs may be forgotten. */
  release(): void {
    const { store, version } = this.#state
    store.release(version)
    store.bury(ITEMS_BURIED_AT_RELEASE)
  }

  #begin(): State {
    const { line, version } = this.#state
    if (version !== line.newest)
      throw new Error(`only the newest version can be edited: this is ${version}, not ${line.newest}`)
    if (line.editing) throw new Error('another edit of this index is under way')
    line.editing = true
    return this.#state
  }

  #next(changes: Partial<State>): FenceIndex {
    return new FenceIndex({ ...this.#state, version: this.#state.version + 1, ...changes })
  }

  #leavesApartFrom(changedBoxes: Int32Array): Pick<State, 'pool' | 'root'> {
    const { pool, root } = this.#state
    return { pool, root: rootWithout(pool, root, changedBoxes) }
  }

  #leafAt(lngE7: number, latE7: number): number {
    const { root, pool } = this.#state
    const { ints } = pool
    let node = root
    for (let shift = ROOT_SHIFT; ; shift -= 2) {
      const child = ints[node + slotAt(lngE7, latE7, shift)]!
      if (child > 0) {
        node = child
        continue
      }
      if (child === 0) return this.#grow(node, shift, lngE7, latE7)
      const visits = ints[VISITS - child]!
      if (visits < 0) return -child
      if (visits === 0) return this.#split(node, shift, -child, lngE7, latE7)
      ints[VISITS - child] = visits - 1
      return -child
    }
  }

  #grow(node: number, shift: number, lngE7: number, latE7: number): number {
    const state = this.#state
    state.store.bury(ITEMS_BURIED_AT_LEAF)
    if (state.pool.used <= state.line.leafIntsMax) return growLeaf(state, node, shift, lngE7, latE7)
    Object.assign(state, noLeaves())
    return growLeaf(state, state.root, ROOT_SHIFT, lngE7, latE7)
  }

  #split(node: number, shift: number, leaf: number, lngE7: number, latE7: number): number {
    const { pool, sets, line } = this.#state
    if (pool.used > line.leafIntsMax) Object.assign(this.#state, noLeaves())
    else splitLeaf(pool, sets, node, shift, leaf)
    return this.#leafAt(lngE7, latE7)
  }
}

const noLeaves = (): Pick<State, 'pool' | 'root'> => {
  const pool = new LeafPool()
  return { pool, root: takeNode(pool) }
}
