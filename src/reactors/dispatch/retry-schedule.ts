import type { Clock } from '../../kernel/clock.ts'

/**
 * The time by which runs are due: the clock's when the process begins, from then on the time really elapsed. It cannot
 * be set, so a step of the clock neither delays due runs nor hurries them.
 */
export class SteadyTime {
  private readonly clock: Clock
  private readonly startedAt: number

  constructor(clock: Clock) {
    this.clock = clock
    this.startedAt = clock.now() - clock.monotonic()
  }

  now(): number {
    return Math.round(this.startedAt + this.clock.monotonic())
  }

  /** Due time of something that was delayed by `delayMs` until `dueAt` of a clock that may have been set since. */
  dueAt(dueAt: number, delayMs: number): number {
    return this.now() + Math.min(Math.max(dueAt - this.clock.now(), 0), delayMs)
  }

  /** The same for a time that another process may have noted by its own steady time. */
  atMostIn(delayMs: number, dueAt: number): number {
    return Math.min(dueAt, this.now() + delayMs)
  }
}

/** Failed attempts of a run for which the next one of its subject waits. */
export const ATTEMPTS_IN_ORDER = 3
/** Longest delay of its next attempt that a receiver may request. */
export const RETRY_AFTER_MAX_MS = 24 * 3_600_000
const JITTER = 0.2

/**
 * Delay after the `failures`-th failed attempt (from 1) of a run, ±20 %; undefined: no attempt is left. The jitter is
 * derived from the run, so it is the same wherever it is computed.
 */
export const retryDelayMs = (scheduleMs: readonly number[], failures: number, runId: string): number | undefined => {
  const delayMs = scheduleMs[failures - 1]
  return delayMs === undefined ? undefined : jittered(delayMs, `${runId}:${failures}`)
}

/** The delay, 20 % less to 20 % more, decided by the seed. */
export const jittered = (delayMs: number, seed: string): number =>
  Math.round(delayMs * (1 - JITTER + 2 * JITTER * fraction(seed)))

/** Delay of a Retry-After header, in ms from `now`, at most a day; undefined if unreadable (RFC 9110, 10.2.3). */
export const retryAfterMs = (header: string | undefined, now: number): number | undefined => {
  if (header === undefined) return undefined
  const asked = /^\s*\d{1,10}\s*$/.test(header) ? Number(header) * 1000 : Date.parse(header) - now
  return Number.isFinite(asked) ? Math.min(Math.max(asked, 0), RETRY_AFTER_MAX_MS) : undefined
}

/** FNV-1a with a final mix (murmur3), as a number in 0..1. */
const fraction = (seed: string): number => {
  let hash = 0x811c9dc5
  for (let i = 0; i < seed.length; i++) hash = Math.imul(hash ^ seed.charCodeAt(i), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return ((hash ^ (hash >>> 16)) >>> 0) / 0xffffffff
}
