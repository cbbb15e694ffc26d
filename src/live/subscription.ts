import { seesHubs, type UserCaller } from '../kernel/caller.ts'
import { boxContains, type Box } from '../geo/box.ts'
import type { BoundedQueue } from '../kernel/bounded-queue.ts'
import { BitSet } from './bit-set.ts'
import type { ChannelName, LiveEvent } from './event-ring.ts'
import type { TrackerFacts } from './fleet.ts'

export interface Wanted {
  id: string
  channels: ReadonlySet<ChannelName>
  viewport: Box | undefined
  trackerIds: ReadonlySet<string> | undefined
  hubId: string | undefined
  teamId: string | undefined
  intervalMs: number
}

/** An event that waits, with the cursor that has seen it. */
export interface HeldEvent {
  event: LiveEvent
  cursor: string
}

/** Whoever a subscription belongs to, as the hub sees it. */
export interface Viewer {
  offerEvent(subscription: Subscription, event: LiveEvent): void
  /** Sends what is due; answers whether nothing is owed for now. */
  settle(subscription: Subscription, now: number, elapsedMs: number): boolean
}

/** What one client asked for under one id, what it was shown, and what it is owed. */
export class Subscription {
  readonly wanted: Wanted
  caller: UserCaller
  /** Slots that the client holds a position of. */
  readonly shown = new BitSet()
  private readonly dirtyMarks = new BitSet()
  private dirty: number[] = []
  /** When positions were sent last, ms. */
  sentAtMs = Number.NEGATIVE_INFINITY
  /** Next slot of the snapshot to send; undefined when it is through. */
  snapshotAt: number | undefined = undefined
  /** Until what was missed is sent: events that come in meanwhile wait here. */
  held: BoundedQueue<HeldEvent> | undefined = undefined
  /** Aborts when it is no longer wanted: what is read for it ends. */
  readonly end = new AbortController()

  constructor(wanted: Wanted, caller: UserCaller) {
    this.wanted = wanted
    this.caller = caller
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

  /** Whether the caller may see the tracker and asked for it; the viewport is another question. */
  concerns(trackerId: string, facts: TrackerFacts | undefined): boolean {
    const { trackerIds, hubId, teamId } = this.wanted
    if (trackerIds !== undefined && !trackerIds.has(trackerId)) return false
    if (facts === undefined) return false
    if (hubId !== undefined && !facts.hubIds.includes(hubId)) return false
    if (teamId !== undefined && facts.teamId !== teamId) return false
    return seesHubs(this.caller, facts.hubIds)
  }

  covers(lat: number, lng: number): boolean {
    return this.wanted.viewport === undefined || boxContains(this.wanted.viewport, lng, lat)
  }
}
