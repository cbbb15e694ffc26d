import type { Clock } from '../kernel/clock.ts'
import { RecentMap } from '../kernel/recent-map.ts'
import { defer } from '../kit/consumers/deferred.ts'

/** The name and hubs of a tracker arrive within milliseconds of its first point; those of a deleted one never. */
const WAIT_MS = 1_000
/** Trackers of which no further facts will come. */
const UNKNOWN_KEPT = 10_000

/**
 * Trackers with decisions before their own events: until those arrive nobody who is limited to hubs would see the
 * decisions.
 */
export class AwaitedFacts {
  private readonly clock: Clock
  private readonly awaited = new Map<string, { promise: Promise<void>; resolve(): void; cancel(): void }>()
  private readonly unknown = new RecentMap<string, true>(UNKNOWN_KEPT)

  constructor(clock: Clock) {
    this.clock = clock
  }

  /** Resolves when they arrive, or after a second without, once for each tracker; undefined where that was before. */
  of(trackerId: string): Promise<void> | undefined {
    if (this.unknown.get(trackerId) !== undefined) return undefined
    const known = this.awaited.get(trackerId)
    if (known !== undefined) return known.promise
    const { promise, resolve } = defer()
    const cancel = this.clock.after(WAIT_MS, () => this.gone(trackerId))
    this.awaited.set(trackerId, { promise, resolve, cancel })
    return promise
  }

  /** Decides once more about a deleted tracker: each of many would delay all that follows for a second. */
  gone(trackerId: string): void {
    this.unknown.set(trackerId, true)
    this.heard(trackerId)
  }

  heard(trackerId: string): void {
    const awaited = this.awaited.get(trackerId)
    this.awaited.delete(trackerId)
    awaited?.cancel()
    awaited?.resolve()
  }
}
