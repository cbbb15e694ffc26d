/** Times in ms. */
export interface ShareLimits {
  /** What a turn gets where the event loop has nothing else to do, and at most. */
  least: number
  most: number
  /** Multiple of the time that everything else took before it. */
  times: number
}

/**
 * How long something may work in one turn of the event loop. With a fixed time it would get next to nothing where all
 * else makes turns long; so its time grows with theirs.
 */
export class TurnShare {
  private readonly limits: ShareLimits
  private askedAt: number | undefined

  constructor(limits: ShareLimits) {
    this.limits = limits
  }

  /** There is more to do than fitted this turn: what passes from here to the next one is what all else takes. */
  ask(now: number): void {
    this.askedAt = now
  }

  /** When the turn that begins now is over. */
  begin(now: number): number {
    const { least, most, times } = this.limits
    const others = this.askedAt === undefined ? 0 : now - this.askedAt
    this.askedAt = undefined
    return now + Math.min(most, Math.max(least, times * others))
  }
}
