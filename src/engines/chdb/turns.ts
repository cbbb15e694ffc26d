/** User of the threads, and its use of them so far, ms. */
export interface ThreadUser {
  usedMs: number
}

interface Waiting {
  /** Time when it has waited for as long as it had used before, or for `WAITED_MS`: the earliest goes first. */
  dueAt: number
  resume(): void
}

/** Users that waited this long go before new ones: else an export would get no turn while short queries keep coming. */
const WAITED_MS = 10_000

/**
 * Lends the threads that queries share, for one call at a time. The least served user goes first, waiting time counted
 * against use: a query for one day does not wait behind exports of a year, each of which wants its next part.
 */
export class ThreadTurns {
  private free: number
  private readonly now: () => number
  private readonly waiting: Waiting[] = []

  constructor(threads: number, now: () => number) {
    this.free = threads
    this.now = now
  }

  async run<Answer>(user: ThreadUser, call: () => Promise<Answer>): Promise<Answer> {
    if (this.free > 0) this.free--
    else
      await new Promise<void>((resume) =>
        this.waiting.push({ dueAt: this.now() + Math.min(user.usedMs, WAITED_MS), resume }),
      )
    const began = this.now()
    try {
      return await call()
    } finally {
      user.usedMs += this.now() - began
      const next = this.takeNext()
      if (next === undefined) this.free++
      else next.resume()
    }
  }

  /** At most as many wait as queries may be open, so scanning them all is cheap. */
  private takeNext(): Waiting | undefined {
    let least = 0
    for (let i = 1; i < this.waiting.length; i++) if (this.waiting[i].dueAt < this.waiting[least].dueAt) least = i
    return this.waiting.splice(least, 1)[0]
  }
}
