/**
 * A map that forgets entries that were not read lately: it holds entries of at least the weight `least` and at most
 * twice as much. In two generations: a Map whose oldest entry is deleted again and again walks over all that were
 * deleted before.
 */
export class RecentMap<Key, Value> {
  private readonly least: number
  private readonly weightOf: (value: Value, key: Key) => number
  private readonly emptyMap: () => Entries<Key, Value>
  private recent: Entries<Key, Value>
  private former: Entries<Key, Value>
  private weight = 0

  /** Without `weightOf` each entry weighs one. A WeakMap as `emptyMap` also forgets entries that nobody else holds. */
  constructor(
    least: number,
    weightOf: (value: Value, key: Key) => number = () => 1,
    emptyMap: () => Entries<Key, Value> = () => new Map(),
  ) {
    this.least = least
    this.weightOf = weightOf
    this.emptyMap = emptyMap
    this.recent = emptyMap()
    this.former = emptyMap()
  }

  get(key: Key): Value | undefined {
    const value = this.recent.get(key)
    if (value !== undefined) return value
    const former = this.former.get(key)
    if (former !== undefined) this.set(key, former)
    return former
  }

  set(key: Key, value: Value): void {
    const before = this.recent.get(key)
    this.recent.set(key, value)
    this.weight += this.weightOf(value, key) - (before === undefined ? 0 : this.weightOf(before, key))
    if (this.weight < this.least) return
    this.former = this.recent
    this.recent = this.emptyMap()
    this.weight = 0
  }
}

interface Entries<Key, Value> {
  get(key: Key): Value | undefined
  set(key: Key, value: Value): unknown
}
