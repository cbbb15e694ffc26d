import { locationStream } from '../../features/locations/events.ts'
import { transitionStream } from '../../features/transitions/events.ts'
import type { Services } from '../../kit/services.ts'
import { firstKept } from './first-kept.ts'
import type { StreamSweep } from './sweep-partitions.ts'

export interface TransitionSweepOptions {
  /** Time for which decisions stay in the log. */
  keepMs: number
  /** Revision up to which every consumer of a partition's transitions has stored them, -1 for nothing. */
  appliedAt(partition: number): Promise<number>
}

/**
 * Truncates the streams of transitions: events older than `keepMs` and applied by every consumer. Decisions that may be
 * made again stay, that is everything since the oldest remaining event of the location stream; so does the last event,
 * by which an owner of the partition and cursors know the position of the stream.
 */
export const transitionSweep = (
  { log, clock }: Pick<Services, 'log' | 'clock'>,
  { keepMs, appliedAt }: TransitionSweepOptions,
): StreamSweep => ({
  streamOf: transitionStream,
  sweep: async (partition) => {
    const stream = transitionStream(partition)
    const [[first], [source]] = await Promise.all([log.read(stream, 0, 1), log.read(locationStream(partition), 0, 1)])
    const before = Math.min(clock.now() - keepMs, source?.loggedAt ?? Number.POSITIVE_INFINITY)
    if (first === undefined || first.loggedAt >= before) return undefined
    const applied = await appliedAt(partition)
    const left = await firstKept(
      log,
      stream,
      first.revision,
      await log.head(stream),
      ({ loggedAt, revision }) => loggedAt >= before || revision > applied,
    )
    if (left <= first.revision) return undefined
    await log.truncateBefore(stream, left)
    return left
  },
})
