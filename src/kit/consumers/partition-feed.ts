import type { FollowBatch } from '../../engines/event-log.ts'
import type { RecordedEvent } from '../../kernel/event.ts'
import { systemClock } from '../../kernel/system-clock.ts'
import { Follower, type IsOurs, type Lag } from './follower.ts'
import { ConsumerTurn } from './consumer-turn.ts'
import { PageSize } from './pages.ts'
import { FedConsumer, type PartitionConsumer, type PartitionFeedOptions } from './partition-consumer.ts'
import type { Waiting } from './inbox.ts'

/** Events of one read while following. */
const PAGE_EVENTS = 64
/** Own events back from the log after which they are no longer read. */
const ECHOES_MAX = 16
/** Own events outweighed by one of another process: on a shared partition, following goes on. */
const ECHOES_LOST = 8
/** Time without own appends after which the log is followed again: under load a partition gets a few large batches a second. */
const QUIET_MS = 1_000
/** Longest wait for a running handler when its partition goes. */
const LEAVE_MS = 2_000
/** Own entries that wait for the ones before them, of another process, in number and in time; afterwards those are read. */
const HELD_MAX = 64
const HELD_MS = 1_000
/** Bytes of the log that weigh as much as one point. */
const BYTES_PER_WEIGHT = 32

/**
 * One reader for each partition's stream and process feeds all its consumers. Entries just appended by this process are
 * given to them, in the order of the log, without being read or decoded again. A consumer that is behind reads the log
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
      if (!this.partitions.has(partition)) this.partitions.set(partition, fresh.follow())
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

/**
 * The consumers of one partition's stream, and the end of the stream as this process knows it. While only this process
 * appends, and all the time, it does not follow the log, which would only bring back its own entries: an append of
 * another one makes the next own revision skip some. Then the log is followed again, once for all consumers, and own
 * entries are held until those before them have come.
 */
class FedPartition<Entry> {
  private readonly options: PartitionFeedOptions<Entry>
  private readonly partition: number
  private readonly turn: ConsumerTurn
  private readonly members = new Map<PartitionConsumer<Entry>, FedConsumer<Entry>>()
  /** Undefined while the log is not followed. */
  private follower: Follower | undefined
  private closing: Promise<unknown> = Promise.resolve()
  private quiet: NodeJS.Timeout | undefined
  /** Own entries beyond the known end, by revision. */
  private readonly held = new Map<number, Waiting<Entry>>()
  private holding: NodeJS.Timeout | undefined
  private echoes = 0
  private head = -1
  private isClosed = false

  constructor(options: PartitionFeedOptions<Entry>, partition: number, turn: ConsumerTurn) {
    this.options = options
    this.partition = partition
    this.turn = turn
  }

  get isEmpty(): boolean {
    return this.members.size === 0
  }

  add(consumer: PartitionConsumer<Entry>, at: number, isOurs?: IsOurs): void {
    const member = new FedConsumer(this.options, this.partition, consumer, at, this.turn, isOurs)
    this.members.set(consumer, member)
    member.start(this.head)
  }

  async remove(consumer: PartitionConsumer<Entry>): Promise<void> {
    const member = this.members.get(consumer)
    this.members.delete(consumer)
    // Its handler may wait for something that never comes; `leave` makes the result useless.
    await member?.stop(LEAVE_MS)
  }

  caughtUp(consumer: PartitionConsumer<Entry>): Promise<void> | undefined {
    return this.members.get(consumer)?.caughtUp.promise
  }

  lose(consumer: PartitionConsumer<Entry>): void {
    this.members.get(consumer)?.lose()
  }

  offer(waiting: Waiting<Entry>): void {
    if (waiting.revision > this.head + 1) return this.hold(waiting)
    this.give(waiting)
    this.giveHeld()
    this.quiet?.refresh()
  }

  private give(waiting: Waiting<Entry>): void {
    for (const member of this.members.values()) member.offer(waiting)
    this.noteHead(waiting.revision, waiting.loggedAt)
  }

  private hold(waiting: Waiting<Entry>): void {
    if (this.isClosed) return
    this.held.set(waiting.revision, waiting)
    if (this.quiet !== undefined) this.follow()
    if (this.held.size > HELD_MAX) this.readHeld()
    else this.holding ??= setTimeout(() => this.readHeld(), HELD_MS).unref()
  }

  /** Gives the held entries that are next; those that consumers know of by now are forgotten. */
  private giveHeld(): void {
    if (this.held.size === 0) return
    for (const [revision, waiting] of this.held) {
      if (revision > this.head + 1) return
      this.held.delete(revision)
      this.holding?.refresh()
      if (revision === this.head + 1) this.give(waiting)
    }
    clearTimeout(this.holding)
    this.holding = undefined
  }

  /** The log was not followed in time: consumers read what comes before the held entries by themselves. */
  private readHeld(): void {
    for (const waiting of this.held.values()) this.give(waiting)
    this.giveHeld()
  }

  async learnHead(): Promise<void> {
    const { log, streamOf } = this.options
    const stream = streamOf(this.partition)
    if ((await log.head(stream)) <= this.head) return
    const [last] = await log.read(stream, 'end', 1, 'backwards')
    if (last !== undefined) this.noteHead(last.revision, last.loggedAt)
  }

  lags(now: number): Lag[] {
    return [...this.members.values()].map((member) => member.lag(this.head, now))
  }

  async close(): Promise<void> {
    this.isClosed = true
    clearTimeout(this.quiet)
    clearTimeout(this.holding)
    const members = [...this.members.values()].map((member) => member.close())
    await Promise.all([this.closing, this.follower?.close(), ...members])
  }

  /** Reads from now on the events that other processes append after the known end. */
  follow(): this {
    if (this.isClosed) return this
    const { log, logger, streamOf } = this.options
    const stream = streamOf(this.partition)
    clearTimeout(this.quiet)
    this.quiet = undefined
    this.echoes = 0
    this.follower = new Follower(
      { log, logger, clock: systemClock },
      {
        name: `follow ${stream}`,
        source: { stream },
        batchEventsMax: PAGE_EVENTS,
        handle: (batch) => this.hear(batch),
      },
    ).startBehind(this.head)
    return this
  }

  /** Counts unneeded entries that came back, and ends following where nearly all are such. */
  private noteEchoes(own: number, others: number): void {
    this.echoes = Math.max(0, this.echoes + own - others * ECHOES_LOST)
    if (this.echoes < ECHOES_MAX || this.follower === undefined || this.isClosed) return
    this.closing = this.follower.close()
    this.follower = undefined
    this.quiet = setTimeout(() => this.follow(), QUIET_MS).unref()
  }

  noteHead(revision: number, loggedAt: number): void {
    if (this.head >= revision) return
    this.head = revision
    for (const member of this.members.values()) member.knowHead(revision, loggedAt)
  }

  /** Takes the events that other processes append. */
  private async hear({ events }: FollowBatch): Promise<undefined> {
    await new Promise((resume) => setImmediate(resume)) // own entries are offered in this turn, not to be decoded
    let echoes = 0
    for (const event of events) {
      if (event.revision <= this.head) echoes++
      const wanting = [...this.members.values()].filter((member) => member.takes(event.revision))
      const waiting = wanting.length > 0 ? this.decoded(event) : undefined
      if (waiting !== undefined) for (const member of wanting) member.offer(waiting)
      this.noteHead(event.revision, event.loggedAt)
      this.giveHeld()
    }
    this.noteEchoes(echoes, events.length - echoes)
    return undefined
  }

  /** Undefined for an event that cannot be decoded: its consumers read it by themselves, and fail there. */
  private decoded(event: RecordedEvent): Waiting<Entry> | undefined {
    try {
      const weight = Math.ceil(event.data.byteLength / BYTES_PER_WEIGHT)
      return { ...event, entry: this.options.decode(event, this.partition), weight }
    } catch (error) {
      this.options.logger.error('an event cannot be decoded', { stream: event.stream, error: String(error) })
      return undefined
    }
  }
}
