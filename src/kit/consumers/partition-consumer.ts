import { setMaxListeners } from 'node:events'
import type { EventLog } from '../../engines/event-log.ts'
import type { RecordedEvent } from '../../kernel/event.ts'
import type { Logger } from '../../kernel/logger.ts'
import { systemClock } from '../../kernel/system-clock.ts'
import { breathe } from '../../kernel/breath.ts'
import type { IsOurs, Lag } from './follower.ts'
import { forever, within } from './retry.ts'

/**
 * Something that follows the streams of partitions. `handle` is awaited, entry by entry: a promise is backpressure.
 * What it keeps in memory it stores by itself, together with its checkpoint, about once a second.
 */
export interface PartitionConsumer<Entry> {
  name: string
  /** Restores what is needed and answers the revision of the last entry that is already applied, -1 for none. */
  load(partition: number): Promise<number>
  handle(entry: Entry, partition: number): void | Promise<void>
  /** Revision up to which all is stored that comes of the entries; absent where that is what was handled. */
  storedThrough?(partition: number): number
  /** Stores what it can, then forgets the partition: nothing of it is written afterwards. */
  leave?(partition: number): Promise<void>
}

export interface PartitionFeedOptions<Entry> {
  log: EventLog
  logger: Logger
  streamOf: (partition: number) => string
  decode: (event: RecordedEvent, partition: number) => Entry
}

export interface Waiting<Entry> {
  revision: number
  loggedAt: number
  entry: Entry
  weight: number
}

/** What may wait for one consumer in memory: entries, and their weight; one that is further behind reads the log instead. */
const INBOX_MAX = 2_048
const INBOX_WEIGHT_MAX = 65_536
/** Events of one read while catching up. */
const PAGE_EVENTS = 64
const MARK_MS = 100
const MARKS_MAX = 1_000

/** One consumer of one partition's stream: what waits for it in memory, and the loop that hands it over. */
export class FedConsumer<Entry> {
  private readonly options: PartitionFeedOptions<Entry>
  private readonly partition: number
  private readonly consumer: PartitionConsumer<Entry>
  private readonly isOurs: IsOurs | undefined
  private readonly abort = new AbortController()
  private running: Promise<void> = Promise.resolve()
  private loading: Promise<unknown> = Promise.resolve()
  /** Revision of the last entry handled. */
  private at: number
  /** Revision of the last entry that was taken from the inbox or read from the log to be handled. */
  private underWay: number
  private head = -1
  private readonly handled = new Handled()
  /** Logged time of what it is behind since; undefined while it has handled all that is known. */
  private behindSince: number | undefined
  private inbox: Waiting<Entry>[] = []
  /** Sum of the weights in the inbox. */
  private inboxWeight = 0
  private wake: (() => void) | undefined

  constructor(
    options: PartitionFeedOptions<Entry>,
    partition: number,
    consumer: PartitionConsumer<Entry>,
    at: number,
    isOurs?: IsOurs,
  ) {
    this.options = options
    this.isOurs = isOurs
    this.partition = partition
    this.consumer = consumer
    this.at = at
    this.underWay = at
    setMaxListeners(0, this.abort.signal)
  }

  start(head: number): void {
    this.head = head
    const { logger } = this.options
    const onFailure = (error: unknown, failures: number): void => {
      const { name: consumer } = this.consumer
      logger.error('consumer failed', { consumer, partition: this.partition, error: String(error), failures })
    }
    let mustLoad = false
    const run = async (progressed: () => void): Promise<void> => {
      if (mustLoad) await this.reload()
      mustLoad = true
      while (!this.abort.signal.aborted) {
        await this.step()
        progressed()
      }
    }
    this.running = forever(run, { clock: systemClock, signal: this.abort.signal, onFailure })
  }

  /** Whether an entry is the very next one for the consumer, and there is room for it. */
  takes(revision: number): boolean {
    const { inbox, inboxWeight, underWay } = this
    return (
      (inbox.length > 0 ? inbox[inbox.length - 1].revision : underWay) + 1 === revision &&
      inbox.length < INBOX_MAX &&
      inboxWeight < INBOX_WEIGHT_MAX
    )
  }

  offer(waiting: Waiting<Entry>): void {
    if (!this.takes(waiting.revision)) return
    this.inbox.push(waiting)
    this.inboxWeight += waiting.weight
    this.wake?.()
  }

  knowHead(revision: number, loggedAt: number): void {
    this.head = revision
    this.behindSince ??= loggedAt
    this.wake?.()
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
    this.abort.abort()
    this.wake?.()
    await this.running
  }

  /**
   * Resolves when the consumer may leave the partition: what it handles is waited for so long, what it loads until its end,
   * since that would bring back what is left.
   */
  async stop(timeoutMs: number): Promise<void> {
    await within(systemClock, timeoutMs, this.close())
    await this.loading.catch(() => undefined) // who left does not load it again
  }

  /** Handles what is next, from the inbox or from the log; waits when there is nothing. */
  private async step(): Promise<void> {
    while (this.inbox.length > 0 && this.inbox[0].revision <= this.at) this.take()
    const next = this.inbox[0]
    if (next !== undefined && next.revision === this.at + 1) {
      this.take()
      this.underWay = next.revision
      await this.handle(next)
    } else if (this.at < this.head) {
      await this.catchUp()
    } else {
      this.behindSince = undefined
      if (!this.abort.signal.aborted) await new Promise<void>((resume) => (this.wake = resume))
      this.wake = undefined
    }
  }

  private async catchUp(): Promise<void> {
    const { log, streamOf, decode } = this.options
    const events = await log.read(streamOf(this.partition), this.at + 1, PAGE_EVENTS)
    if (events.length === 0) this.at = this.head // all that was there is truncated
    this.underWay = events.at(-1)?.revision ?? this.at
    for (const event of events) {
      if (this.abort.signal.aborted) return
      await this.handle({ ...event, entry: decode(event, this.partition), weight: 1 })
    }
  }

  private async handle({ revision, loggedAt, entry }: Waiting<Entry>): Promise<void> {
    const pause = breathe()
    if (pause !== undefined) await pause
    this.handled.note(revision, loggedAt)
    const handling = this.consumer.handle(entry, this.partition)
    if (handling !== undefined) await handling
    this.at = revision
    this.behindSince = loggedAt
  }

  private take(): void {
    this.inboxWeight -= this.inbox.shift()?.weight ?? 0
  }

  private async reload(): Promise<void> {
    const isOurs = (await this.isOurs?.()) ?? true
    if (!isOurs || this.abort.signal.aborted) throw new Error('another process has the partition')
    const loading = this.consumer.load(this.partition)
    this.loading = loading
    this.at = await loading
    this.underWay = this.at
    this.handled.clear()
    this.inbox.length = 0
    this.inboxWeight = 0
  }
}

/** When entries were logged that are handled and perhaps not stored: one mark for each tenth of a second. */
class Handled {
  private marks: { revision: number; loggedAt: number }[] = []
  private last = -1

  note(revision: number, loggedAt: number): void {
    this.last = revision
    const newest = this.marks.at(-1)
    if (newest !== undefined && Math.abs(loggedAt - newest.loggedAt) < MARK_MS) return
    if (this.marks.length >= MARKS_MAX) this.marks = this.marks.filter((_, i) => i % 2 === 0)
    this.marks.push({ revision, loggedAt })
  }

  /** Logged time of the first entry behind that revision; undefined where none was handled. */
  loggedAfter(stored: number): number | undefined {
    while (this.marks.length > 1 && this.marks[1].revision <= stored + 1) this.marks.shift()
    return this.last > stored ? this.marks[0]?.loggedAt : undefined
  }

  clear(): void {
    this.marks = []
    this.last = -1
  }
}
