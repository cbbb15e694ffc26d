import type { Clock } from '../../kernel/clock.ts'
import type { Logger } from '../../kernel/logger.ts'
import type { IsOurs } from './follower.ts'
import type { PartitionConsumer } from './partition-consumer.ts'
import type { PartitionFeed } from './partition-feed.ts'
import { untilDone } from './retry.ts'

/** A part that one process at a time runs: a consumer of the log, or one partition of it. */
export interface Owned {
  /** Name of the part; ends with `-<partition>` for a partition. */
  name: string
  /** Whether taking and leaving it use the processor for long: nothing that does not waits for it. */
  isSlow?: boolean
  /**
   * Present for a part whose results people watch: it is taken before all others. Resolves when what waited for it is
   * stored.
   */
  shown?(): Promise<unknown>
  /** Called when the part becomes this process's. */
  take(isOurs: IsOurs): Promise<void>
  /** Called when the part goes: resolves when nothing of it runs here any more. */
  leave(): Promise<void>
}

/** Decides which process runs which part. Checkpoints have fences too: a process that lost one stores nothing. */
export interface Owners {
  /**
   * Joins in running these parts. Resolves when each is taken, or another process's; slow ones may be taken later.
   * `leave` ends it.
   */
  join(all: readonly Owned[]): Promise<{ leave(): Promise<void> }>
  /** Starts to leave everything at once, if another process can take it; `leave` waits for its end. */
  leaveAll(): void
  /** Makes the owners of these leave them while `run` runs. */
  borrow<Result>(names: readonly string[], run: () => Promise<Result>): Promise<Result>
}

/** For the one process of embedded engines: it runs everything. */
export class SoleOwner implements Owners {
  private readonly clock: Clock
  private readonly logger: Logger
  private readonly joined = new Map<string, { owned: Owned; end: AbortController; taken: Promise<void> }>()

  constructor({ clock, logger }: { clock: Clock; logger: Logger }) {
    this.clock = clock
    this.logger = logger
  }

  async join(all: readonly Owned[]): Promise<{ leave(): Promise<void> }> {
    const end = new AbortController()
    const own = all.map((owned) => {
      const taken = owned.isSlow === true ? this.takeUntilDone(owned, end.signal) : owned.take(isOurs)
      return { owned, end, taken }
    })
    for (const one of own) this.joined.set(one.owned.name, one)
    await Promise.all(own.filter(({ owned }) => owned.isSlow !== true).map(({ taken }) => taken))
    return {
      leave: async () => {
        for (const { name } of all) this.joined.delete(name)
        end.abort()
        await Promise.all(own.map(({ owned, taken }) => taken.then(() => owned.leave())))
      },
    }
  }

  leaveAll(): void {
    // Nobody could take it.
  }

  async borrow<Result>(names: readonly string[], run: () => Promise<Result>): Promise<Result> {
    const borrowed = names.map((name) => this.joined.get(name)).filter((one) => one !== undefined)
    await Promise.all(borrowed.map(({ owned, taken }) => taken.then(() => owned.leave())))
    try {
      return await run()
    } finally {
      await Promise.all(borrowed.map(({ owned, end }) => this.takeUntilDone(owned, end.signal)))
    }
  }

  private takeUntilDone(owned: Owned, signal: AbortSignal): Promise<void> {
    const onFailure = (error: unknown): void =>
      this.logger.error('a consumer could not be taken', { consumer: owned.name, error: String(error) })
    return untilDone(() => owned.take(isOurs), { clock: this.clock, signal, onFailure })
  }
}

const isOurs: IsOurs = async () => true

/** The parts of a consumer, one for each partition, fed while they are this process's. */
export const ownedPartitions = <Entry>(
  feed: PartitionFeed<Entry>,
  consumer: PartitionConsumer<Entry>,
  partitions: number,
): Owned[] =>
  Array.from({ length: partitions }, (_, partition) => ({
    name: `${consumer.name}-${partition}`,
    isSlow: consumer.isSlow,
    ...(consumer.shown !== undefined && {
      shown: () => feed.caughtUp(consumer, partition).then(() => consumer.shown?.(partition)),
    }),
    take: (isOurs) => feed.add(consumer, partition, isOurs),
    leave: () => feed.remove(consumer, partition),
  }))

/** A part that is opened when it is taken, and closed when it goes. */
export const ownedPart = (name: string, open: (isOurs: IsOurs) => Promise<{ close(): Promise<void> }>): Owned => {
  let part: { close(): Promise<void> } | undefined
  return {
    name,
    take: async (isOurs) => {
      part = await open(isOurs)
    },
    leave: async () => {
      await part?.close()
      part = undefined
    },
  }
}
