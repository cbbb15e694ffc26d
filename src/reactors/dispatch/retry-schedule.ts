/** Failed attempts of a run that the next one of its tracker waits for. */
export const ATTEMPTS_IN_ORDER = 3
const RETRY_AFTER_MAX_MS = 24 * 3_600_000
const JITTER = 0.2

/**
 * How long after its `failures`-th failed attempt (from 1) a run is tried again, ±20 %; undefined: no attempt is left.
 * The jitter follows from the run, so it is the same wherever it is computed.
 */
export const retryDelayMs = (scheduleMs: readonly number[], failures: number, runId: string): number | undefined => {
  const delayMs = scheduleMs[failures - 1]
  return delayMs === undefined ? undefined : jittered(delayMs, `${runId}:${failures}`)
}

/** The delay, 20 % less to 20 % more, decided by the seed. */
export const jittered = (delayMs: number, seed: string): number =>
  Math.round(delayMs * (1 - JITTER + 2 * JITTER * fraction(seed)))

/** What a Retry-After header asks for, in ms from `now` and at most a day; undefined when it says nothing readable (RFC 9110, 10.2.3). */
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
