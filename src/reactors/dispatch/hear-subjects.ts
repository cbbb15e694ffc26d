import type { RecordedEvent } from '../../kernel/event.ts'
import { idOfStream } from '../../kit/commands/declared-event.ts'
import { Follower, type FollowerServices } from '../../kit/consumers/follower.ts'
import { partitionOf } from '../../features/locations/events.ts'
import type { OwnedPartition } from './partition.ts'
import { SUBJECT_PREFIXES } from './subject-event.ts'

export interface HearSubjectsOptions extends FollowerServices {
  /** Number of partitions of the log. */
  partitions: number
  owned: () => OwnedPartition[]
  /** Owes what the event leads to, unless the partition has heard of it. */
  owe: (event: RecordedEvent, owned: OwnedPartition) => Promise<void>
}

/** Hears of tasks and records: each belongs to one partition, as trackers do, and each partition remembers how far it has heard. */
export class HearSubjects {
  private readonly options: HearSubjectsOptions
  private follower: Follower | undefined
  /** One follower ends before the next begins. */
  private turn: Promise<void> = Promise.resolve()

  constructor(options: HearSubjectsOptions) {
    this.options = options
  }

  /** Begins anew from the partition that has heard least. */
  restart(): void {
    this.inTurn(() => {
      const places = this.options.owned().map(({ pending }) => pending.progress.log)
      if (places.length > 0) this.follower = this.follow().startBehind(Math.min(...places))
    })
  }

  close(): Promise<void> {
    return this.inTurn(() => undefined)
  }

  private inTurn(begin: () => void): Promise<void> {
    this.turn = this.turn.then(async () => {
      await this.follower?.close()
      this.follower = undefined
      begin()
    })
    return this.turn
  }

  private follow(): Follower {
    return new Follower(this.options, {
      name: 'hear-subjects',
      source: { prefixes: SUBJECT_PREFIXES },
      handle: async ({ events, checkpoint }) => {
        for (const event of events) await this.apply(event)
        for (const { pending } of this.options.owned())
          if (pending.progress.log < checkpoint) pending.heardLog(checkpoint)
        return undefined
      },
    })
  }

  private async apply(event: RecordedEvent): Promise<void> {
    const partition = partitionOf(idOfStream(event.stream), this.options.partitions)
    const owned = this.options.owned().find((one) => one.partition === partition)
    if (owned !== undefined && event.position > owned.pending.progress.log) await this.options.owe(event, owned)
  }
}
