import type { FenceStore, Item } from './fence-store.ts'
import type { Shape } from './shape.ts'

/** Items that one slice of an edit adds or ends: about a millisecond. */
const ITEMS_PER_SLICE = 128

/** Number of boxes beyond which an edit reports the one box around all. */
const BOXES_MAX = 64

/** One edit of a store on the way to its next version. `add` and `remove` answer whether it is time to yield. */
export class FenceEditing {
  fencesGained = 0
  readonly #store: FenceStore
  readonly #version: number
  readonly #added = new Set<number>()
  readonly #removed: number[] = []
  #boxes: number[] = []
  #items = 0
  #finished = false

  constructor(store: FenceStore, version: number) {
    this.#store = store
    this.#version = version
  }

  add(fence: number, shape: Shape): boolean {
    if (this.#added.has(fence)) throw new Error(`fence ${fence} is added twice in one edit`)
    const paused = this.remove(fence)
    this.#added.add(fence)
    this.fencesGained++
    return this.#count(this.#store.add(fence, shape, this.#version)) || paused
  }

  remove(fence: number): boolean {
    const items = this.#store.remove(fence, this.#version)
    if (items.length === 0) return false
    this.#removed.push(fence)
    this.fencesGained--
    return this.#count(items)
  }

  /** The changed boxes: west, south, east, north of each in turn. */
  finish(): Int32Array {
    this.#finished = true
    return Int32Array.from(this.#boxes)
  }

  undoUnlessFinished(): void {
    if (!this.#finished) this.#store.undo(this.#version, this.#added, this.#removed)
  }

  #count(items: readonly Item[]): boolean {
    for (const { minX, minY, maxX, maxY } of items) this.#boxes.push(minX, minY, maxX, maxY)
    if (this.#boxes.length > 4 * BOXES_MAX) this.#boxes = around(this.#boxes)
    const before = this.#items
    this.#items += items.length
    if (Math.floor(before / ITEMS_PER_SLICE) === Math.floor(this.#items / ITEMS_PER_SLICE)) return false
    this.#store.bury(ITEMS_PER_SLICE)
    return true
  }
}

const around = (boxes: readonly number[]): number[] => {
  const box = boxes.slice(0, 4)
  for (let i = 4; i < boxes.length; i += 4) {
    for (let side = 0; side < 4; side++) box[side] = (side < 2 ? Math.min : Math.max)(box[side]!, boxes[i + side]!)
  }
  return box
}
