import type { Examination } from './examination.ts'
import type { NewEvent, RecordedEvent } from '../kernel/event.ts'

/**
 * Required state of the stream for an append: the revision of its last event, `none` for a stream without events (new
 * or erased), or `any`.
 */
export type ExpectedRevision = number | 'none' | 'any'

export interface Appended {
  /** Revision of the last event of the append. */
  revision: number
  /** Position of the last event of the append. */
  position: number
}

/** Result of a request for space: it began; it runs already; it is too early; the log's user may not. */
export type Reclaimed = 'begun' | 'running' | 'notDue' | 'forbidden'

/** Source to follow: one stream, or every stream whose name begins with one of the prefixes (system streams never). */
export type Source = { stream: string } | { prefixes: readonly string[] }

export interface FollowBatch {
  /** In the order of the log; may be empty when only foreign events were passed or the end was reached. */
  events: RecordedEvent[]
  /** Place to continue after this batch: a revision for one stream, a position for prefixes. */
  checkpoint: number
  /** No further events were there when this batch was read. */
  caughtUp: boolean
}

/** The stream is not at the expected revision; `actual` is its last revision, -1 for none. */
export class WrongRevision extends Error {
  readonly stream: string
  readonly actual: number
  constructor(stream: string, actual: number) {
    super(`stream ${stream} is at revision ${actual}`)
    this.name = 'WrongRevision'
    this.stream = stream
    this.actual = actual
  }
}

/** One append takes at most this many bytes of event data together (EventStoreDB's own limit is 1 MiB). */
export const APPEND_BYTES_MAX = 1024 * 1024 - 64 * 1024

/**
 * The append-only log. Promises that every engine keeps (test/contracts/event-log.ts proves them):
 * - An append is all or nothing, and durable (synced to disk, or the quorum) when it resolves; SIGKILL loses none.
 * - Revisions of one stream have no gaps; a truncated or erased stream begins late.
 * - A position is opaque: positions rise over the whole log and are only compared. Nobody subtracts them, counts with
 *   them or takes one for the beginning of a record; a checkpoint of a follower may lie between two events.
 * - Two appends with the same expected revision: one wins, the other rejects with `WrongRevision`.
 * - A repeated append (same event ids, same expected revision) answers the first one's result. With `any` it is stored
 *   at least once. One append never mixes ids that were sent before with new ones.
 * - An append whose outcome is unknown is repeated inside with the same ids until the engine's deadline. When it then
 *   rejects with `engine_down` its outcome is unknown: the events may stand in the log, or come to stand there. The
 *   caller repeats the same append, or reads the stream first.
 * - A follower sees every event once, in order, none of an append that was not durable, and its own process's appends
 *   at the latest some milliseconds after they resolve. It ends only by its signal: a lost connection is resumed
 *   inside.
 * - Truncated or erased events are gone at once for readers and followers of the stream. Followers of prefixes may
 *   still see them for a while.
 * - An engine that cannot do its work rejects with a `Failure` `engine_down`; it works again by itself when it can.
 */
export interface EventLog {
  /** Time to gather points of one stream before an append, in an engine where appends cost more than content. */
  readonly gatherMs?: number
  /** @throws WrongRevision, Failure engine_down (also for a full disk), Failure too_large over APPEND_BYTES_MAX. */
  append(stream: string, events: readonly NewEvent[], expected: ExpectedRevision): Promise<Appended>
  /** At most `limit` events from revision `from` on (forwards), or from `from` down (backwards; 'end' is the newest). */
  read(
    stream: string,
    from: number | 'end',
    limit: number,
    direction?: 'forwards' | 'backwards',
  ): Promise<RecordedEvent[]>
  /** From right after the checkpoint (undefined: from the beginning) until the signal aborts. Batches of at most `batchEventsMax` (default 512) events. */
  follow(
    source: Source,
    checkpoint: number | undefined,
    signal: AbortSignal,
    batchEventsMax?: number,
  ): AsyncIterable<FollowBatch>
  /** Revision of the last event of a stream, -1 when it has none. */
  head(stream: string): Promise<number>
  /** A position that no event in the log exceeds, from which a follower may continue; -1 when it is empty. */
  headPosition(): Promise<number>
  /** Hides every event before `revision` for ever, never the last one, and brings none back; frees space gradually. */
  truncateBefore(stream: string, revision: number): Promise<void>
  /** Hides every event of the stream for ever. It may be written again: revisions continue above the erased. */
  erase(stream: string): Promise<void>
  /**
   * Called now and then where the engine does not free the space of hidden events by itself: starts that when it is
   * due, and does not wait for it. @throws Failure engine_down
   */
  reclaim?(): Promise<Reclaimed>
  /** Number of the newest reclaims in a row that failed, without a running one. @throws Failure engine_down */
  failedReclaims?(): Promise<number>
  /** Resolves when the engine answers, rejects with Failure engine_down. */
  ping(): Promise<void>
  /** Reports the facts about a server for `waymark doctor`. @throws Failure engine_down */
  examine?(): Promise<Examination>
  /** Copies the state of one moment into an empty folder, while the engine works on; embedded engines only. */
  copyTo?(folder: string): Promise<void>
  close(): Promise<void>
}

/** By each log made by `logWith`, the log below it. */
const bases = new WeakMap<EventLog, EventLog>()

/** The engine's own log, however often it was wrapped: by it, parts of the process find what they share about one log. */
export const baseOf = (log: EventLog): EventLog => bases.get(log) ?? log

/** A log with another way to append. */
export const logWith = (log: EventLog, append: EventLog['append']): EventLog => {
  const made = new Proxy(log, {
    get: (target, name) => {
      if (name === 'append') return append
      const member = Reflect.get(target, name) as unknown
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
  bases.set(made, baseOf(log))
  return made
}

const PAGE_EVENTS = 64

/** The existing events of a stream from a revision down, read page by page, the first page of that many. */
export async function* eventsBackwards(
  log: Pick<EventLog, 'read'>,
  stream: string,
  from: number | 'end' = 'end',
  firstEvents = PAGE_EVENTS,
): AsyncGenerator<RecordedEvent, void> {
  for (let next = from; next === 'end' || next >= 0; ) {
    const events = await log.read(stream, next, next === from ? firstEvents : PAGE_EVENTS, 'backwards')
    if (events.length === 0) return
    yield* events
    next = events[events.length - 1].revision - 1
  }
}

/** The existing events of a stream from one revision through another, read page by page. */
export async function* eventsOf(
  log: Pick<EventLog, 'read'>,
  stream: string,
  from = 0,
  through = Number.POSITIVE_INFINITY,
  signal?: AbortSignal,
): AsyncGenerator<RecordedEvent, void> {
  for (let next = from; next <= through; ) {
    signal?.throwIfAborted()
    const events = await log.read(stream, next, Math.min(PAGE_EVENTS, through - next + 1))
    if (events.length === 0) return
    for (const event of events) {
      // A stream that was truncated may begin behind it.
      if (event.revision > through) return
      yield event
    }
    next = events[events.length - 1].revision + 1
  }
}
