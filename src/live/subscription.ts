import { seesHubs, type UserCaller } from '../kernel/caller.ts'
import { boxContains } from '../geo/box.ts'
import type { BoundedQueue } from '../kernel/bounded-queue.ts'
import { encodeCursor, type EventVector, furthest, isBehind } from './cursor.ts'
import type { LiveEvent, Wanted, Watcher } from './live-event.ts'
import { seesWhere, type TrackerFacts } from '../features/trackers/views.ts'

/** An event that waits, with the cursor that has seen it. */
export interface HeldEvent {
  event: LiveEvent
  cursor: string
}

/** Owner of a subscription, as the hub sees it. */
export interface Viewer {
  offerEvent(subscription: Subscription, event: LiveEvent): void
  /** Sends what is due, and answers when to ask again: at once, at a later tick, or when something is owed anew. */
  settle(subscription: Subscription, now: number, elapsedMs: number): 'now' | 'later' | 'done'
}

/** Which slots a snapshot has to look at, and how far it is. */
export interface Snapshot {
  /** Undefined: all that the fleet has. */
  slots: readonly number[] | undefined
  at: number
}

/** What one client asked for under one id, what it was shown, and what it is owed. */
export class Subscription implements Watcher {
  readonly wanted: Wanted
  /** Its id as JSON. */
  readonly idText: string
  caller: UserCaller
  /** Slots that the client holds a position of. */
  readonly shown = new BitSet()
  private readonly dirtyMarks = new BitSet()
  private dirty: number[] = []
  /** When positions were sent last, ms. */
  sentAtMs = Number.NEGATIVE_INFINITY
  /** Rest of its snapshot; undefined when it is through or has not begun. */
  snapshot: Snapshot | undefined = undefined
  /** The last part of its snapshot was sent. */
  isAnswered = false
  /** What the client has seen of its events before. */
  readonly cursor: string
  /** What the client has seen, where this process may not be so far yet: it saw that at another one. */
  seen: EventVector | undefined = undefined
  /** Until what was missed is sent: events that come in meanwhile wait here. */
  held: BoundedQueue<HeldEvent> | undefined = undefined
  private ending: AbortController | undefined
  private hasEnded = false

  constructor(wanted: Wanted, caller: UserCaller, cursor: string) {
    this.wanted = wanted
    this.idText = JSON.stringify(wanted.id)
    this.caller = caller
    this.cursor = cursor
  }

  /** Whether the client came with a cursor that has the event. */
  hasSeen({ partition, reach }: LiveEvent): boolean {
    return this.seen !== undefined && isBehind(reach, this.seen[partition])
  }

  /** The cursor of all that the client has seen once it has seen what the process has, whose vector and cursor these are. */
  cursorAt(logMark: number, vector: EventVector, cursor: string): string {
    if (this.seen === undefined) return cursor
    if (this.seen.every((reach, part) => isBehind(reach, vector[part]))) {
      this.seen = undefined
      return cursor
    }
    return encodeCursor(logMark, furthest(this.seen, vector))
  }

  /** Aborts when it is no longer wanted: what is read for it ends. Made at the first use: most are never read for. */
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

  /** How many slots are owed, for counting what was conflated. Answers whether the slot was owed already. */
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

  /** Whether the caller may see the tracker and asked for it, or where it is; the viewport is another question. */
  concerns(trackerId: string, facts: TrackerFacts | undefined, isAboutWhere: boolean): boolean {
    const { trackerIds, hubId, teamId } = this.wanted
    if (trackerIds !== undefined && !trackerIds.has(trackerId)) return false
    if (facts === undefined) return false
    if (hubId !== undefined && !facts.hubIds.includes(hubId)) return false
    if (teamId !== undefined && facts.teamId !== teamId) return false
    return isAboutWhere ? seesWhere(this.caller, facts) : seesHubs(this.caller, facts.hubIds)
  }

  covers(lat: number, lng: number): boolean {
    return this.wanted.viewport === undefined || boxContains(this.wanted.viewport, lng, lat)
  }
}

/** A set of small whole numbers that grows by itself: one bit each. */
class BitSet {
  private words = new Uint32Array(4)

  has(at: number): boolean {
    const word = at >>> 5
    return word < this.words.length && (this.words[word] & (1 << (at & 31))) !== 0
  }

  /** Answers whether it was not there before. */
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
