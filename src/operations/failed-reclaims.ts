import type { EventLog } from '../engines/event-log.ts'
import type { Clock } from '../kernel/clock.ts'

const CACHED_MS = 60_000

/**
 * Returns the number of the log's newest attempts to reclaim space that did not complete, queried at most once a
 * minute; 0 for a log that needs none. @throws Failure engine_down
 */
export const failedReclaims = ({
  log,
  clock,
}: {
  log: Pick<EventLog, 'failedReclaims'>
  clock: Clock
}): (() => Promise<number>) => {
  let askedAtMs = Number.NEGATIVE_INFINITY
  let failed = 0
  return async () => {
    if (clock.monotonic() - askedAtMs < CACHED_MS) return failed
    failed = (await log.failedReclaims?.()) ?? 0
    askedAtMs = clock.monotonic()
    return failed
  }
}
