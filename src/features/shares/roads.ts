import type { TravelPlace, TravelTimes } from '../../engines/travel-times.ts'
import { UNREACHABLE } from '../../engines/travel-times.ts'
import type { Clock } from '../../kernel/clock.ts'
import { Failure } from '../../kernel/errors.ts'
import { RecentMap } from '../../kernel/recent-map.ts'

export interface Way {
  meters: number
  seconds: number
}

/** Longest wait of a page for the road server; then the great circle is used. */
const PATIENCE_MS = 2_000
/** Interval of requests for the way of one share. */
const FRESH_MS = 10_000
const KEPT_MAX = 1_000

interface Kept {
  at: number
  way: Promise<Way | undefined>
}

/** Requests the ways of shares: each once in ten seconds, even if the server does not answer. */
export class Roads {
  private readonly travelTimes: Pick<TravelTimes, 'table'>
  private readonly clock: Pick<Clock, 'monotonic' | 'after'>
  private readonly kept = new RecentMap<string, Kept>(KEPT_MAX)

  constructor(travelTimes: Pick<TravelTimes, 'table'>, clock: Pick<Clock, 'monotonic' | 'after'>) {
    this.travelTimes = travelTimes
    this.clock = clock
  }

  /** Undefined if no road leads there, or the server does not answer. `name` identifies the way: its places move on. */
  way(name: string, from: TravelPlace, to: TravelPlace): Promise<Way | undefined> {
    const at = this.clock.monotonic()
    const before = this.kept.get(name)
    if (before !== undefined && at - before.at < FRESH_MS) return before.way
    const way = this.ask(from, to)
    this.kept.set(name, { at, way })
    return way
  }

  private async ask(from: TravelPlace, to: TravelPlace): Promise<Way | undefined> {
    const late = new AbortController()
    const cancel = this.clock.after(PATIENCE_MS, () => late.abort(new Failure('engine_down')))
    try {
      const { distances, durations } = await this.travelTimes.table([from, to], late.signal)
      const way = { meters: distances[1], seconds: durations[1] }
      return way.meters < UNREACHABLE && way.seconds < UNREACHABLE ? way : undefined
    } catch (error) {
      if (error instanceof Failure && error.status >= 500) return undefined
      throw error
    } finally {
      cancel()
    }
  }
}
