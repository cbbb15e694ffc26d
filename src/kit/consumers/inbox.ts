/** Maximum that waits for one consumer in memory, in entries and in weight; one further behind reads the log. */
const ENTRIES_MAX = 2_048
const WEIGHT_MAX = 65_536

export interface Waiting<Entry> {
  revision: number
  loggedAt: number
  entry: Entry
  weight: number
}

/** Entries that follow one another, in memory, for one consumer. */
export class Inbox<Entry> {
  private readonly entries: Waiting<Entry>[] = []
  private weight = 0

  get first(): Waiting<Entry> | undefined {
    return this.entries[0]
  }

  /** Whether there is room for an entry that follows the last one; the first may be any beyond that revision. */
  takes(revision: number, beyond: number): boolean {
    const { entries, weight } = this
    const isNext = entries.length > 0 ? revision === entries[entries.length - 1].revision + 1 : revision > beyond
    return isNext && entries.length < ENTRIES_MAX && weight < WEIGHT_MAX
  }

  push(waiting: Waiting<Entry>): void {
    this.entries.push(waiting)
    this.weight += waiting.weight
  }

  shift(): void {
    this.weight -= this.entries.shift()?.weight ?? 0
  }

  clear(): void {
    this.entries.length = 0
    this.weight = 0
  }
}
