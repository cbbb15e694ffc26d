import { setMaxListeners } from 'node:events'
import type { EventLog } from '../../engines/event-log.ts'
import type { RecordedEvent } from '../../kernel/event.ts'
import type { Logger } from '../../kernel/logger.ts'
import { systemClock } from '../../kernel/system-clock.ts'
import { breathe, hasBreath } from '../../kernel/breath.ts'
import type { ConsumerTurn, TurnTaker } from './consumer-turn.ts'
import type { IsOurs, Lag } from './follower.ts'
import { defer } from './deferred.ts'
import { HandledMarks } from './handled-marks.ts'
import { Inbox, type Waiting } from './inbox.ts'
import { decodePage, type PageSize } from './pages.ts'
import { forever, within } from './retry.ts'

/**
 * A consumer of the streams of partitions. `handle` is awaited, entry by entry: a promise is backpressure. It stores
 * its own memory, together with its checkpoint, about once a second.
 */
export interface PartitionConsumer<Entry> {
  name: string
  /** Whether loading and leaving a partition use the processor for long. */
  isSlow?: boolean
  /** Restores its state and answers the revision of the last entry already applied, -1 for none. */
  load(partition: number): Promise<number>
  handle(entry: Entry, partition: number): void | Promise<void>
  /**
   * Called where entries were truncated before it has read them: what follows from them is in tables or snapshots alone.
   * Where it throws, it is loaded again.
   */
  skipped?(partition: number): void
  /** Called while catching up, before these entries are handled one by one: may read for all of them at once. */
  foresee?(entries: readonly Entry[], partition: number): Promise<void>
  /** Revision through which the results of all entries are stored; absent where that is the last entry handled. */
  storedThrough?(partition: number): number
  /** Stores as much as it can, then forgets the partition: nothing of it is written afterwards. */
  leave?(partition: number): Promise<void>
  /** Present where people watch the results: resolves when those of all that was handled are stored, or could not be. */
  shown?(partition: number): Promise<void>
  /**
   * Set by the feed; to be called when the loaded state of a partition has become another owner's: then it is loaded
   * again, though no entry comes.
   */
  onLost?: (partition: number) => void
}

export interface PartitionFeedOptions<Entry> {
  log: EventLog
  logger: Logger
  streamOf: (partition: number) => string
  decode: (event: RecordedEvent, partition: number) => Entry
  page: PageSize // consumers of one feed learn the size of events from each other
}

/**
 * One consumer of one partition's stream: its queue in memory, and the handing over. Entries handled at once are handed
 * over in the turn of all consumers; a loop of its own reads the log, waits for slower ones, and retries.
 */
export class FedConsumer<Entry> implements TurnTaker {
  /** Resolves when it first has nothing left to handle. */
  readonly caughtUp = defer()
  private readonly options: PartitionFeedOptions<Entry>
  private readonly partition: number
  private readonly consumer: PartitionConsumer<Entry>
  private readonly isOurs: IsOurs | undefined
  private readonly turn: ConsumerTurn
  private readonly abort = new AbortController()
  private running: Promise<void> = Promise.resolve()
  private loading: Promise<number> = Promise.resolve(-1)
  /** Revision of the last entry handled. */
  private at: number
  /** Revision of the last entry taken from the inbox or read from the log to be handled. */
  private underWay: number
  private head = -1
  private readonly handled = new HandledMarks()
  /** Logged time since which it is behind; undefined while it has handled everything known. */
  private behindSince: number | undefined
  private readonly inbox = new Inbox<Entry>()
  /** Ends the rest of the loop; undefined while it does not rest. */
  private wake: (() => void) | undefined
  private isLost = false
  private isInTurn = false
  /** Entries handed over in a turn and not finished. */
  private begun: { work: Promise<void>; waiting: Waiting<Entry> } | undefined
  private isClosed = false
  private progressed: () => void = () => undefined

  constructor(
    options: PartitionFeedOptions<Entry>,
    partition: number,
    consumer: PartitionConsumer<Entry>,
    at: number,
    turn: ConsumerTurn,
    isOurs?: IsOurs,
  ) {
    this.options = options
    this.turn = turn
    this.isOurs = isOurs
    this.partition = partition
    this.consumer = consumer
    this.at = at
    this.underWay = at
    setMaxListeners(0, this.abort.signal)
  }

  start(head: number): void {
    this.head = head
    const { consumer, partition, options } = this
    const onFailure = (error: unknown, failures: number): void =>
      options.logger.error('consumer failed', { consumer: consumer.name, partition, error: String(error), failures })
    let mustLoad = false
    const run = async (progressed: () => void): Promise<void> => {
      if (mustLoad) await this.reload()
      mustLoad = true
      this.progressed = progressed
      while (!this.isClosed) {
        await this.step()
        progressed()
      }
    }
    this.running = forever(run, { clock: systemClock, signal: this.abort.signal, onFailure })
  }

  /**
   * Whether there is room for an entry that follows those in the inbox. The first may be one beyond what is under way:
   * the log is read up to it, or a consumer once behind would read all by itself for as long as entries come.
   */
  takes(revision: number): boolean {
    return this.inbox.takes(revision, this.underWay)
  }

  offer(waiting: Waiting<Entry>): void {
    if (!this.takes(waiting.revision)) return
    this.inbox.push(waiting)
    if (this.wake === undefined || this.isInTurn) return
    this.isInTurn = true
    this.turn.add(this.consumer, this)
  }

  /** Called after the entry with that revision is offered. */
  knowHead(revision: number, loggedAt: number): void {
    this.head = revision
    this.behindSince ??= loggedAt
    if (!this.isInTurn) this.endRest()
  }

  takeTurn(): boolean {
    // The loop may have been woken meanwhile: then the inbox is its own.
    while (this.wake !== undefined) {
      const next = this.nextInInbox()
      if (next === undefined) break
      if (!hasBreath()) return false
      const work = this.begin(next)
      if (work === undefined) this.end(next)
      else {
        this.begun = { work, waiting: next }
        this.endRest()
      }
    }
    this.isInTurn = false
    if (this.at < this.head) this.endRest()
    else this.behindSince = undefined
    return true
  }

  /** The loaded state has become useless. */
  lose(): void {
    this.isLost = true
    this.endRest()
  }

  lag(head: number, now: number): Lag {
    const { consumer, partition } = this
    const stored = Math.min(this.at, consumer.storedThrough?.(partition) ?? this.at)
    const since = stored >= head ? undefined : (this.handled.loggedAfter(stored) ?? this.behindSince)
    return {
      consumer: consumer.name,
      partition: String(partition),
      events: Math.max(0, head - stored),
      seconds: since === undefined ? 0 : Math.max(0, (now - since) / 1000),
    }
  }

  async close(): Promise<void> {
    this.isClosed = true
    this.abort.abort()
    this.endRest()
    await this.running
  }

  /**
   * Resolves when the consumer may leave the partition: a running handler is awaited until the timeout, a load until
   * its end, since it would bring back the state that is being left.
   */
  async stop(timeoutMs: number): Promise<void> {
    await within(systemClock, timeoutMs, this.close())
    await this.loading.catch(() => undefined) // a consumer that left does not load it again
  }

  /** Handles the next entry, from the inbox or from the log; rests when there is none. */
  private async step(): Promise<void> {
    if (this.isLost) throw new Error(`partition ${this.partition} was lost`)
    const next = this.nextInInbox()
    if (next !== undefined) await this.handle(next)
    else if (this.at < this.head) await this.catchUp()
    else await this.rest()
  }

  /** Waits for an entry that no turn can handle, or that a turn began and could not finish. */
  private async rest(): Promise<void> {
    this.behindSince = undefined
    this.caughtUp.resolve()
    if (!this.isClosed) await new Promise<void>((resume) => (this.wake = resume))
    const { begun } = this
    if (begun === undefined) return
    this.begun = undefined
    await begun.work
    this.end(begun.waiting)
  }

  private endRest(): void {
    const { wake } = this
    this.wake = undefined
    wake?.()
  }

  /** The entry in the inbox to be handled now. */
  private nextInInbox(): Waiting<Entry> | undefined {
    const { inbox, at } = this
    while (inbox.first !== undefined && inbox.first.revision <= at) inbox.shift()
    return inbox.first?.revision === at + 1 ? inbox.first : undefined
  }

  private async catchUp(): Promise<void> {
    const { consumer, partition } = this
    const { log, streamOf, decode, page } = this.options
    const missing = (this.inbox.first?.revision ?? Infinity) - 1 - this.at
    const read = await log.read(streamOf(partition), this.at + 1, Math.min(missing, page.events))
    page.note(read)
    // Behind truncated ones come others, maybe those that the inbox has or has got meanwhile.
    const end = this.inbox.first?.revision ?? Infinity
    const events = read.filter(({ revision }) => revision < end)
    if ((events[0]?.revision ?? end) > this.at + 1) consumer.skipped?.(partition)
    if (events.length === 0) this.at = Math.min(this.head, end - 1) // all of it is truncated
    this.underWay = events.at(-1)?.revision ?? this.at
    const waiting = await decodePage(events, (event) => decode(event, partition))
    const entries = waiting.map(({ entry }) => entry)
    if (entries.length > 1 && !this.isClosed) await consumer.foresee?.(entries, partition)
    for (const one of waiting) {
      if (this.isClosed) return
      await this.handle(one)
    }
  }

  private async handle(waiting: Waiting<Entry>): Promise<void> {
    const pause = breathe()
    if (pause !== undefined) await pause
    const work = this.begin(waiting)
    if (work !== undefined) await work
    this.end(waiting)
  }

  /** Hands an entry over; a promise where it has not finished yet, or has failed. */
  private begin({ revision, loggedAt, entry }: Waiting<Entry>): Promise<void> | undefined {
    if (this.inbox.first?.revision === revision) this.inbox.shift()
    this.underWay = Math.max(this.underWay, revision)
    this.handled.note(revision, loggedAt)
    try {
      return this.consumer.handle(entry, this.partition) ?? undefined
    } catch (error) {
      return Promise.reject(error)
    }
  }

  private end({ revision, loggedAt }: Waiting<Entry>): void {
    this.at = revision
    this.behindSince = loggedAt
    this.progressed()
  }

  private async reload(): Promise<void> {
    const isOurs = (await this.isOurs?.()) ?? true
    if (!isOurs || this.isClosed) throw new Error('another process has the partition')
    this.isLost = false
    this.loading = this.consumer.load(this.partition)
    this.at = await this.loading
    this.underWay = this.at
    this.handled.clear()
    this.inbox.clear()
  }
}
