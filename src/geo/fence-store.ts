import RBush from 'rbush'
import type { Part, Shape } from './shape.ts'

/** One box of one part of a fence, in the versions from `from` until before `until`. */
export type Item = {
  minX: number
  minY: number
  maxX: number
  maxY: number
  fence: number
  part: Part
  from: number
  until: number
}

type Entry = { shape: Shape; items: Item[]; from: number; until: number; older: Entry | undefined }
type Node = { leaf: boolean; children: (Node | Item)[]; minX: number; minY: number; maxX: number; maxY: number }

/** End version of a fence that nobody has removed. */
const ALWAYS = 0x3fffffff

/**
 * The fences of all versions in use, in one R-tree whose items name the versions in which they count. Items that no
 * version in use can see any more are buried bit by bit, as searches come upon them and by `bury`.
 */
export class FenceStore {
  readonly #tree = new RBush<Item>(16)
  readonly #entries = new Map<number, Entry>()
  readonly #inUse = new Set<number>()
  /** Ended items, in the order of the versions they ended with; those before `#buried` are done with. */
  #ended: Item[] = []
  #buried = 0

  use(version: number): void {
    this.#inUse.add(version)
  }

  release(version: number): void {
    this.#inUse.delete(version)
  }

  shape(fence: number, version: number): Shape | undefined {
    let entry = this.#entries.get(fence)
    while (entry !== undefined && entry.from > version) entry = entry.older
    return entry !== undefined && version < entry.until ? entry.shape : undefined
  }

  /** Adds a fence from that version on; an existing one must have been removed before. Answers its items. */
  add(fence: number, shape: Shape, version: number): readonly Item[] {
    const items = shape.parts.flatMap((part) => itemsOf(part, fence, version))
    for (const item of items) this.#tree.insert(item)
    const older = this.#entries.get(fence)
    if (older !== undefined) this.#prune(older)
    this.#entries.set(fence, { shape, items, from: version, until: ALWAYS, older })
    return items
  }

  /** Removes the fence from that version on. Answers its items, none for a missing fence. */
  remove(fence: number, version: number): readonly Item[] {
    const entry = this.#entries.get(fence)
    if (entry === undefined || entry.until !== ALWAYS) return []
    this.#end(entry, version)
    return entry.items
  }

  /** Undoes that version, the newest, as if it had never begun. */
  undo(version: number, added: Iterable<number>, removed: Iterable<number>): void {
    for (const fence of added) {
      const entry = this.#entries.get(fence)!
      this.#end(entry, version)
      if (entry.older === undefined) this.#entries.delete(fence)
      else this.#entries.set(fence, entry.older)
    }
    for (const fence of removed) this.#end(this.#entries.get(fence)!, ALWAYS)
  }

  /** Takes up to `itemsMax` items out of the tree that no version in use can see. */
  bury(itemsMax: number): void {
    if (this.#buried === this.#ended.length) return
    const oldest = this.#oldest()
    for (let i = 0; i < itemsMax && this.#buried < this.#ended.length; i++) {
      const item = this.#ended[this.#buried]!
      if (item.until > oldest && item.until !== ALWAYS && item.until !== item.from) return
      this.#buried++
      if (item.until === ALWAYS) continue
      this.#tree.remove(item)
      this.#forget(item.fence, oldest)
    }
    if (this.#buried * 2 > this.#ended.length) this.#dropBuried()
  }

  /**
   * Calls back with the items of a version whose box meets the closed box, until `each` answers false. Answers whether
   * it came to the end.
   */
  search(version: number, w: number, s: number, e: number, n: number, each: (item: Item) => boolean): boolean {
    const nodes: Node[] = [this.#tree.toJSON() as Node]
    for (let node = nodes.pop(); node !== undefined; node = nodes.pop()) {
      for (const child of node.children) {
        if (child.minX > e || child.maxX < w || child.minY > n || child.maxY < s) continue
        if (!node.leaf) nodes.push(child as Node)
        else if ((child as Item).from <= version && version < (child as Item).until && !each(child as Item))
          return false
      }
    }
    return true
  }

  #end(entry: Entry, version: number): void {
    entry.until = version
    for (const item of entry.items) {
      item.until = version
      if (version !== ALWAYS) this.#ended.push(item)
    }
  }

  #dropBuried(): void {
    this.#ended = this.#ended.slice(this.#buried)
    this.#buried = 0
  }

  #forget(fence: number, oldest: number): void {
    const entry = this.#entries.get(fence)
    if (entry === undefined) return
    if (entry.until <= oldest) this.#entries.delete(fence)
    else this.#prune(entry, oldest)
  }

  #prune(entry: Entry, oldest = this.#oldest()): void {
    while (entry.older !== undefined && entry.older.until > oldest) entry = entry.older
    entry.older = undefined
  }

  #oldest(): number {
    return Math.min(...this.#inUse)
  }
}

const itemsOf = (part: Part, fence: number, from: number): Item[] => {
  const items: Item[] = []
  for (let i = 0; i < part.boxes.length; i += 4) {
    const [minX, minY, maxX, maxY] = [part.boxes[i]!, part.boxes[i + 1]!, part.boxes[i + 2]!, part.boxes[i + 3]!]
    items.push({ minX, minY, maxX, maxY, fence, part, from, until: ALWAYS })
  }
  return items
}
