import type { RecordedEvent } from '../../kernel/event.ts'
import { Follower, type FollowerServices, type Lag } from '../../kit/consumers/follower.ts'
import type { OwnedPartition } from './partition.ts'

/** Facts that the partitions of this process follow beside their own streams. */
export interface HeardFacts {
  name: string
  prefixes: readonly string[]
  /** Position up to which the partition has read, and storing a later one. */
  heard: (owned: OwnedPartition) => number
  moveTo: (owned: OwnedPartition, position: number) => void
  /** Called before the first of the events that were read together. */
  begin?: (events: readonly RecordedEvent[]) => Promise<void>
  /** Only for these partitions: one taken meanwhile has not read the events before. */
  apply: (events: readonly RecordedEvent[], owned: readonly OwnedPartition[]) => Promise<void>
}

/** Follows facts of the log for all partitions of this process; each remembers how far it has read. */
export class HearFacts {
  private readonly services: FollowerServices
  private readonly owned: () => OwnedPartition[]
  private readonly facts: HeardFacts
  private follower: Follower | undefined
  /** One follower ends before the next begins. */
  private turn: Promise<void> = Promise.resolve()

  constructor(services: FollowerServices, owned: () => OwnedPartition[], facts: HeardFacts) {
    this.services = services
    this.owned = owned
    this.facts = facts
  }

  /** Restarts from the partition that is furthest behind. */
  restart(): void {
    this.inTurn(() => {
      const hearing = this.owned()
      const positions = hearing.map(this.facts.heard)
      if (positions.length > 0) this.follower = this.follow(hearing).startBehind(Math.min(...positions))
    })
  }

  lags(now: number): Lag[] {
    return this.follower === undefined ? [] : [this.follower.lag(now)]
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

  /** @param hearing the present partitions: those taken later restart the follower */
  private follow(hearing: readonly OwnedPartition[]): Follower {
    const { name, prefixes, heard, moveTo, begin, apply } = this.facts
    return new Follower(this.services, {
      name,
      source: { prefixes },
      handle: async ({ events, checkpoint }) => {
        await begin?.(events)
        const kept = (): OwnedPartition[] => {
          const now = this.owned()
          return hearing.filter((one) => now.includes(one))
        }
        await apply(events, kept())
        for (const owned of kept()) if (heard(owned) < checkpoint) moveTo(owned, checkpoint)
        return undefined
      },
    })
  }
}
