/** Over all organizations; further ones fail. */
const WAITING_MAX = 1_000

/** Back-tests that have not ended, in the order in which they came: one of an organization runs at a time. */
export class WaitingBacktests {
  private readonly entries = new Map<string, { organizationId: string; isRunning: boolean }>()

  /** False when there is no room. */
  logged(organizationId: string, backtestId: string): boolean {
    if (this.entries.has(backtestId)) return true
    if (this.entries.size >= WAITING_MAX) return false
    this.entries.set(backtestId, { organizationId, isRunning: false })
    return true
  }

  ended(backtestId: string): void {
    this.entries.delete(backtestId)
  }

  /** The next one that may run, marked as running; undefined where there is none. */
  next(): string | undefined {
    const busy = new Set(
      [...this.entries.values()].filter(({ isRunning }) => isRunning).map(({ organizationId }) => organizationId),
    )
    for (const [backtestId, entry] of this.entries) {
      if (entry.isRunning || busy.has(entry.organizationId)) continue
      entry.isRunning = true
      return backtestId
    }
    return undefined
  }
}
