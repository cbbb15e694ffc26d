import { locationStream } from '../features/locations/events.ts'
import type { Services } from '../kit/services.ts'

export interface SweeperOptions {
  /** How long points stay in the log. */
  keepMs: number
  /** Revisions up to which the other consumers of a partition have stored what they read: history, latest position. */
  consumersAt(partition: number): Promise<readonly number[]>
  /** Writes a snapshot of the partition's matcher and answers the revision up to which it goes. */
  snapshot(partition: number): Promise<number>
  /** Runs a sweep when nothing else needs the log to stay as it is. */
  exclusively?<Result>(run: () => Promise<Result>): Promise<Result>
  /** Called after each sweep. */
  onSwept?(): Promise<void>
  onFailure(partition: number, error: unknown): void
  intervalMs?: number
}

/** What a sweep left of a partition. */
export interface Swept {
  partition: number
  /** Revision of the first event that is left of a stream that was truncated. */
  first: number
}

const HOUR_MS = 3_600_000

/**
 * Truncates the location streams: what is older than `keepMs` and applied by every consumer, after a snapshot of the
 * matcher, which could not be rebuilt without. A consumer that is behind holds the log back.
 */
export class LocationSweeper {
  private readonly services: Pick<Services, 'log' | 'clock' | 'partitions'>
  private readonly options: SweeperOptions
  private cancelTimer: () => void = () => undefined
  private sweeping: Promise<unknown> = Promise.resolve()
  private isClosed = false

  constructor(services: Pick<Services, 'log' | 'clock' | 'partitions'>, options: SweeperOptions) {
    this.services = services
    this.options = options
  }

  start(): void {
    this.cancelTimer = this.services.clock.after(this.options.intervalMs ?? HOUR_MS, () => {
      this.sweeping = this.sweepAll().catch((error) => this.options.onFailure(-1, error)).finally(() => !this.isClosed && this.start())
    })
  }

  async close(): Promise<void> {
    this.isClosed = true
    this.cancelTimer()
    await this.sweeping
  }

  /** Sweeps every partition; one that fails does not keep the others from it. Answers those that were truncated. */
  async sweepAll(): Promise<Swept[]> {
    const { exclusively = (run) => run(), onSwept } = this.options
    const swept = await exclusively(() => this.sweepEach())
    await onSwept?.()
    return swept
  }

  /** Answers the first revision that is left, or undefined when there was nothing to truncate. */
  async sweep(partition: number): Promise<number | undefined> {
    const { log, clock } = this.services
    const stream = locationStream(partition)
    const [first] = await log.read(stream, 0, 1)
    if (first === undefined) return undefined
    const young = await this.firstSince(stream, first.revision, clock.now() - this.options.keepMs)
    const applied = Math.min(...(await this.options.consumersAt(partition))) + 1
    const wanted = Math.min(young, applied)
    if (wanted <= first.revision) return undefined
    const before = Math.min(wanted, (await this.options.snapshot(partition)) + 1)
    if (before <= first.revision) return undefined
    await log.truncateBefore(stream, before)
    return before
  }

  private async sweepEach(): Promise<Swept[]> {
    const swept: Swept[] = []
    for (let partition = 0; partition < this.services.partitions && !this.isClosed; partition++) {
      try {
        const first = await this.sweep(partition)
        if (first !== undefined) swept.push({ partition, first })
      } catch (error) {
        this.options.onFailure(partition, error)
      }
    }
    return swept
  }

  /** The first revision that was logged at that time or later; by halves, since times rise with revisions. */
  private async firstSince(stream: string, from: number, time: number): Promise<number> {
    let low = from
    let high = (await this.services.log.head(stream)) + 1
    while (low < high) {
      const middle = Math.floor((low + high) / 2)
      const [event] = await this.services.log.read(stream, middle, 1)
      if (event === undefined || event.loggedAt >= time) high = middle
      else low = middle + 1
    }
    return low
  }
}
