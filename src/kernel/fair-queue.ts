/**
 * A bounded queue in which all sources take turns: one waiting item of each source is handed out after the other. When
 * full, an item of a source with few replaces the newest item of the source with the most.
 */
export class FairQueue<Item> {
  readonly itemsMax: number
  /** The source whose turn is next comes first. */
  private readonly bySource = new Map<string, Item[]>()
  private itemsHeld = 0

  constructor(itemsMax: number) {
    this.itemsMax = itemsMax
  }

  get length(): number {
    return this.itemsHeld
  }

  /** Answers the item that found no room: this one, or one that had to make way; undefined when there was room for all. */
  push(source: string, item: Item): Item | undefined {
    if (this.itemsHeld < this.itemsMax) {
      this.add(source, item)
      return undefined
    }
    const most = this.longest()
    const own = this.bySource.get(source)?.length ?? 0
    if (most.length <= own + 1) return item
    const evicted = most.pop()
    this.itemsHeld--
    this.add(source, item)
    return evicted
  }

  shift(): Item | undefined {
    const [next] = this.bySource
    if (next === undefined) return undefined
    const [source, items] = next
    const item = items.shift()
    this.itemsHeld--
    this.bySource.delete(source)
    if (items.length > 0) this.bySource.set(source, items)
    return item
  }

  private add(source: string, item: Item): void {
    const items = this.bySource.get(source)
    if (items === undefined) this.bySource.set(source, [item])
    else items.push(item)
    this.itemsHeld++
  }

  private longest(): Item[] {
    let most: Item[] = []
    for (const items of this.bySource.values()) if (items.length > most.length) most = items
    return most
  }
}
