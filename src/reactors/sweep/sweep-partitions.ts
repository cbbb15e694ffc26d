import { Rounds } from '../../kit/operations/rounds.ts'
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
export class PartitionSweeper extends Rounds {
  private readonly services: Pick<Services, 'clock' | 'partitions'>
  private readonly options: SweeperOptions

  constructor(services: Pick<Services, 'clock' | 'partitions'>, options: SweeperOptions) {
    super(services.clock, HOUR_MS)
    this.services = services
    this.options = options
  }

  protected work(): Promise<Swept[]> {
    return this.sweepAll()
  }

  protected failed(error: unknown): void {
    this.options.onFailure(error)
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
