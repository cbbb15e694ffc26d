/** A rate with room for a burst at once. It may be overdrawn by one request, which those after it wait for. `now` is monotonic, in ms. */
export class TokenBucket {
  readonly perSecond: number
  /** What it holds when nothing was taken for a while. */
  readonly burst: number
  private tokens: number
  private at: number

  constructor(perSecond: number, now: number, burst = perSecond) {
    this.perSecond = perSecond
    this.burst = burst
    this.tokens = burst
    this.at = now
  }

  /** Takes the tokens when the bucket is not overdrawn. */
  take(tokens: number, now: number): boolean {
    this.fill(now)
    if (this.tokens <= 0) return false
    this.tokens -= tokens
    return true
  }

  /** How long until `take` answers true, at least 1 ms when it does not. */
  waitMs(now: number): number {
    this.fill(now)
    return this.tokens > 0 ? 0 : Math.max(1, Math.ceil(((1e-3 - this.tokens) / this.perSecond) * 1000))
  }

  isFull(now: number): boolean {
    this.fill(now)
    return this.tokens >= this.burst
  }

  private fill(now: number): void {
    this.tokens = Math.min(this.burst, this.tokens + ((now - this.at) / 1000) * this.perSecond)
    this.at = now
  }
}
