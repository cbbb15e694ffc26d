import { seesHubs, type UserCaller } from '../kernel/caller.ts'
import type { BoundedQueue } from '../kernel/bounded-queue.ts'
import { encodeCursor, type EventVector, furthest, isBehind } from './cursor.ts'
import type { LiveEvent, Wanted, Watcher } from './live-event.ts'
import type { Sight } from './sights.ts'
import { seesWhere } from '../features/trackers/views.ts'

/** A waiting event, with the cursor that has seen it. */
export interface HeldEvent {
  event: LiveEvent
  cursor: string
}

/** Owner of a subscription, as the hub sees it. */
export interface Viewer {
  /** Ends the connection: the client comes back, and is shown everything anew. */
  restart(): void
  offerEvent(subscription: Subscription, event: LiveEvent): void
  /** Sends due messages, and answers when to ask again: at once, at a later tick, or when something new is owed. */
  settle(subscription: Subscription, now: number, elapsedMs: number): 'now' | 'later' | 'done'
}

/** Slots of a snapshot, and its progress. */
export interface Snapshot {
  /** Undefined: all of the fleet. */
  slots: readonly number[] | undefined
  at: number
}

/** One client's subscription under one id, with the positions that it has, and the updates that it is owed. */
export class Subscription implements Watcher {
  readonly wanted: Wanted
  readonly idText: string
  caller: UserCaller
  /** Slots whose position the client has. */
  readonly shown = new BitSet()
  private readonly dirtyMarks = new BitSet()
  private dirty: number[] = []
  /** Time when positions were sent last, ms. */
  sentAtMs = Number.NEGATIVE_INFINITY
  /** Rest of its snapshot; undefined when it is complete or has not begun. */
  snapshot: Snapshot | undefined = undefined
  /** The last part of its snapshot was sent. */
  isAnswered = false
  /** Cursor of the events that the client has seen before. */
  readonly cursor: string
  /** Events that the client has seen, where this process may be behind them: it saw them at another one. */
  seen: EventVector | undefined = undefined
  /** Holds events that arrive until the missed ones are sent. */
  held: BoundedQueue<HeldEvent> | undefined = undefined
  private ending: AbortController | undefined
  private hasEnded = false

  constructor(wanted: Wanted, caller: UserCaller, cursor: string) {
    this.wanted = wanted
    this.idText = JSON.stringify(wanted.id)
    this.caller = caller
    this.cursor = cursor
  }

  /** Whether the client's own cursor includes the event. */
  hasSeen({ partition, reach }: LiveEvent): boolean {
    return this.seen !== undefined && isBehind(reach, this.seen[partition])
  }

  /** The client's cursor once it has seen everything that the process has, whose vector and cursor these are. */
  cursorAt(logMark: number, vector: EventVector, cursor: string): string {
    if (this.seen === undefined) return cursor
    if (this.seen.every((reach, part) => isBehind(reach, vector[part]))) {
      this.seen = undefined
      return cursor
    }
    return encodeCursor(logMark, furthest(this.seen, vector))
  }

  /** Aborts when it is no longer wanted: reads for it end. Made at the first use: most are never read for. */
  get signal(): AbortSignal {
    this.ending ??= new AbortController()
    if (this.hasEnded) this.ending.abort()
    return this.ending.signal
  }

  end(): void {
    this.hasEnded = true
    this.ending?.abort()
  }

  get owes(): boolean {
    return this.dirty.length > 0
  }

  /** Number of owed slots, to count conflated positions. Answers whether the slot was owed already. */
  mark(slot: number): boolean {
    if (!this.dirtyMarks.add(slot)) return true
    this.dirty.push(slot)
    return false
  }

  takeDirty(): number[] {
    const dirty = this.dirty
    this.dirty = []
    for (const slot of dirty) this.dirtyMarks.delete(slot)
    return dirty
  }

  /** Whether the caller may see the tracker and subscribed to it, or to its area; the viewport is another question. */
  concerns(trackerId: string, sight: Sight | undefined, isAboutWhere: boolean): boolean {
    const { trackerIds, hubId, teamId } = this.wanted
    if (trackerIds !== undefined && !trackerIds.has(trackerId)) return false
    if (sight === undefined) return false
    if (hubId !== undefined && !sight.hubIds.includes(hubId)) return false
    if (teamId !== undefined && sight.teamId !== teamId) return false
    return isAboutWhere ? seesWhere(this.caller, sight) : seesHubs(this.caller, sight.hubIds)
  }
}

/** A set of small whole numbers that grows by itself: one bit each. */
class BitSet {
  private words = new Uint32Array(4)

  has(at: number): boolean {
    const word = at >>> 5
    return word < this.words.length && (this.words[word] & (1 << (at & 31))) !== 0
  }

  /** Answers whether it is new. */
  add(at: number): boolean {
    const word = at >>> 5
    if (word >= this.words.length) this.grow(word)
    const bit = 1 << (at & 31)
    if ((this.words[word] & bit) !== 0) return false
    this.words[word] |= bit
    return true
  }

  delete(at: number): void {
    const word = at >>> 5
    if (word < this.words.length) this.words[word] &= ~(1 << (at & 31))
  }

  private grow(word: number): void {
    const words = new Uint32Array(Math.max(word + 1, this.words.length * 2))
    words.set(this.words)
    this.words = words
  }
}
