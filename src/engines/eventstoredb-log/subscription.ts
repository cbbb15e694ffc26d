import { once } from 'node:events'
import type { Readable } from 'node:stream'
import type { RecordedEvent } from '../../kernel/event.ts'
import { recordedOf } from './events.ts'
import { Unanswered } from './unanswered.ts'

/** Maximum that one subscription holds in this process; beyond, it is ended, and started again when that is taken. */
const EVENTS_MAX = 512
const BYTES_MAX = 2 * 1024 * 1024

/** Used part of the client's subscriptions: a stream of objects that also reports when it is caught up. */
export type ClientSubscription = Readable & {
  unsubscribe(): Promise<void>
  convertGrpcEvent: typeof recordedOf
}

/** Emitted on a subscription that may have passed foreign events. */
export const PASSED = 'passed'

export interface BatchOptions {
  eventsMax: number
  /** Longest time for the server to confirm the subscription: a lost one would be awaited for ever. */
  deadlineMs: number
  /** Whether a batch without events is of use, as everything received was taken. */
  hasPassed?(): boolean
}

export interface SubscriptionBatch {
  events: RecordedEvent[]
  /** No further events were there when this batch was read. */
  isCaughtUp: boolean
}

/**
 * Events of a subscription, in batches of those received so far. It ends by the signal, or when its reader is so slow
 * that too much waits here; it throws when the server or the network ends it. Events are taken off the wire at once:
 * all calls of a client share the window of one connection, and a stream left unread would hold up every other, also
 * the answer to an append that its reader waits for. The client reports "caught up" when it reads that from the wire,
 * before the events in front of it were taken: so it counts once they are.
 */
export async function* batchesOf(
  subscription: ClientSubscription,
  signal: AbortSignal,
  { eventsMax, deadlineMs, hasPassed = () => false }: BatchOptions,
): AsyncGenerator<SubscriptionBatch> {
  const held = new Held(subscription)
  const { news } = held
  let taken = 0
  let caughtUpAfter = Number.POSITIVE_INFINITY
  let failure: { error: unknown } | undefined
  subscription.on('caughtUp', () => {
    caughtUpAfter = Math.min(caughtUpAfter, taken + held.length)
    news.tell()
  })
  subscription.on('fellBehind', () => (caughtUpAfter = Number.POSITIVE_INFINITY))
  subscription.on(PASSED, news.tell)
  const end = (error: unknown = new Error('the subscription ended')): void => {
    failure ??= { error }
    news.tell()
  }
  subscription.on('error', end)
  subscription.on('end', () => end())
  subscription.on('close', () => end())
  const late = setTimeout(() => end(new Unanswered('the subscription was not confirmed in time')), deadlineMs)
  subscription.on('confirmation', () => clearTimeout(late))
  signal.addEventListener('abort', news.tell)
  let isTold = false
  try {
    while (!signal.aborted) {
      const events = held.take(eventsMax)
      taken += events.length
      const isCaughtUp = taken >= caughtUpAfter && held.length === 0
      // Where it is full, passed events may stand behind events that were not taken.
      if (events.length > 0 || (!held.isFull && ((isCaughtUp && !isTold) || hasPassed()))) {
        isTold = isCaughtUp
        yield { events, isCaughtUp }
      } else if (held.isFull) return
      else if (failure !== undefined) throw failure.error
      else await news.wait()
    }
  } finally {
    clearTimeout(late)
    signal.removeEventListener('abort', news.tell)
    await endOf(subscription)
  }
}

/** Events received and not taken. */
class Held {
  isFull = false
  readonly news = new News()
  private readonly subscription: ClientSubscription
  private events: RecordedEvent[] = []
  private bytes = 0

  constructor(subscription: ClientSubscription) {
    this.subscription = subscription
    subscription.convertGrpcEvent = recordedOf
    subscription.on('readable', () => {
      this.fill()
      this.news.tell()
    })
  }

  get length(): number {
    return this.events.length + this.subscription.readableLength
  }

  take(eventsMax: number): RecordedEvent[] {
    this.fill()
    const events = this.events.splice(0, eventsMax)
    if (this.events.length === 0) this.bytes = 0
    return events
  }

  private fill(): void {
    while (!this.isFull) {
      const event = this.subscription.read() as RecordedEvent | null
      if (event === null) return
      this.events.push(event)
      this.bytes += event.data.byteLength
      if (this.events.length >= EVENTS_MAX || this.bytes >= BYTES_MAX) {
        this.isFull = true
        void this.subscription.unsubscribe().catch(() => undefined)
      }
    }
  }
}

/** Remembers an arrival for which nobody waited. */
export class News {
  private isThere = false
  private wake: (() => void) | undefined

  readonly tell = (): void => {
    this.isThere = true
    this.wake?.()
  }

  async wait(): Promise<void> {
    if (!this.isThere) await new Promise<void>((resume) => (this.wake = resume))
    this.isThere = false
  }
}

const endOf = async (subscription: ClientSubscription): Promise<void> => {
  subscription.on('error', () => undefined) // errors at its end do not matter
  if (subscription.closed) return
  const closed = once(subscription, 'close').catch(() => undefined)
  // Not awaited: where no server is found that would take minutes.
  void subscription.unsubscribe().catch(() => undefined)
  subscription.destroy()
  await closed
}
