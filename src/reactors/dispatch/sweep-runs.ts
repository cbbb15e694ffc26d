import type { EventLog } from '../../engines/event-log.ts'
import { RUNS_OWED, runsStream, type RunsOwed } from '../../features/automations/events.ts'
import { firstKept } from '../sweep/first-kept.ts'
import type { PendingRuns } from './pending-runs.ts'
import type { OwnedPartition } from './sender.ts'

/**
 * Truncates what a partition's stream has from before `before` (ms since the epoch) and no restart needs: nothing after
 * the stored checkpoint, and not before the stream says again up to where the source is owed and how far runs are counted.
 */
export const sweepRuns = async (
  log: EventLog,
  { partition, pending, stream }: OwnedPartition,
  before: number,
): Promise<void> => {
  const name = runsStream(partition)
  const [first] = await log.read(name, 0, 1)
  if (first === undefined || first.loggedAt >= before || pending.partial.size > 0) return
  await stream.append({ type: RUNS_OWED, data: marker(pending, before) })
  await pending.store()
  const checkpoint = pending.table.checkpoint()
  const young = await firstKept(log, name, first.revision, stream.head, ({ loggedAt }) => loggedAt >= before)
  const revision = Math.min(young, checkpoint?.runs ?? 0)
  if (revision > first.revision) await log.truncateBefore(name, revision)
}

const marker = ({ place }: PendingRuns, owedAt: number): RunsOwed => ({
  source: 'transitions',
  sourceAt: place.source,
  complete: true,
  owedAt,
  firstSequence: place.sequence,
  owed: [],
})
