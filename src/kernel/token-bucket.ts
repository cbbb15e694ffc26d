/** A rate with room for a burst. `take` may overdraw it by one request; later ones wait. `now` is monotonic, in ms. */
export class TokenBucket {
  readonly perSecond: number
  /** Tokens that it holds when full. */
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

  /** Takes the tokens when all of them are there: 0, or the milliseconds until they are. */
  takeWhole(tokens: number, now: number): number {
    this.fill(now)
    if (this.tokens < tokens) return Math.max(1, Math.ceil(((tokens - this.tokens) / this.perSecond) * 1000))
    this.tokens -= tokens
    return 0
  }

  left(now: number): number {
    this.fill(now)
    return Math.max(0, this.tokens)
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
