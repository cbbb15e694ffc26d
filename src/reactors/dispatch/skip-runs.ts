import { RUNS_SKIPPED, type RunsSkipped, type SkipReason } from '../../features/automations/events.ts'
import type { Fact } from '../../kernel/event.ts'
import { RUNS_IN_MEMORY_MAX } from './backlog.ts'
import type { OwnedPartition } from './sender.ts'

/** Ends every run of an automation that is not under way, also those in the table only; answers how many. @throws PartitionLost */
export const skipRuns = async ({ pending, stream }: OwnedPartition, automationId: string): Promise<number> => {
  let skipped = 0
  for (;;) {
    const backlog = pending.get(automationId)
    if (backlog === undefined) return skipped
    if (backlog.inOrderStored + backlog.aloneStored > 0 && !(await fetchPage({ pending }, automationId)))
      backlog.inOrderStored = backlog.aloneStored = 0
    const runs = backlog.order.idle().map(({ runId, owedAt }) => ({ runId, owedAt }))
    if (runs.length === 0) return skipped
    for (let from = 0; from < runs.length; from += RUNS_IN_MEMORY_MAX) {
      const some = runs.slice(from, from + RUNS_IN_MEMORY_MAX)
      await stream.append(skipFact(automationId, backlog.organizationId, 'deactivated', some))
    }
    skipped += runs.length
  }
}

/** Answers whether the table has any. */
const fetchPage = async ({ pending }: Pick<OwnedPartition, 'pending'>, automationId: string): Promise<boolean> => {
  await pending.store()
  const inOrder = await pending.table.inOrder(automationId, -1, RUNS_IN_MEMORY_MAX)
  const alone = await pending.table.alone(automationId, RUNS_IN_MEMORY_MAX)
  await pending.fetch(
    [...inOrder, ...alone].map(({ runId }) => runId),
    automationId,
  )
  return inOrder.length + alone.length > 0
}

export const skipFact = (
  automationId: string,
  organizationId: string,
  reason: SkipReason,
  runs: RunsSkipped['runs'],
): Fact<string, RunsSkipped> => ({
  type: RUNS_SKIPPED,
  data: { automationId, organizationId, reason, runs },
})
