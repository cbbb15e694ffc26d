import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { type AllStreamSubscription, START, streamNameFilter } from '@eventstore/db-client'
import type { RecordedEvent } from '../../kernel/event.ts'
import type { FollowBatch } from '../event-log.ts'
import type { Connection } from './connection.ts'
import { isOurs } from './events.ts'
import { readToEnd } from './read.ts'
import { batchesOf, type ClientSubscription, PASSED } from './subscription.ts'

const RETRY_MS = [50, 100, 250, 500, 1_000, 2_000]
/** Foreign events between two hints at the progress of a filtered subscription, in units of the server's page of 32. */
const CHECKPOINT_INTERVAL = 100

/**
 * Resubscribes after the last seen event whenever the server, the network or a slow reader ends a subscription.
 * @param once one subscription from a checkpoint on
 */
export async function* resumed(
  once: (checkpoint: number | undefined) => AsyncGenerator<FollowBatch>,
  checkpoint: number | undefined,
  signal: AbortSignal,
): AsyncGenerator<FollowBatch> {
  let from = checkpoint
  for (let tries = 0; !signal.aborted; tries++) {
    try {
      for await (const batch of once(from)) {
        tries = 0
        from = batch.checkpoint
        yield batch
        if (signal.aborted) return
      }
      // Its reader was slow, and now has all received events.
      continue
    } catch (error) {
      if (signal.aborted) return
      if (error instanceof TypeError) throw error
    }
    const waitMs = RETRY_MS[Math.min(tries, RETRY_MS.length - 1)]
    await pause(waitMs, undefined, { signal }).catch(() => undefined)
  }
}

/**
 * One subscription to a stream, after a revision.
 * @param isEmpty whether the stream has no events now; the server never reports "caught up" for such a stream.
 */
export async function* followStream(
  { client, credentials, deadlineMs }: Connection,
  stream: string,
  isEmpty: () => Promise<boolean>,
  revision: number | undefined,
  signal: AbortSignal,
  eventsMax: number,
): AsyncGenerator<FollowBatch> {
  let checkpoint = revision ?? -1
  if (await isEmpty()) yield { events: [], checkpoint, caughtUp: true }
  const subscription = client.subscribeToStream(stream, {
    fromRevision: checkpoint < 0 ? START : BigInt(checkpoint),
    credentials,
    requiresLeader: true,
  })
  for await (const { events, isCaughtUp } of batchesOf(subscription as ClientSubscription, signal, {
    eventsMax,
    deadlineMs,
  })) {
    checkpoint = events.at(-1)?.revision ?? checkpoint
    yield { events: events.filter(isOurs), checkpoint, caughtUp: isCaughtUp }
  }
}

/** One subscription to all streams whose names begin with one of the prefixes, after a position. */
export async function* followPrefixes(
  { client, credentials, deadlineMs }: Connection,
  prefixes: readonly string[],
  position: number | undefined,
  signal: AbortSignal,
  eventsMax: number,
): AsyncGenerator<FollowBatch> {
  let checkpoint = position ?? -1
  const hints = new ConfirmedPosition()
  const subscription = client.subscribeToAll({
    fromPosition: checkpoint < 0 ? START : { commit: BigInt(checkpoint), prepare: BigInt(checkpoint) },
    filter: streamNameFilter({
      prefixes: [...prefixes],
      checkpointInterval: CHECKPOINT_INTERVAL,
      checkpointReached: (of, { commit }) => {
        hints.hint(Number(commit))
        of.emit(PASSED)
      },
    }),
    credentials,
    requiresLeader: true,
  })
  const missed = checkpoint < 0 ? undefined : firstFrom(client, subscription, checkpoint, deadlineMs)
  let isBegun = missed === undefined
  const hasPassed = (): boolean => hints.confirmed > checkpoint
  const batches = batchesOf(subscription as ClientSubscription, signal, { eventsMax, deadlineMs, hasPassed })
  for await (const { events: came, isCaughtUp } of batches) {
    // Positions hinted at during this wait stand behind events that wait in the subscription.
    const passed = hints.confirmed
    if (!isBegun) {
      isBegun = true
      const first = await missed
      if (first !== undefined && isSkipped(first, checkpoint, prefixes, came[0])) {
        checkpoint = first.position
        yield { events: [first].filter(isOurs), checkpoint, caughtUp: false }
      }
    }
    // An event appended just now may have been read above, and arrive here again.
    const events = came.length > 0 && came[0].position <= checkpoint ? came.slice(1) : came
    checkpoint = Math.max(checkpoint, came.at(-1)?.position ?? passed)
    yield { events: events.filter(isOurs), checkpoint, caughtUp: isCaughtUp }
  }
}

/**
 * The first event in the log from a position on, read once a subscription from there has begun. A server begins a
 * subscription behind the first event that it finds at its position. That is the one already seen, unless a scavenge
 * removed it: then it is the next one, not seen yet.
 */
const firstFrom = (
  client: Connection['client'],
  subscription: AllStreamSubscription,
  position: number,
  deadlineMs: number,
): Promise<RecordedEvent | undefined> => {
  const fromPosition = { commit: BigInt(position), prepare: BigInt(position) }
  const first = once(subscription as ClientSubscription, 'confirmation').then(async () => {
    const found = client.readAll({ fromPosition, maxCount: 1, requiresLeader: true })
    return (await readToEnd(found, deadlineMs)).at(0)
  })
  first.catch(() => undefined) // the subscription reports it too, or it is thrown where it is awaited
  return first
}

const isSkipped = (
  event: RecordedEvent,
  checkpoint: number,
  prefixes: readonly string[],
  next: RecordedEvent | undefined,
): boolean =>
  event.position > checkpoint &&
  prefixes.some((prefix) => event.stream.startsWith(prefix) && !event.stream.startsWith('$')) &&
  event.id !== next?.id

/** A position that the server only hinted at counts once a later one has come: KurrentDB #3697. */
class ConfirmedPosition {
  confirmed = -1
  private hinted = -1

  hint(position: number): void {
    if (position <= this.hinted) return
    this.confirmed = this.hinted
    this.hinted = position
  }
}
