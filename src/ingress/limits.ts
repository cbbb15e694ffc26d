import type { Clock } from '../kernel/clock.ts'
import { Failure } from '../kernel/errors.ts'

interface Bucket {
  tokens: number
  at: number
}

/** Buckets in memory; beyond that the one that was used longest ago is forgotten, and with it at most one second's worth of debt. */
const BUCKETS_MAX = 50_000

/** Token buckets by key: `perSecond` requests a second, one second's worth at once. */
export class RateLimiter {
  private readonly perSecond: number
  private readonly clock: Clock
  private readonly buckets = new Map<string, Bucket>()

  constructor(perSecond: number, clock: Clock) {
    this.perSecond = perSecond
    this.clock = clock
  }

  /** @throws Failure `rate_limited` with the seconds until a request is let through. */
  take(key: string): void {
    const now = this.clock.monotonic()
    const burst = Math.max(1, this.perSecond)
    const bucket = this.buckets.get(key) ?? { tokens: burst, at: now }
    bucket.tokens = Math.min(burst, bucket.tokens + ((now - bucket.at) / 1000) * this.perSecond)
    bucket.at = now
    // Set anew, so that the map stays in the order of last use.
    this.buckets.delete(key)
    this.buckets.set(key, bucket)
    if (this.buckets.size > BUCKETS_MAX) this.buckets.delete(this.buckets.keys().next().value as string)
    if (bucket.tokens < 1)
      throw new Failure('rate_limited', {
        retryAfterSeconds: Math.max(1, Math.ceil((1 - bucket.tokens) / this.perSecond)),
      })
    bucket.tokens -= 1
  }
}

/** Counts by key with a maximum for each and for all together. */
export class Places {
  private readonly perKeyMax: number
  private readonly totalMax: number
  private readonly counts = new Map<string, number>()
  private total = 0

  constructor(perKeyMax: number, totalMax: number) {
    this.perKeyMax = perKeyMax
    this.totalMax = totalMax
  }

  /** False when there is no place left. */
  take(key: string): boolean {
    const count = this.counts.get(key) ?? 0
    if (count >= this.perKeyMax || this.total >= this.totalMax) return false
    this.counts.set(key, count + 1)
    this.total++
    return true
  }

  release(key: string): void {
    const count = this.counts.get(key) ?? 0
    if (count <= 1) this.counts.delete(key)
    else this.counts.set(key, count - 1)
    this.total--
  }
}
