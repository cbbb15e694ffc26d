import { setTimeout as pause } from 'node:timers/promises'
import { BACKWARDS, END, FORWARDS, type ReadStreamOptions } from '@eventstore/db-client'
import { Failure } from '../../kernel/errors.ts'
import type { NewEvent, RecordedEvent } from '../../kernel/event.ts'
import { RecentMap } from '../../kernel/recent-map.ts'
import type { ExpectedRevision } from '../event-log.ts'
import { type AppendBatches, type Outcome, Refused } from './append-batches.ts'
import { type Connection, isPassing, isUnanswered, logDown } from './connection.ts'
import { ERASED } from './events.ts'
import { readToEnd } from './read.ts'

const WAITING_MAX = 10_000
/** Events read at once in search of an append. */
const SEARCHED_EVENTS = 64
const UNSURE_APPENDS = 10_000
const KNOWN_STREAMS = 10_000
const RETRY_MS = [20, 50, 100, 250, 500, 1_000]

/** Validity of a known head: a stream with other writers may be far beyond it. */
const HEAD_HOLDS_MS = 10_000

/** Known revisions of streams, and since when they are known; -1 for a stream that this process erased. */
export class KnownHeads {
  private readonly heads = new RecentMap<string, { revision: number; atMs: number }>(KNOWN_STREAMS)

  get(stream: string): number | undefined {
    return this.heads.get(stream)?.revision
  }

  /** Only a head known lately. */
  fresh(stream: string): number | undefined {
    const head = this.heads.get(stream)
    return head !== undefined && performance.now() - head.atMs < HEAD_HOLDS_MS ? head.revision : undefined
  }

  set(stream: string, revision: number): void {
    this.heads.set(stream, { revision, atMs: performance.now() })
  }
}

/**
 * Appends with one in flight for each stream, in the order of their arrival. One whose outcome is unknown is repeated
 * with the same ids until its deadline, counted from the request, and then given up as unknown. At an expected revision
 * the server recognizes a repeat by the stream; at any revision it remembers ids for a while, and not after another
 * node has become the leader. So such a repeat is first searched among everything appended since.
 */
export class AppendsInOrder {
  private readonly connection: Connection
  private readonly calls: AppendBatches
  private readonly closed: AbortSignal
  private readonly heads: KnownHeads
  /** Appends at any revision that were given up, by their last id: the revision above which they stand, if they do. */
  private readonly unsure = new RecentMap<string, number>(UNSURE_APPENDS)
  private readonly tails = new Map<string, { last: Promise<unknown>; waiting: number }>()

  /** @param closed aborted when the log closes */
  constructor(connection: Connection, calls: AppendBatches, heads: KnownHeads, closed: AbortSignal) {
    this.connection = connection
    this.calls = calls
    this.heads = heads
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

  /** A revision that the stream has reached: later appends stand above it. */
  private async floorOf(stream: string): Promise<number> {
    const known = this.heads.fresh(stream)
    if (known !== undefined) return known
    const [last] = await this.read(stream, { direction: BACKWARDS, fromRevision: END, maxCount: 1 })
    if (last === undefined) return -1
    if (last.type !== ERASED) this.heads.set(stream, last.revision)
    return last.revision
  }

  /** Outcome of an append that stands above that revision, if it does. On timeout a repeat continues from here. */
  private async stored(stream: string, lastId: string, above: number, untilMs: number): Promise<Outcome | undefined> {
    for (let from = above + 1; ; this.unsure.set(lastId, from - 1)) {
      if (performance.now() >= untilMs) throw logDown()
      const fromRevision = BigInt(from)
      const found = await this.read(stream, { direction: FORWARDS, fromRevision, maxCount: SEARCHED_EVENTS })
      const event = found.find(({ id }) => id === lastId)
      if (event !== undefined) return event
      if (found.length < SEARCHED_EVENTS) return undefined
      from = found[found.length - 1].revision + 1
    }
  }

  private async read(stream: string, asked: ReadStreamOptions): Promise<RecordedEvent[]> {
    const { client, credentials, deadlineMs } = this.connection
    await this.connection.connected(deadlineMs)
    return readToEnd(client.readStream(stream, { ...asked, credentials, requiresLeader: true }), deadlineMs)
  }

  private async untilKnown(
    stream: string,
    events: readonly NewEvent[],
    expected: ExpectedRevision,
    untilMs: number,
  ): Promise<Outcome> {
    const { closed } = this
    const lastId = events[events.length - 1].id
    let floor = this.unsure.get(lastId)
    for (let tries = 0; ; tries++) {
      // Appends behind an unanswered one do not wait for a deadline each.
      if (closed.aborted || performance.now() >= untilMs) throw logDown()
      try {
        const stored = floor === undefined ? undefined : await this.stored(stream, lastId, floor, untilMs)
        if (stored !== undefined) return stored
        if (expected === 'any') floor ??= await this.floorOf(stream)
        const appended = await this.calls.append(stream, events, expected, untilMs)
        this.connection.heard()
        return appended
      } catch (error) {
        if (isUnanswered(error)) await this.connection.unanswered()
        else this.connection.heard()
        if (error instanceof Refused || error instanceof Failure) throw error
        if (floor !== undefined) {
          floor = Math.max(floor, this.unsure.get(lastId) ?? -1)
          this.unsure.set(lastId, floor)
        }
        const waitMs = RETRY_MS[Math.min(tries, RETRY_MS.length - 1)]
        if (!isPassing(error) || performance.now() + waitMs >= untilMs) throw logDown(error)
        await pause(waitMs, undefined, { signal: closed }).catch(() => undefined)
      }
    }
  }
}
