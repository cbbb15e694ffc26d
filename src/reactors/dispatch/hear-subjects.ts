import type { RecordedEvent } from '../../kernel/event.ts'
import { idOfStream } from '../../kit/commands/declared-event.ts'
import type { FollowerServices } from '../../kit/consumers/follower.ts'
import { partitionOf } from '../../features/locations/events.ts'
import { HearFacts } from './hear-facts.ts'
import type { OwnedPartition } from './partition.ts'
import { SUBJECT_PREFIXES } from './subject-event.ts'

export interface HearSubjectsOptions extends FollowerServices {
  /** Number of partitions of the log. */
  partitions: number
  owned: () => OwnedPartition[]
  /** Called before the first of the events that were read together. */
  begin: () => void
  /** Owes what the event leads to, unless the partition has heard of it. */
  owe: (event: RecordedEvent, owned: OwnedPartition) => Promise<void>
}

/** Hears of tasks and records: each belongs to one partition, as trackers do. */
export const hearSubjects = (options: HearSubjectsOptions): HearFacts =>
  new HearFacts(options, options.owned, {
    name: 'hear-subjects',
    prefixes: SUBJECT_PREFIXES,
    heard: ({ pending }) => pending.progress.log,
    moveTo: ({ pending }, position) => pending.heardLog(position),
    begin: options.begin,
    apply: async (event) => {
      const partition = partitionOf(idOfStream(event.stream), options.partitions)
      const owned = options.owned().find((one) => one.partition === partition)
      if (owned !== undefined && event.position > owned.pending.progress.log) await options.owe(event, owned)
    },
  })
