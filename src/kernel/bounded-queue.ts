/** A first-in first-out queue with a maximum in items and in bytes. `push` answers false when full: the caller names the answer. */
export class BoundedQueue<Item> {
  readonly itemsMax: number
  readonly bytesMax: number
  private items: { item: Item; bytes: number }[] = []
  private head = 0
  private bytesHeld = 0

  constructor(itemsMax: number, bytesMax = Number.POSITIVE_INFINITY) {
    this.itemsMax = itemsMax
    this.bytesMax = bytesMax
  }

  get length(): number {
    return this.items.length - this.head
  }

  get bytes(): number {
    return this.bytesHeld
  }

  push(item: Item, bytes = 0): boolean {
    if (this.length >= this.itemsMax || this.bytesHeld + bytes > this.bytesMax) return false
    this.items.push({ item, bytes })
    this.bytesHeld += bytes
    return true
  }

  peek(): Item | undefined {
    return this.items[this.head]?.item
  }

  shift(): Item | undefined {
    const entry = this.items[this.head]
    if (entry === undefined) return undefined
    this.items[this.head++] = undefined as never
    this.bytesHeld -= entry.bytes
    // Moving the rest down only when half is spent keeps a shift constant on average.
    if (this.head > 64 && this.head * 2 > this.items.length) {
      this.items = this.items.slice(this.head)
      this.head = 0
    }
    return entry.item
  }
}
