import { once } from 'node:events'
import type { Readable } from 'node:stream'
import type { ResolvedEvent } from '@eventstore/db-client'

/** Resolved events that one subscription may hold in this process. */
export const SUBSCRIPTION_EVENTS_MAX = 512

/** What this file uses of the client's subscriptions: a stream of objects that also says when it is caught up. */
export type ClientSubscription = Readable & { unsubscribe(): Promise<void> }

export interface SubscriptionBatch {
  events: ResolvedEvent[]
  /** Nothing more was there when this batch was read. */
  isCaughtUp: boolean
}

/**
 * What a subscription brings, as batches of what has come so far. It ends by the signal, or throws when the server or the
 * network ends it. The client says "caught up" when it reads that from the wire, before the events in front of it were
 * taken: so it counts once they are.
 */
export async function* batchesOf(
  subscription: ClientSubscription,
  signal: AbortSignal,
  eventsMax: number,
): AsyncGenerator<SubscriptionBatch> {
  let taken = 0
  let caughtUpAfter = Number.POSITIVE_INFINITY
  let failure: { error: unknown } | undefined
  const news = new News()
  subscription.on('caughtUp', () => {
    caughtUpAfter = Math.min(caughtUpAfter, taken + subscription.readableLength)
    news.tell()
  })
  subscription.on('fellBehind', () => (caughtUpAfter = Number.POSITIVE_INFINITY))
  subscription.on('readable', news.tell)
  const end = (error: unknown = new Error('the subscription ended')): void => {
    failure ??= { error }
    news.tell()
  }
  subscription.on('error', end)
  subscription.on('end', () => end())
  subscription.on('close', () => end())
  signal.addEventListener('abort', news.tell)
  let isTold = false
  try {
    while (!signal.aborted) {
      const events = takeOf(subscription, eventsMax)
      taken += events.length
      const isCaughtUp = taken >= caughtUpAfter && subscription.readableLength === 0
      if (events.length > 0 || (isCaughtUp && !isTold)) {
        isTold = isCaughtUp
        yield { events, isCaughtUp }
      } else if (failure !== undefined) throw failure.error
      else await news.wait()
    }
  } finally {
    signal.removeEventListener('abort', news.tell)
    await endOf(subscription)
  }
}

/** Remembers that something came while nobody waited for it. */
class News {
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

const takeOf = (subscription: ClientSubscription, eventsMax: number): ResolvedEvent[] => {
  const events: ResolvedEvent[] = []
  while (events.length < eventsMax) {
    const resolved = subscription.read() as ResolvedEvent | null
    if (resolved === null) break
    events.push(resolved)
  }
  return events
}

const endOf = async (subscription: ClientSubscription): Promise<void> => {
  subscription.on('error', () => undefined) // what it says at its end is of no interest
  if (subscription.closed) return
  const closed = once(subscription, 'close').catch(() => undefined)
  await subscription.unsubscribe().catch(() => undefined)
  subscription.destroy()
  await closed
}
