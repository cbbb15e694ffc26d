import { setTimeout as pause } from 'node:timers/promises'
import { BACKWARDS, END, StreamNotFoundError } from '@eventstore/db-client'
import { Failure } from '../../kernel/errors.ts'
import type { NewEvent } from '../../kernel/event.ts'
import { RecentMap } from '../../kernel/recent-map.ts'
import type { ExpectedRevision } from '../event-log.ts'
import { type AppendCalls, type Outcome, proposalOf, Refused } from './append-calls.ts'
import { type Connection, isPassing, isUnanswered, logDown } from './connection.ts'
import { readToEnd } from './read.ts'

/** Appends of one stream that may wait for each other. */
const WAITING_MAX = 10_000
/** Events that others may have appended since. */
const LOOKED_BACK = 32
const UNSURE_STREAMS = 1_000
const RETRY_MS = [20, 50, 100, 250, 500, 1_000]

/**
 * Appends with one in flight for each stream, in the order in which they came. One whose outcome is unknown is repeated
 * with the same ids until its deadline, which counts from when it was asked for, and then given up as unknown.
 */
export class AppendQueue {
  private readonly connection: Connection
  private readonly calls: AppendCalls
  private readonly closed: AbortSignal
  /** Streams whose last append has an unknown outcome: those alone, that many others do not push them out. */
  private readonly unsure = new RecentMap<string, boolean>(UNSURE_STREAMS)
  private readonly tails = new Map<string, { last: Promise<unknown>; waiting: number }>()

  /** @param closed aborted when the log closes */
  constructor(connection: Connection, calls: AppendCalls, closed: AbortSignal) {
    this.connection = connection
    this.calls = calls
    this.closed = closed
  }

  /** @throws Refused, Failure engine_down (the outcome is unknown), too_large, overloaded */
  async append(stream: string, events: readonly NewEvent[], expected: ExpectedRevision): Promise<Outcome> {
    const untilMs = performance.now() + this.connection.deadlineMs
    const tail = this.tails.get(stream) ?? { last: Promise.resolve(), waiting: 0 }
    if (tail.waiting >= WAITING_MAX)
      throw new Failure('overloaded', { message: 'Too many writes wait for the log.', retryAfterSeconds: 1 })
    this.tails.set(stream, tail)
    tail.waiting++
    const before = tail.last
    const own = (async () => {
      await before
      return this.untilKnown(stream, events, expected, untilMs)
    })()
    tail.last = own.catch(() => undefined)
    try {
      return await own
    } finally {
      tail.waiting--
      if (tail.waiting === 0) this.tails.delete(stream)
    }
  }

  /**
   * What an append at any revision came to that was sent before: a server remembers its ids for a while, and not after
   * another node has become the leader.
   */
  private async stored(stream: string, events: readonly NewEvent[]): Promise<Outcome | undefined> {
    const { client, credentials, deadlineMs } = this.connection
    const newest = client.readStream(stream, {
      direction: BACKWARDS,
      fromRevision: END,
      maxCount: events.length + LOOKED_BACK,
      credentials,
      requiresLeader: true,
    })
    const found = await readToEnd(newest, deadlineMs).catch((error) => {
      if (error instanceof StreamNotFoundError) return []
      throw error
    })
    const last = found.find(({ event }) => event?.id === events[events.length - 1].id)?.event
    return last && { revision: Number(last.revision), position: last.position && Number(last.position.commit) }
  }

  private async untilKnown(
    stream: string,
    events: readonly NewEvent[],
    expected: ExpectedRevision,
    untilMs: number,
  ): Promise<Outcome> {
    const { closed } = this
    const proposal = proposalOf(events)
    let mayBeStored = this.unsure.get(stream) === true
    for (let tries = 0; ; tries++) {
      // Those behind an append that nobody answers do not wait for a deadline each.
      if (closed.aborted || performance.now() >= untilMs) throw logDown()
      try {
        if (expected === 'any' && mayBeStored) {
          await this.connection.connected(untilMs - performance.now())
          const stored = await this.stored(stream, events)
          if (stored !== undefined) return stored
        }
        mayBeStored = true
        const appended = await this.calls.append(stream, proposal, expected, untilMs)
        this.connection.heard()
        if (this.unsure.get(stream) === true) this.unsure.set(stream, false)
        return appended
      } catch (error) {
        if (isUnanswered(error)) await this.connection.unanswered()
        else this.connection.heard()
        if (error instanceof Refused || error instanceof Failure) throw error
        if (mayBeStored) this.unsure.set(stream, true)
        const waitMs = RETRY_MS[Math.min(tries, RETRY_MS.length - 1)]
        if (!isPassing(error) || performance.now() + waitMs >= untilMs) throw logDown(error)
        await pause(waitMs, undefined, { signal: closed }).catch(() => undefined)
      }
    }
  }
}
