import { seesHubs, type UserCaller } from '../kernel/caller.ts'
import { BitSet } from './bit-set.ts'
import type { ChannelName, LiveEvent } from './event-ring.ts'
import type { TrackerFacts } from './fleet.ts'

/** Bounds in 1e-7 degree; west may exceed east over the antimeridian. */
export interface Viewport {
  west: number
  south: number
  east: number
  north: number
}

export interface Wanted {
  id: string
  channels: ReadonlySet<ChannelName>
  viewport: Viewport | undefined
  trackerIds: ReadonlySet<string> | undefined
  hubId: string | undefined
  teamId: string | undefined
  intervalMs: number
}

/** Whoever a subscription belongs to, as the hub sees it. */
export interface Viewer {
  offerEvent(subscription: Subscription, event: LiveEvent): void
  /** Sends what is due; answers whether nothing is owed for now. */
  settle(subscription: Subscription, now: number): boolean
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
  sentAt = 0
  /** Next slot of the snapshot to send; undefined when it is through. */
  snapshotAt: number | undefined = undefined
  /** While events are read from the log: those that come in meanwhile wait here. */
  held: (() => void)[] | undefined = undefined

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
    return this.wanted.viewport === undefined || holds(this.wanted.viewport, lat, lng)
  }
}

const holds = ({ west, south, east, north }: Viewport, lat: number, lng: number): boolean =>
  lat >= south && lat <= north && (west <= east ? lng >= west && lng <= east : lng >= west || lng <= east)
