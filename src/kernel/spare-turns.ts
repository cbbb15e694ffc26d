import { type ShareLimits, TurnShare } from './turn-share.ts'

/**
 * Share of the event loop for long work that nobody's answer waits for: small where the loop is idle, so that answers
 * of engines are taken up between its pieces, and never less than its share of a busy one.
 */
export class SpareTurns {
  private readonly share: TurnShare
  private ends = 0

  constructor(limits: ShareLimits) {
    this.share = new TurnShare(limits)
  }

  /** To be awaited before each piece of work, by one loop at a time; undefined while its turn lasts. */
  next(): Promise<void> | undefined {
    if (performance.now() < this.ends) return undefined
    this.share.ask(performance.now())
    return new Promise((resume) =>
      setImmediate(() => {
        this.ends = this.share.begin(performance.now())
        resume()
      }),
    )
  }
}
