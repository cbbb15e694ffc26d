import type { Clock } from '../kernel/clock.ts'
import { Failure } from '../kernel/errors.ts'
import { RecentMap } from '../kernel/recent-map.ts'
import { TokenBucket } from '../kernel/token-bucket.ts'

/** Buckets in memory, at most twice as many: unused ones are forgotten, with at most one second's worth of debt. */
const BUCKETS_LEAST = 25_000

/** Rest of a limit after a request. */
export interface Allowance {
  /** Name of the limit: `token`, `organization` or `address`. */
  policy: string
  /** Requests a second. */
  quota: number
  remaining: number
  /** Seconds until the whole quota is available again. */
  resetSeconds: number
}

/** Token buckets by key: `perSecond` requests a second, one second's worth at once. */
export class RateLimiter {
  private readonly policy: string
  private readonly perSecond: number
  private readonly clock: Clock
  private readonly buckets = new RecentMap<string, TokenBucket>(BUCKETS_LEAST)

  constructor(policy: string, perSecond: number, clock: Clock) {
    this.policy = policy
    this.perSecond = perSecond
    this.clock = clock
  }

  /** Notes the rest in `allowances`. @throws Failure `rate_limited` with the seconds until a request is let through. */
  take(key: string, allowances: Allowance[]): void {
    const now = this.clock.monotonic()
    const burst = Math.max(1, Math.floor(this.perSecond))
    const bucket = this.buckets.get(key) ?? new TokenBucket(this.perSecond, now, burst)
    this.buckets.set(key, bucket)
    const waitMs = bucket.takeWhole(1, now)
    const left = bucket.left(now)
    allowances.push({
      policy: this.policy,
      quota: burst,
      remaining: Math.floor(left),
      resetSeconds: Math.ceil((burst - left) / this.perSecond),
    })
    if (waitMs > 0) throw new Failure('rate_limited', { retryAfterSeconds: Math.ceil(waitMs / 1000) })
  }
}

/** `RateLimit` and `RateLimit-Policy` of draft-ietf-httpapi-ratelimit-headers-10; none where nothing is limited. */
export const rateLimitHeaders = (allowances: readonly Allowance[]): { [name: string]: string } | undefined => {
  if (allowances.length === 0) return undefined
  return {
    'ratelimit-policy': allowances.map(({ policy, quota }) => `"${policy}";q=${quota};w=1`).join(', '),
    ratelimit: allowances
      .map(({ policy, remaining, resetSeconds }) => `"${policy}";r=${remaining};t=${resetSeconds}`)
      .join(', '),
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
