import { setMaxListeners } from 'node:events'
import type { EventLog } from '../../engines/event-log.ts'
import type { RecordedEvent } from '../../kernel/event.ts'
import { systemClock } from '../../kernel/system-clock.ts'
import { breathe } from '../../kernel/breath.ts'
import { pause } from './pause.ts'
import { untilDone } from './until-done.ts'

/**
 * Something that follows the streams of partitions. `handle` is awaited, entry by entry: a promise is backpressure.
 * What it keeps in memory it stores by itself, together with its checkpoint, about once a second.
 */
export interface PartitionConsumer<Entry> {
  name: string
  /** Restores what is needed and answers the revision of the last entry that is already applied, -1 for none. */
  load(partition: number): Promise<number>
  handle(entry: Entry, partition: number): void | Promise<void>
  /** All that was there has been handled; called again whenever that becomes true. */
  caughtUp?(partition: number): void
}

export interface FeedLag {
  consumer: string
  partition: number
  events: number
  seconds: number
}

interface Waiting<Entry> {
  revision: number
  loggedAt: number
  entry: Entry
  weight: number
}

interface Member<Entry> {
  consumer: PartitionConsumer<Entry>
  /** Revision of the last entry handled. */
  at: number
  /** Revision of the last entry that was taken from the inbox or read from the log to be handled. */
  underWay: number
  /** Logged time that it is behind since; undefined while it has handled all that is known. */
  behindSince: number | undefined
  inbox: Waiting<Entry>[]
  /** Sum of the weights in the inbox. */
  inboxWeight: number
  wake: (() => void) | undefined
}

interface Head {
  revision: number
  loggedAt: number
}

/** What may wait for one consumer in memory: entries, and their weight; one that is further behind reads the log instead. */
const INBOX_MAX = 2_048
const INBOX_WEIGHT_MAX = 65_536
/** Events of one read while catching up. */
const PAGE_EVENTS = 64
const RETRY_MS = [100, 500, 2_000, 5_000]

/**
 * One reader for each partition's stream and process feeds all its consumers. What this process has just appended is
 * offered to consumers that are caught up without being read or decoded again, but only when its revision is the very
 * next one; everyone else reads the log from where they stand.
 */
export class PartitionFeed<Entry> {
  private readonly members = new Map<number, Member<Entry>[]>()
  private readonly heads = new Map<number, Head>()
  private readonly abort = new AbortController()
  private readonly running: Promise<void>[] = []
  private readonly options: PartitionFeedOptions<Entry>

  constructor(options: PartitionFeedOptions<Entry>) {
    this.options = options
    setMaxListeners(0, this.abort.signal) // each partition follows, and each consumer may pause
  }

  /** Feeds the consumer from its checkpoint, for one partition, from now on. Resolves when it is loaded. */
  async add(consumer: PartitionConsumer<Entry>, partition: number): Promise<void> {
    const at = await consumer.load(partition)
    const member: Member<Entry> = {
      consumer,
      at,
      underWay: at,
      behindSince: undefined,
      inbox: [],
      inboxWeight: 0,
      wake: undefined,
    }
    if (!this.members.has(partition)) {
      this.members.set(partition, [])
      await this.learnHead(partition)
      const { signal } = this.abort
      const onFailure = (error: unknown): void => this.options.onFailure('follow', partition, error)
      this.running.push(
        untilDone(() => this.follow(partition), { clock: systemClock, signal, retryMs: RETRY_MS, onFailure }),
      )
    }
    this.members.get(partition)?.push(member)
    this.running.push(this.run(member, partition))
  }

  /** Offers an entry that this process has just appended. `weight` is what it costs to keep, in points or the like. */
  offer(partition: number, revision: number, loggedAt: number, entry: Entry, weight = 1): void {
    if (!this.members.has(partition)) return
    this.noteHead(partition, revision, loggedAt)
    for (const member of this.members.get(partition) ?? []) this.push(member, { revision, loggedAt, entry, weight })
  }

  /** How far each consumer is behind what is known to be in the log. */
  lags(now: number): FeedLag[] {
    const lags: FeedLag[] = []
    for (const [partition, members] of this.members) {
      const head = this.heads.get(partition)?.revision ?? -1
      for (const { consumer, at, behindSince } of members) {
        const seconds = at >= head || behindSince === undefined ? 0 : Math.max(0, (now - behindSince) / 1000)
        lags.push({ consumer: consumer.name, partition, events: Math.max(0, head - at), seconds })
      }
    }
    return lags
  }

  async close(): Promise<void> {
    this.abort.abort()
    for (const members of this.members.values()) for (const member of members) member.wake?.()
    await Promise.allSettled(this.running)
  }

  private async learnHead(partition: number): Promise<void> {
    const [last] = await this.options.log.read(this.options.streamOf(partition), 'end', 1, 'backwards')
    if (last !== undefined) this.noteHead(partition, last.revision, last.loggedAt)
  }

  private noteHead(partition: number, revision: number, loggedAt: number): void {
    const head = this.heads.get(partition)
    if (head !== undefined && head.revision >= revision) return
    this.heads.set(partition, { revision, loggedAt })
    for (const member of this.members.get(partition) ?? []) {
      member.behindSince ??= loggedAt
      member.wake?.()
    }
  }

  private push(member: Member<Entry>, waiting: Waiting<Entry>): void {
    if (!takes(member, waiting.revision)) return
    member.inbox.push(waiting)
    member.inboxWeight += waiting.weight
    member.wake?.()
  }

  /** Hears of what other processes append. */
  private async follow(partition: number): Promise<void> {
    const { log, streamOf, decode, onFailure } = this.options
    const from = this.heads.get(partition)?.revision
    for await (const batch of log.follow({ stream: streamOf(partition) }, from, this.abort.signal, PAGE_EVENTS)) {
      await new Promise((resume) => setImmediate(resume)) // what this process appended is offered in this turn, and need not be decoded
      for (const event of batch.events) {
        const wanting = (this.members.get(partition) ?? []).filter((member) => takes(member, event.revision))
        this.noteHead(partition, event.revision, event.loggedAt)
        if (wanting.length === 0) continue
        try {
          const entry = decode(event, partition)
          for (const member of wanting)
            this.push(member, { revision: event.revision, loggedAt: event.loggedAt, entry, weight: 1 })
        } catch (error) {
          onFailure('decode', partition, error)
        }
      }
    }
  }

  private async run(member: Member<Entry>, partition: number): Promise<void> {
    let failures = 0
    while (!this.abort.signal.aborted) {
      try {
        await this.step(member, partition)
        failures = 0
      } catch (error) {
        this.options.onFailure(member.consumer.name, partition, error)
        await pause(systemClock, RETRY_MS[Math.min(failures++, RETRY_MS.length - 1)], this.abort.signal)
        await this.reload(member, partition)
      }
    }
  }

  /** Handles what is next, from the inbox or from the log; waits when there is nothing. */
  private async step(member: Member<Entry>, partition: number): Promise<void> {
    while (member.inbox.length > 0 && member.inbox[0].revision <= member.at) take(member)
    const next = member.inbox[0]
    if (next !== undefined && next.revision === member.at + 1) {
      take(member)
      member.underWay = next.revision
      await this.handle(member, partition, next)
    } else if (member.at < (this.heads.get(partition)?.revision ?? -1)) {
      await this.catchUp(member, partition)
    } else {
      member.behindSince = undefined
      member.consumer.caughtUp?.(partition)
      if (!this.abort.signal.aborted) await new Promise<void>((resume) => (member.wake = resume))
      member.wake = undefined
    }
  }

  private async catchUp(member: Member<Entry>, partition: number): Promise<void> {
    const events = await this.options.log.read(this.options.streamOf(partition), member.at + 1, PAGE_EVENTS)
    if (events.length === 0) member.at = this.heads.get(partition)?.revision ?? member.at // all that was there is truncated
    member.underWay = events.at(-1)?.revision ?? member.at
    for (const event of events) {
      if (this.abort.signal.aborted) return
      await this.handle(member, partition, {
        revision: event.revision,
        loggedAt: event.loggedAt,
        entry: this.options.decode(event, partition),
        weight: 1,
      })
    }
  }

  private async handle(member: Member<Entry>, partition: number, waiting: Waiting<Entry>): Promise<void> {
    const pause = breathe()
    if (pause !== undefined) await pause
    const handling = member.consumer.handle(waiting.entry, partition)
    if (handling !== undefined) await handling
    member.at = waiting.revision
    member.behindSince = waiting.loggedAt
  }

  private async reload(member: Member<Entry>, partition: number): Promise<void> {
    try {
      member.at = await member.consumer.load(partition)
    } catch (error) {
      this.options.onFailure(member.consumer.name, partition, error)
    }
    member.underWay = member.at
    member.inbox.length = 0
    member.inboxWeight = 0
  }
}

export interface PartitionFeedOptions<Entry> {
  log: EventLog
  streamOf: (partition: number) => string
  decode: (event: RecordedEvent, partition: number) => Entry
  /** Told of each failure; the consumer is loaded and tried again after a pause. */
  onFailure: (consumer: string, partition: number, error: unknown) => void
}

/** Whether an entry is the very next one for the consumer, and there is room for it. */
const takes = <Entry>({ inbox, inboxWeight, underWay }: Member<Entry>, revision: number): boolean =>
  (inbox.length > 0 ? inbox[inbox.length - 1].revision : underWay) + 1 === revision &&
  inbox.length < INBOX_MAX &&
  inboxWeight < INBOX_WEIGHT_MAX

const take = <Entry>(member: Member<Entry>): void => {
  member.inboxWeight -= member.inbox.shift()?.weight ?? 0
}
