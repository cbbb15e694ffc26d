import { Failure } from '../../kernel/errors.ts'

/** Back-tests of one organization that may wait or run, and of all together. */
export const ORGANIZATION_BACKTESTS_MAX = 10
const BACKTESTS_MAX = 1_000
const RETRY_AFTER_S = 60

interface Entry {
  organizationId: string
  /** It is in the log: it may run. Before that its place is only kept. */
  isLogged: boolean
  isRunning: boolean
}

/** Back-tests that have not ended, in the order in which they came: one of an organization runs at a time. */
export class WaitingBacktests {
  private readonly entries = new Map<string, Entry>()

  /** Keeps a place for one that is about to be logged. @throws Failure rate_limited, overloaded. */
  reserve(organizationId: string, backtestId: string): void {
    if (this.entries.has(backtestId)) return
    const own = [...this.entries.values()].filter((entry) => entry.organizationId === organizationId).length
    if (own >= ORGANIZATION_BACKTESTS_MAX) {
      const message = `${own} back-tests of your organization wait or run; wait for one to end, or cancel one.`
      throw new Failure('rate_limited', { message, retryAfterSeconds: RETRY_AFTER_S })
    }
    if (this.entries.size >= BACKTESTS_MAX)
      throw new Failure('overloaded', {
        message: 'Too many back-tests wait; try again later.',
        retryAfterSeconds: RETRY_AFTER_S,
      })
    this.entries.set(backtestId, { organizationId, isLogged: false, isRunning: false })
  }

  /** Gives back a place that was kept for one that did not get into the log. */
  release(backtestId: string): void {
    if (this.entries.get(backtestId)?.isLogged === false) this.entries.delete(backtestId)
  }

  logged(organizationId: string, backtestId: string): void {
    const entry = this.entries.get(backtestId)
    if (entry === undefined) this.entries.set(backtestId, { organizationId, isLogged: true, isRunning: false })
    else entry.isLogged = true
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
      if (!entry.isLogged || entry.isRunning || busy.has(entry.organizationId)) continue
      entry.isRunning = true
      return backtestId
    }
    return undefined
  }
}
