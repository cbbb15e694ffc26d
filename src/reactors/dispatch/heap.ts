/** A binary heap: `pop` answers the item that `before` puts first. */
export class Heap<Item> {
  private items: Item[] = []
  private readonly before: (a: Item, b: Item) => boolean

  constructor(before: (a: Item, b: Item) => boolean) {
    this.before = before
  }

  get size(): number {
    return this.items.length
  }

  peek(): Item | undefined {
    return this.items[0]
  }

  push(item: Item): void {
    const { items, before } = this
    let at = items.push(item) - 1
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (!before(item, items[parent])) break
      items[at] = items[parent]
      at = parent
    }
    items[at] = item
  }

  pop(): Item | undefined {
    const first = this.items[0]
    const last = this.items.pop()
    if (this.items.length > 0 && last !== undefined) this.sink(last)
    return first
  }

  /** Takes out every item that `keep` refuses. */
  filter(keep: (item: Item) => boolean): void {
    const kept = this.items.filter(keep)
    this.items = []
    for (const item of kept) this.push(item)
  }

  [Symbol.iterator](): Iterator<Item> {
    return this.items[Symbol.iterator]()
  }

  private sink(item: Item): void {
    const { items, before } = this
    let at = 0
    for (;;) {
      let child = at * 2 + 1
      if (child >= items.length) break
      if (child + 1 < items.length && before(items[child + 1], items[child])) child++
      if (!before(items[child], item)) break
      items[at] = items[child]
      at = child
    }
    items[at] = item
  }
}
