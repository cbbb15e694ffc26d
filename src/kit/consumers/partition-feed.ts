import type { RecordedEvent } from '../../kernel/event.ts'
import { ConsumerTurn } from './consumer-turn.ts'
import { FedPartition } from './fed-partition.ts'
import type { IsOurs, Lag } from './follower.ts'
import { PageSize } from './pages.ts'
import type { PartitionFeedOptions } from './feed-options.ts'
import type { PartitionConsumer } from './partition-consumer.ts'

/**
 * One reader for each partition's stream and process feeds all its consumers. Entries just appended by this process are
 * given to them, in the order of the log, without being read or decoded again, and so are those that other processes
 * tell. A consumer that is behind reads the log
 * from its position up to what it has been given meanwhile. Partitions come and go while it runs.
 */
export class PartitionFeed<Entry> {
  private readonly partitions = new Map<number, FedPartition<Entry>>()
  private readonly options: PartitionFeedOptions<Entry>
  private readonly turn = new ConsumerTurn()
  /** Questions for the last events of partitions. */
  private readonly asked = new Map<number, Promise<RecordedEvent | undefined>>()
  private isClosed = false

  constructor(options: Omit<PartitionFeedOptions<Entry>, 'page'>) {
    this.options = { ...options, page: new PageSize() }
  }

  /**
   * Feeds the consumer from its checkpoint, for one partition, from now on. Resolves when it is loaded. `isOurs` is
   * asked before it is loaded again after a failure; left out, the partition is always ours.
   */
  async add(consumer: PartitionConsumer<Entry>, partition: number, isOurs?: IsOurs): Promise<void> {
    consumer.onLost = (lost) => this.partitions.get(lost)?.lose(consumer)
    const at = await consumer.load(partition)
    if (!this.partitions.has(partition)) {
      const last = await this.lastOf(partition)
      const fresh = new FedPartition(this.options, partition, this.turn)
      if (last !== undefined) fresh.noteHead(last.revision, last.loggedAt)
      if (this.isClosed) throw new Error('the feed is closed')
      // Another consumer may have been quicker. No await from here: a leaving consumer closes an empty partition.
      if (!this.partitions.has(partition)) this.partitions.set(partition, fresh.open())
    }
    this.partitions.get(partition)?.add(consumer, at, isOurs)
  }

  /** Resolves when the consumer of that partition first has nothing left to handle; perhaps never. */
  async caughtUp(consumer: PartitionConsumer<Entry>, partition: number): Promise<void> {
    await this.partitions.get(partition)?.caughtUp(consumer)
  }

  /** The last event of the partition's stream. Consumers that come together share the question. */
  private lastOf(partition: number): Promise<RecordedEvent | undefined> {
    const { log, streamOf } = this.options
    const asking =
      this.asked.get(partition) ??
      log
        .read(streamOf(partition), 'end', 1, 'backwards')
        .then(([last]) => last)
        .finally(() => this.asked.delete(partition))
    this.asked.set(partition, asking)
    return asking
  }

  /** Resolves when the consumer has stored what it can of the partition and forgotten it. */
  async remove(consumer: PartitionConsumer<Entry>, partition: number): Promise<void> {
    const known = this.partitions.get(partition)
    await known?.remove(consumer)
    await consumer.leave?.(partition)
    // A consumer that left more quickly may have closed it and be back in another one.
    if (known === undefined || !known.isEmpty || this.partitions.get(partition) !== known) return
    this.partitions.delete(partition)
    await known.close()
  }

  /** Gives an entry that this process has just appended. `weight` is the cost of keeping it, in points or the like. */
  offer(partition: number, revision: number, loggedAt: number, entry: Entry, weight = 1): void {
    this.partitions.get(partition)?.offer({ revision, loggedAt, entry, weight })
  }

  /** Lag of each consumer's stored checkpoint behind the log. */
  async lags(now: number): Promise<Lag[]> {
    await Promise.all([...this.partitions.values()].map((partition) => partition.learnHead()))
    return [...this.partitions.values()].flatMap((partition) => partition.lags(now))
  }

  async close(): Promise<void> {
    this.isClosed = true
    await Promise.all([...this.partitions.values()].map((partition) => partition.close()))
    this.partitions.clear()
  }
}
