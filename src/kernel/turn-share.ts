/** Times in ms. */
export interface ShareLimits {
  /** Time of a turn where the event loop has nothing else to do, and its maximum. */
  least: number
  most: number
  /** Multiple of the time that everything else took before it. */
  times: number
}

/**
 * Time for which something may work in one turn of the event loop. A fixed time would be next to nothing where all else
 * makes turns long; so it grows with theirs.
 */
export class TurnShare {
  private readonly limits: ShareLimits
  private askedAt: number | undefined

  constructor(limits: ShareLimits) {
    this.limits = limits
  }

  /** Some work did not fit this turn: the time from here to the next turn is the time that all else takes. */
  ask(now: number): void {
    this.askedAt = now
  }

  /** The time at which the turn that begins now ends. */
  begin(now: number): number {
    const { least, most, times } = this.limits
    const others = this.askedAt === undefined ? 0 : now - this.askedAt
    this.askedAt = undefined
    return now + Math.min(most, Math.max(least, times * others))
  }
}
