import type { IndexEntry } from './keys.ts'

const ENTRIES_MAX = 4_096

interface Entry extends IndexEntry {
  category: number
}

/** The index of the last appended events: followers at the end of the log walk it in memory. */
export class RecentEntries {
  private entries: Entry[] = []
  /** All events from this position on are known. */
  private from: number

  constructor(nextPosition: number) {
    this.from = nextPosition
  }

  /** In the order of positions. */
  add(entry: Entry): void {
    this.entries.push(entry)
    if (this.entries.length <= ENTRIES_MAX) return
    this.entries = this.entries.slice(ENTRIES_MAX / 2)
    this.from = this.entries[0].position
  }

  /** At most `limit` entries of a category between two positions, both included; undefined where some are unknown. */
  between(category: number, first: number, last: number, limit: number): IndexEntry[] | undefined {
    if (first < this.from) return undefined
    const found: IndexEntry[] = []
    for (let i = this.indexOf(first); i < this.entries.length && found.length < limit; i += 1) {
      const entry = this.entries[i]
      if (entry.position > last) break
      if (entry.category === category) found.push(entry)
    }
    return found
  }

  /** Index of the first entry at a position or behind it. */
  private indexOf(position: number): number {
    let [low, high] = [0, this.entries.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.entries[middle].position < position) low = middle + 1
      else high = middle
    }
    return low
  }
}
