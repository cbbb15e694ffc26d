import type { RecordedEvent } from '../../kernel/event.ts'
import { type IndexEntry, indexKey } from './keys.ts'
import { BATCH_BYTES_MAX, readEvent } from './read.ts'
import { categoryName, type LogStore } from './store.ts'

const INDEX_ENTRIES_MAX = 256
const FOREIGN_MAX = 2_000

/** The next entries of one category. */
interface Branch {
  category: number
  entries: IndexEntry[]
  at: number
  readTo: number
}

/** Walks the indexes of several categories in the order of their positions. */
export class IndexMerge {
  checkpoint: number
  private readonly store: LogStore
  private readonly prefixes: readonly string[]
  private readonly branches: Branch[] = []
  private categoriesSeen = -1

  constructor(store: LogStore, prefixes: readonly string[], after: number) {
    this.store = store
    this.prefixes = prefixes
    this.checkpoint = after
  }

  /** The next events up to a position; moves the checkpoint over non-matching ones too. */
  take(headPosition: number, limit: number, matches: (name: string) => boolean): RecordedEvent[] {
    this.findBranches()
    const events: RecordedEvent[] = []
    let bytes = 0
    let foreign = 0
    while (events.length < limit && bytes < BATCH_BYTES_MAX && foreign < FOREIGN_MAX) {
      const entry = this.next(headPosition)
      if (entry === undefined) {
        this.checkpoint = headPosition
        break
      }
      this.checkpoint = entry.position
      const name = this.store.nameOf(entry.no)
      const event =
        matches(name) && entry.revision >= (this.store.stream(name)?.first ?? 0)
          ? readEvent(this.store, name, entry.no, entry.revision)
          : undefined
      if (event === undefined) {
        foreign += 1
        continue
      }
      events.push(event)
      bytes += event.data.byteLength
    }
    return events
  }

  private next(headPosition: number): IndexEntry | undefined {
    let first: Branch | undefined
    let position = Number.POSITIVE_INFINITY
    for (const branch of this.branches) {
      if (branch.at >= branch.entries.length && branch.readTo < headPosition) this.refill(branch, headPosition)
      const entry = branch.entries[branch.at]
      if (entry === undefined || entry.position >= position) continue
      position = entry.position
      first = branch
    }
    if (first === undefined) return undefined
    const entry = first.entries[first.at]
    first.at += 1
    return entry
  }

  private refill(branch: Branch, headPosition: number): void {
    const { category } = branch
    const first = Math.max(branch.readTo, this.checkpoint) + 1
    branch.at = 0
    branch.entries =
      this.store.recentEntries.between(category, first, headPosition, INDEX_ENTRIES_MAX) ??
      this.stored(category, first, headPosition)
    const last = branch.entries[INDEX_ENTRIES_MAX - 1]
    branch.readTo = last === undefined ? headPosition : last.position
  }

  private stored(category: number, first: number, headPosition: number): IndexEntry[] {
    const entries: IndexEntry[] = []
    const start = Buffer.from(indexKey(category, first))
    const end = Buffer.from(indexKey(category, headPosition + 1))
    // A snapshot older than the head would skip events committed in between.
    this.store.root.resetReadTxn()
    for (const { key, value } of this.store.indexEntries.getRange({ start, end, limit: INDEX_ENTRIES_MAX })) {
      value.position = key as number
      entries.push(value)
    }
    return entries
  }

  private findBranches(): void {
    if (this.store.categoryNumbers.size === this.categoriesSeen) return
    this.categoriesSeen = this.store.categoryNumbers.size
    for (const [category, no] of this.store.categoryNumbers) {
      if (this.branches.some((branch) => branch.category === no) || category.startsWith('$')) continue
      const canHold = this.prefixes.some((prefix) =>
        prefix.includes('-') ? categoryName(prefix) === category : category.startsWith(prefix),
      )
      if (canHold) this.branches.push({ category: no, entries: [], at: 0, readTo: -1 })
    }
  }
}
