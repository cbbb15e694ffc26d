import { locationStream } from '../../features/locations/events.ts'
import type { Services } from '../../kit/services.ts'
import { firstKept } from './first-kept.ts'
import type { StreamSweep } from './sweep-partitions.ts'

export interface LocationSweepOptions {
  /** Time for which points stay in the log. */
  keepMs: number
  /** Revisions through which the other consumers of a partition have stored their reads: history, latest position. */
  consumersAt(partition: number): Promise<readonly number[]>
  /** Ensures a snapshot of the partition's matcher through at least a revision; answers the one that it reaches. */
  snapshot(partition: number, through: number): Promise<number>
}

/**
 * Truncates the location streams: events older than `keepMs` and applied by every consumer, after a snapshot of the
 * matcher, which could not be rebuilt without. A consumer that is behind holds the log back.
 */
export const locationSweep = (
  { log, clock }: Pick<Services, 'log' | 'clock'>,
  { keepMs, consumersAt, snapshot }: LocationSweepOptions,
): StreamSweep => ({
  streamOf: locationStream,
  sweep: async (partition) => {
    const stream = locationStream(partition)
    const [first] = await log.read(stream, 0, 1)
    if (first === undefined) return undefined
    const before = clock.now() - keepMs
    const head = await log.head(stream)
    const young = await firstKept(log, stream, first.revision, head + 1, ({ loggedAt }) => loggedAt >= before)
    // The last event stays, however old it is.
    const wanted = Math.min(young, head, ...(await consumersAt(partition)).map((applied) => applied + 1))
    if (wanted <= first.revision) return undefined
    const left = Math.min(wanted, (await snapshot(partition, wanted - 1)) + 1)
    if (left <= first.revision) return undefined
    await log.truncateBefore(stream, left)
    return left
  },
})
