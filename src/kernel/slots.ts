/** A power of two. */
const SHARDS = 64

/**
 * A small number for each id, the index of what is known of it in columns. In shards, since a Map that grows copies all of
 * its entries at once; a number that was released is given to another id.
 */
export class Slots {
  private readonly shards: (Map<string, number> | undefined)[] = Array.from({ length: SHARDS })
  private readonly ids: string[] = []
  private readonly free: number[] = []

  /** Above every slot that was ever given. */
  get size(): number {
    return this.ids.length
  }

  /** Undefined for an id without a slot. */
  get(id: string): number | undefined {
    return this.shards[shardOf(id)]?.get(id)
  }

  /** The slot of the id, which gets one here unless it has one. */
  of(id: string): number {
    const shard = (this.shards[shardOf(id)] ??= new Map())
    const known = shard.get(id)
    if (known !== undefined) return known
    const slot = this.free.pop() ?? this.ids.length
    this.ids[slot] = id
    shard.set(id, slot)
    return slot
  }

  /** The id that has, or had, the slot. */
  idOf(slot: number): string {
    return this.ids[slot]
  }

  release(slot: number): void {
    const id = this.ids[slot]
    this.shards[shardOf(id)]?.delete(id)
    this.ids[slot] = ''
    this.free.push(slot)
  }
}

/** By the last hexadecimal digits: those of all UUIDs are spread evenly. */
const shardOf = (id: string): number =>
  (digit(id.charCodeAt(id.length - 1)) | (digit(id.charCodeAt(id.length - 2)) << 4)) & (SHARDS - 1)

const digit = (code: number): number => (code + (code >> 6) * 9) & 15
