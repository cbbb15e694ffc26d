import type { RecordedEvent } from '../../kernel/event.ts'
import { grouped } from '../../kernel/grouped.ts'
import { idOfStream } from '../../kit/commands/declared-event.ts'
import type { FollowerServices } from '../../kit/consumers/follower.ts'
import { partitionOf } from '../../features/locations/events.ts'
import { AUTOMATION_PREFIXES } from '../../features/automations/events.ts'
import { assertAutomationsListed, type AutomationsListed, isOfAutomation } from './activations.ts'
import { HearFacts } from './hear-facts.ts'
import type { OwnedPartition } from './partition.ts'
import { SUBJECT_PREFIXES } from './subject-event.ts'

export interface HearSubjectsOptions extends FollowerServices {
  partitions: number
  owned: () => OwnedPartition[]
  /** Called before the first of the events that were read together. */
  begin: () => void
  automationsListed?: AutomationsListed
  /** Owes runs for events that the partition has not read yet. */
  owe: (events: readonly RecordedEvent[], owned: OwnedPartition) => Promise<void>
}

const EVENTS_AT_ONCE = 100

/**
 * Follows tasks and records: each belongs to one partition, as trackers do. Automations are followed in the same order,
 * so that the table has those that were activated before.
 */
export const hearSubjects = (options: HearSubjectsOptions): HearFacts =>
  new HearFacts(options, options.owned, {
    name: 'hear-subjects',
    prefixes: [...SUBJECT_PREFIXES, ...AUTOMATION_PREFIXES],
    heard: ({ pending }) => pending.progress.log,
    moveTo: ({ pending }, position) => pending.heardLog(position),
    begin: async (events) => {
      await assertAutomationsListed(options, events)
      options.begin()
    },
    apply: async (events, hearing) => {
      const byPartition = grouped(
        events.filter((event) => !isOfAutomation(event)),
        ({ stream }) => partitionOf(idOfStream(stream), options.partitions),
      )
      await Promise.all(hearing.map((owned) => oweAll(options, byPartition.get(owned.partition) ?? [], owned)))
    },
  })

/** Events of one partition in their order, several with one append. */
const oweAll = async (
  { owe }: HearSubjectsOptions,
  events: readonly RecordedEvent[],
  owned: OwnedPartition,
): Promise<void> => {
  const unheard = events.filter(({ position }) => position > owned.pending.progress.log)
  for (let from = 0; from < unheard.length; from += EVENTS_AT_ONCE)
    await owe(unheard.slice(from, from + EVENTS_AT_ONCE), owned)
}
