import type { Examination } from './examination.ts'
import type { NewEvent, RecordedEvent } from '../kernel/event.ts'

/**
 * What the stream must look like for an append: the revision of its last event, `none` for a stream without events (new
 * or erased), or `any`.
 */
export type ExpectedRevision = number | 'none' | 'any'

export interface Appended {
  /** Revision of the last event of the append. */
  revision: number
  /** Position of the last event of the append. */
  position: number
}

/** What came of asking for space: it began; it runs already; it is too early; the log's user may not. */
export type Reclaimed = 'begun' | 'running' | 'notDue' | 'forbidden'

/** Source to follow: one stream, or every stream whose name begins with one of the prefixes (system streams never). */
export type Source = { stream: string } | { prefixes: readonly string[] }

export interface FollowBatch {
  /** In the order of the log; may be empty when only foreign events were passed or the end was reached. */
  events: RecordedEvent[]
  /** Where to go on after this batch: a revision for one stream, a position for prefixes. */
  checkpoint: number
  /** Nothing more was there when this batch was read. */
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
 * - A position is opaque: positions rise over the whole log and are compared. Nobody subtracts them, counts with them or
 *   takes one for the beginning of a record; a checkpoint of a follower may lie between two events.
 * - Two appends with the same expected revision: one wins, the other rejects with `WrongRevision`.
 * - An append that is repeated (same event ids, same expected revision) answers what the first one answered. With `any`
 *   it is stored at least once. One append never mixes ids that were sent before with new ones.
 * - An append whose outcome is unknown is repeated inside with the same ids until the engine's deadline. When it then
 *   rejects with `engine_down` its outcome is unknown: the events may stand in the log, or come to stand there. The caller
 *   repeats the same append, or reads the stream first.
 * - A follower sees every event once, in order, none of an append that was not durable, and its own process's appends
 *   at the latest some milliseconds after they resolve. It ends only by its signal: a lost connection is resumed inside.
 * - What is truncated or erased is gone at once for readers and followers of the stream. Followers of prefixes may
 *   still see it for a while.
 * - An engine that cannot do its work rejects with a `Failure` `engine_down`; it works again by itself when it can.
 */
export interface EventLog {
  /** How long points of one stream are gathered before the next append, in an engine whose appends cost more than their content. */
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
  /** A position that no event in the log exceeds, from which a follower may go on; -1 when it is empty. */
  headPosition(): Promise<number>
  /** Hides every event of the stream before `revision` for ever, never the last one; the space comes back by and by. Never brings anything back. */
  truncateBefore(stream: string, revision: number): Promise<void>
  /** Hides every event of the stream for ever. It then has none, and may be written anew: revisions go on above those that were erased. */
  erase(stream: string): Promise<void>
  /**
   * Called now and then where the engine does not give the space of hidden events back by itself: begins to when that is
   * due, and does not wait for it. @throws Failure engine_down
   */
  reclaim?(): Promise<Reclaimed>
  /** How many of the newest of these in a row did not complete; one that still runs is none of them. @throws Failure engine_down */
  failedReclaims?(): Promise<number>
  /** Resolves when the engine answers, rejects with Failure engine_down. */
  ping(): Promise<void>
  /** Tells what `waymark doctor` needs of a server. @throws Failure engine_down */
  examine?(): Promise<Examination>
  /** Copies everything as it is at one moment into an empty folder, while the engine goes on working; embedded engines only. */
  copyTo?(folder: string): Promise<void>
  close(): Promise<void>
}

const PAGE_EVENTS = 64

/** The events of a stream from one revision through another, as far as they are still there, read page by page. */
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
