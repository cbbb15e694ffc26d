/**
 * A map that forgets what was not asked for lately: it holds at least `least` entries and at most twice as many. In two
 * generations: a Map whose oldest entry is deleted again and again walks over all that were deleted before.
 */
export class RecentMap<Key, Value> {
  private readonly least: number
  private recent = new Map<Key, Value>()
  private former = new Map<Key, Value>()

  constructor(least: number) {
    this.least = least
  }

  get(key: Key): Value | undefined {
    const value = this.recent.get(key)
    if (value !== undefined) return value
    const former = this.former.get(key)
    if (former !== undefined) this.set(key, former)
    return former
  }

  set(key: Key, value: Value): void {
    this.recent.set(key, value)
    if (this.recent.size < this.least) return
    this.former = this.recent
    this.recent = new Map()
  }
}
