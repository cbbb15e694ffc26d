import { type EventLog, eventsBackwards, eventsOf } from '../../engines/event-log.ts'
import { RUNS_OWED, runIdOf, type RunsOwed, runsStream } from '../../features/automations/events.ts'
import { transitionStream } from '../../features/transitions/events.ts'
import { decodeJson } from '../../kernel/event.ts'
import { ActiveAutomations } from './active-automations.ts'
import { decodeTransition, EntryLook, owedForEntry, type OweOptions } from './owe.ts'
import { type OwedFact, OwedFacts } from './owed-facts.ts'
import type { PendingRuns } from './pending-runs.ts'

/** Positions of activations in the log, by automation. */
export type Activations = ReadonlyMap<string, number>

/**
 * Runs that the transitions of a partition owe to automations learned of only now: for transitions after their
 * activation that were looked at before it was known. Where that happened once already, the owed runs are left out. The
 * table has these automations. Answers facts page by page, each to be appended before the next is requested.
 */
export async function* owePast(
  log: Pick<EventLog, 'read'>,
  options: OweOptions,
  pending: PendingRuns,
  activations: Activations,
): AsyncGenerator<OwedFact[]> {
  const through = pending.progress.source
  const since = Math.min(...activations.values())
  const from = await firstBehind(log, transitionStream(pending.partition), through, since)
  if (from === undefined) return
  const owedRuns = await runsOwedBehind(log, runsStream(pending.partition), since, activations)
  const look = new EntryLook(new ActiveAutomations(options.tables), options, ({ _id }) => activations.has(_id))
  for await (const event of eventsOf(log, transitionStream(pending.partition), from, through)) {
    const owed = await owedForEntry(options, look, decodeTransition(event), (runId) => owedRuns.has(runId), new Map())
    if (owed.length === 0) continue
    const facts = new OwedFacts('transitions', options.now(), pending.progress.sequence)
    facts.add(through, owed)
    yield facts.done()
  }
}

/** Revision of the first event of a stream after a position in the log, up to a revision; undefined for none. */
const firstBehind = async (
  log: Pick<EventLog, 'read'>,
  stream: string,
  through: number,
  position: number,
): Promise<number | undefined> => {
  let first: number | undefined
  // Mostly the first one shows that there is nothing.
  for await (const event of eventsBackwards(log, stream, through, 1)) {
    if (event.position <= position) break
    first = event.revision
  }
  return first
}

/** Ids of the runs of these automations that were owed after a position. */
const runsOwedBehind = async (
  log: Pick<EventLog, 'read'>,
  stream: string,
  position: number,
  activations: Activations,
): Promise<Set<string>> => {
  const found = new Set<string>()
  for await (const event of eventsBackwards(log, stream, 'end', 1)) {
    if (event.position <= position) break
    if (event.type !== RUNS_OWED) continue
    for (const { trigger, runs } of decodeJson<RunsOwed>(event.data).owed)
      for (const { automationId } of runs) if (activations.has(automationId)) found.add(runIdOf(trigger, automationId))
  }
  return found
}
