import type { Services } from '../../kit/services.ts'

/** One family of partition streams, and the truncation of one of them. */
export interface StreamSweep {
  streamOf(partition: number): string
  /** Answers the first remaining revision, or undefined when there was nothing to truncate. */
  sweep(partition: number): Promise<number | undefined>
}

export interface SweeperOptions {
  /** In the order of sweeping. */
  sweeps: readonly StreamSweep[]
  /** Runs a sweep when nothing else needs the log to stay unchanged. */
  exclusively?<Result>(run: () => Promise<Result>): Promise<Result>
  onSwept?(): Promise<void>
  /** Called with each stream that was not swept, and without one when a sweep failed as a whole. */
  onFailure(error: unknown, stream?: string): void
  intervalMs?: number
}

/** Remainder of a stream after a sweep. */
export interface Swept {
  stream: string
  partition: number
  /** Revision of the first remaining event of a truncated stream. */
  first: number
}

const HOUR_MS = 3_600_000

/** Truncates the streams of partitions once an hour. */
export class PartitionSweeper {
  private readonly services: Pick<Services, 'clock' | 'partitions'>
  private readonly options: SweeperOptions
  private cancelTimer: () => void = () => undefined
  private sweeping: Promise<unknown> = Promise.resolve()
  private isClosed = false

  constructor(services: Pick<Services, 'clock' | 'partitions'>, options: SweeperOptions) {
    this.services = services
    this.options = options
  }

  start(): void {
    this.cancelTimer = this.services.clock.after(this.options.intervalMs ?? HOUR_MS, () => {
      this.sweeping = this.sweepAll()
        .catch((error) => this.options.onFailure(error))
        .finally(() => !this.isClosed && this.start())
    })
  }

  async close(): Promise<void> {
    this.isClosed = true
    this.cancelTimer()
    await this.sweeping
  }

  /** Sweeps every stream; a failing one does not stop the others. Answers the truncated ones. */
  async sweepAll(): Promise<Swept[]> {
    const { exclusively = (run) => run(), onSwept } = this.options
    const swept = await exclusively(() => this.sweepEach())
    await onSwept?.()
    return swept
  }

  private async sweepEach(): Promise<Swept[]> {
    const swept: Swept[] = []
    for (const { streamOf, sweep } of this.options.sweeps) {
      for (let partition = 0; partition < this.services.partitions && !this.isClosed; partition++) {
        try {
          const first = await sweep(partition)
          if (first !== undefined) swept.push({ stream: streamOf(partition), partition, first })
        } catch (error) {
          this.options.onFailure(error, streamOf(partition))
        }
      }
    }
    return swept
  }
}
