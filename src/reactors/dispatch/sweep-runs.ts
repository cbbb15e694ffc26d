import type { EventLog } from '../../engines/event-log.ts'
import { RUNS_OWED, runsStream } from '../../features/automations/events.ts'
import type { PendingRuns } from './pending-runs.ts'
import type { OwnedPartition } from './sender.ts'

/**
 * Truncates what a partition's stream has from before `before` (ms since the epoch) and no restart needs: nothing after
 * the stored checkpoint, and not before the stream says again up to where the source is owed and how far runs are counted.
 */
export const sweepRuns = async (log: EventLog, { partition, pending, stream }: OwnedPartition, before: number): Promise<void> => {
  const name = runsStream(partition)
  const [first] = await log.read(name, 0, 1)
  if (first === undefined || first.loggedAt >= before || pending.partial.size > 0) return
  await stream.append({ type: RUNS_OWED, data: marker(pending) })
  await pending.store()
  const checkpoint = await pending.table.checkpoint()
  const revision = Math.min(await firstSince(log, name, first.revision, stream.head, before), checkpoint?.runs ?? 0)
  if (revision > first.revision) await log.truncateBefore(name, revision)
}

const marker = ({ place }: PendingRuns) => ({ sourceRevision: place.source, complete: true, firstSequence: place.sequence, owed: [] })

/** Revision of the first event that was logged at that time or later. */
const firstSince = async (log: EventLog, name: string, low: number, high: number, at: number): Promise<number> => {
  while (low < high) {
    const middle = (low + high) >> 1
    const [event] = await log.read(name, middle, 1)
    if (event !== undefined && event.loggedAt < at) low = middle + 1
    else high = middle
  }
  return low
}
