/**
 * A map that forgets what was not asked for lately: it holds entries of at least the weight `least` and at most twice
 * as much. In two generations: a Map whose oldest entry is deleted again and again walks over all that were deleted
 * before.
 */
export class RecentMap<Key, Value> {
  private readonly least: number
  private readonly weightOf: (value: Value) => number
  private recent = new Map<Key, Value>()
  private former = new Map<Key, Value>()
  private weight = 0

  /** Without `weightOf` each entry weighs one. */
  constructor(least: number, weightOf: (value: Value) => number = () => 1) {
    this.least = least
    this.weightOf = weightOf
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
    this.weight += this.weightOf(value) - (before === undefined ? 0 : this.weightOf(before))
    if (this.weight < this.least) return
    this.former = this.recent
    this.recent = new Map()
    this.weight = 0
  }
}
