import type { FollowBatch } from '../../engines/event-log.ts'
import type { RecordedEvent } from '../../kernel/event.ts'
import { systemClock } from '../../kernel/system-clock.ts'
import type { ConsumerTurn } from './consumer-turn.ts'
import { Follower, type IsOurs, type Lag } from './follower.ts'
import type { PartitionFeedOptions, Waiting } from './feed-options.ts'
import { FedConsumer, type PartitionConsumer } from './partition-consumer.ts'

/** Events of one read while following. */
const PAGE_EVENTS = 64
/** Known events back from the log after which they are no longer read. */
const ECHOES_MAX = 16
/** Known events outweighed by one that nobody told: where others append untold, following goes on. */
const ECHOES_LOST = 8
/** Time without entries after which the log is followed again: under load a partition gets a few large batches a second. */
const QUIET_MS = 1_000
/** Longest wait for a running handler when its partition goes. */
const LEAVE_MS = 2_000
/** Longest wait for what other processes may tell yet; afterwards the log is followed again. */
const TOLD_MS = 100
/** Entries that wait for the ones before them, in number and in time; afterwards those are read. */
const HELD_MAX = 64
const HELD_MS = 1_000
/** Bytes of the log that weigh as much as one point. */
const BYTES_PER_WEIGHT = 32

/**
 * The consumers of one partition's stream, and the end of the stream as this process knows it. While all that is
 * appended comes from this process or is told by others, and all the time, it does not follow the log, which would only
 * bring it once more: what nobody told makes the next known revision skip some. Then the log is followed again, once for
 * all consumers, and entries are held until those before them have come.
 */
export class FedPartition<Entry> {
  private readonly options: PartitionFeedOptions<Entry>
  private readonly partition: number
  private readonly turn: ConsumerTurn
  private readonly members = new Map<PartitionConsumer<Entry>, FedConsumer<Entry>>()
  /** Undefined while the log is not followed. */
  private follower: Follower | undefined
  private closing: Promise<unknown> = Promise.resolve()
  private quiet: NodeJS.Timeout | undefined
  /** Entries beyond the known end, by revision. */
  private readonly held = new Map<number, Waiting<Entry>>()
  private endHearing: () => void = () => undefined
  /** Has the log followed, while what comes before held entries may be told yet. */
  private awaiting: NodeJS.Timeout | undefined
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
    if (this.quiet !== undefined && this.options.told === undefined) this.follow()
    else if (this.quiet !== undefined) this.awaiting ??= setTimeout(() => this.follow(), TOLD_MS).unref()
    if (this.held.size > HELD_MAX) this.readHeld()
    else this.holding ??= setTimeout(() => this.readHeld(), HELD_MS).unref()
  }

  /** Gives the held entries that are next; those that consumers know of by now are forgotten. */
  private giveHeld(): void {
    if (this.held.size === 0) return
    for (let next = this.held.get(this.head + 1); next !== undefined; next = this.held.get(this.head + 1)) {
      this.held.delete(next.revision)
      this.give(next)
      this.holding?.refresh()
      this.awaiting?.refresh()
    }
    for (const revision of this.held.keys()) if (revision <= this.head) this.held.delete(revision)
    if (this.held.size === 0) this.endHolding()
  }

  private endHolding(): void {
    clearTimeout(this.holding)
    clearTimeout(this.awaiting)
    this.holding = undefined
    this.awaiting = undefined
  }

  /** The log was not followed in time: consumers read what comes before the held entries by themselves. */
  private readHeld(): void {
    for (const waiting of [...this.held.values()].sort((a, b) => a.revision - b.revision)) this.give(waiting)
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
    this.endHearing()
    clearTimeout(this.quiet)
    this.endHolding()
    const members = [...this.members.values()].map((member) => member.close())
    await Promise.all([this.closing, this.follower?.close(), ...members])
  }

  /** Takes from now on what other processes append. */
  open(): this {
    const { told, streamOf } = this.options
    if (told !== undefined) this.endHearing = told.hear(streamOf(this.partition), (event) => this.hearTold(event))
    return this.follow()
  }

  private hearTold(event: RecordedEvent): void {
    if (this.isClosed) return
    // It came from the log before: as told as if it came now.
    if (event.revision <= this.head) return this.noteEchoes(1 + ECHOES_LOST, 0)
    const isNext = event.revision === this.head + 1
    const isWanted = !isNext || [...this.members.values()].some((member) => member.takes(event.revision))
    const waiting = isWanted ? this.decoded(event) : undefined
    if (waiting !== undefined) return this.offer(waiting)
    if (!isNext) return
    this.noteHead(event.revision, event.loggedAt)
    this.giveHeld()
    this.quiet?.refresh()
  }

  /** Reads from now on the events that other processes append after the known end. */
  follow(): this {
    if (this.isClosed) return this
    const { log, logger, streamOf } = this.options
    const stream = streamOf(this.partition)
    clearTimeout(this.quiet)
    clearTimeout(this.awaiting)
    this.quiet = undefined
    this.awaiting = undefined
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
