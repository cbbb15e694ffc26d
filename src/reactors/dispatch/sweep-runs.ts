import type { EventLog } from '../../engines/event-log.ts'
import { RUNS_OWED, type RunsOwed, runsStream } from '../../features/automations/events.ts'
import { Rounds } from '../../kit/operations/rounds.ts'
import type { Services } from '../../kit/services.ts'
import { firstKept } from '../sweep/first-kept.ts'
import type { OwnedPartition } from './partition.ts'
import type { PendingRuns } from './pending-runs.ts'

export interface RunsSweepOptions {
  /** Retention of the streams of runs, ms. */
  retentionMs: number
  /** Revision up to which the log of runs has a partition's stream, which keeps the rest. Default: all of it. */
  listedThrough?: (partition: number) => Promise<number>
  owned: () => OwnedPartition[]
}

const SWEEP_MS = 3_600_000

/** Truncates the streams of runs of this process's partitions once an hour. */
export class RunsSweep extends Rounds {
  private readonly services: Pick<Services, 'log' | 'clock' | 'logger'>
  private readonly options: RunsSweepOptions

  constructor(services: Pick<Services, 'log' | 'clock' | 'logger'>, options: RunsSweepOptions) {
    super(services.clock, SWEEP_MS)
    this.services = services
    this.options = options
  }

  protected async work(): Promise<void> {
    const { retentionMs, owned, listedThrough = async () => Number.POSITIVE_INFINITY } = this.options
    const { log, clock } = this.services
    const before = clock.now() - retentionMs
    for (const one of owned()) {
      const sweeping = listedThrough(one.partition).then((listed) => sweepRuns(log, one, before, listed))
      await sweeping.catch((error: unknown) => this.failed(error, one.partition))
    }
  }

  protected failed(error: unknown, partition?: number): void {
    this.services.logger.warn('runs not swept', { consumer: 'dispatch', partition, error: String(error) })
  }
}

/**
 * Truncates the events of a partition's stream from before `before` (ms since the epoch) that no restart needs: nothing
 * after the stored checkpoint and the state of the log of runs (`listedThrough`), and not before the stream states
 * again up to where the source is owed and how far runs are counted.
 */
const sweepRuns = async (
  log: EventLog,
  { partition, pending, stream }: OwnedPartition,
  before: number,
  listedThrough: number,
): Promise<void> => {
  const name = runsStream(partition)
  const [first] = await log.read(name, 0, 1)
  if (first === undefined || first.loggedAt >= before || pending.partial.size + pending.partialLog.size > 0) return
  await stream.append({ type: RUNS_OWED, data: marker(pending, before) })
  await pending.store()
  const checkpoint = pending.rows.checkpoint()
  const young = await firstKept(log, name, first.revision, stream.head, ({ loggedAt }) => loggedAt >= before)
  const revision = Math.min(young, checkpoint?.runs ?? 0, listedThrough + 1)
  if (revision > first.revision) await log.truncateBefore(name, revision)
}

const marker = ({ progress }: PendingRuns, owedAt: number): RunsOwed => ({
  source: 'transitions',
  sourceAt: progress.source,
  complete: true,
  owedAt,
  firstSequence: progress.sequence,
  owed: [],
})
