import { Audience } from './audience.ts'
import { AwaitedFacts } from './awaited-facts.ts'
import type { EventVector } from './cursor.ts'
import { RecentLiveEvents } from './recent-live-events.ts'
import type { TrackerFacts } from '../features/trackers/views.ts'
import { Fleet } from './fleet.ts'
import type { ChannelName, LiveEvent } from './live-event.ts'
import type { HubOptions } from './options.ts'
import type { Snapshot, Subscription } from './subscription.ts'
import { ViewportIndex } from './viewport-index.ts'

/** Events of an organization that are kept in memory. */
const RING_EVENTS = 10_000
/** Positions of one message of a snapshot. */
const SNAPSHOT_POSITIONS = 1_000
/** Slots that one turn of a snapshot looks at, so that none takes long. */
const SNAPSHOT_SLOTS = 5_000

/** The live view of one organization: its fleet, its viewers, and its last events. */
export class LiveOrganization {
  readonly fleet: Fleet
  readonly ring: RecentLiveEvents
  readonly subscriptions = new Set<Subscription>()
  private readonly viewports = new ViewportIndex()
  /** By the subscribed channel. */
  private readonly asking = new Map<ChannelName, Audience>()
  /** Resolves when the fleet is loaded. */
  loaded: Promise<void> = Promise.resolve()
  isLoaded = false
  readonly deletedWhileLoading = new Set<string>()
  private readonly awaited: AwaitedFacts
  /** Time since which there is no viewer, ms; undefined while there is one. */
  idleSince: number | undefined = undefined

  constructor({ ages, clock }: Pick<HubOptions, 'ages' | 'clock'>, vector: EventVector) {
    this.fleet = new Fleet(ages, (slot) => this.isShown(slot))
    this.awaited = new AwaitedFacts(clock)
    this.ring = new RecentLiveEvents(vector, RING_EVENTS)
  }

  add(subscription: Subscription): void {
    this.subscriptions.add(subscription)
    const { channels } = subscription.wanted
    if (channels.has('positions')) this.viewports.add(subscription)
    this.ask(subscription)
    this.idleSince = undefined
  }

  remove(subscription: Subscription, now: number): void {
    this.subscriptions.delete(subscription)
    this.viewports.remove(subscription)
    this.forgive(subscription)
    this.askNoMore(subscription)
    if (this.subscriptions.size === 0) this.idleSince = now
  }

  /** The rights of the subscription's caller have changed. */
  rightsChanged(subscription: Subscription): void {
    this.askNoMore(subscription)
    this.ask(subscription)
  }

  private ask(subscription: Subscription): void {
    for (const channel of subscription.wanted.channels) {
      const audience = this.asking.get(channel) ?? new Audience(channel)
      this.asking.set(channel, audience)
      audience.add(subscription)
    }
  }

  private askNoMore(subscription: Subscription): void {
    for (const channel of subscription.wanted.channels) {
      const audience = this.asking.get(channel)
      audience?.remove(subscription)
      if (audience?.isEmpty) this.asking.delete(channel)
    }
  }

  /** Informs subscriptions of changed units; answers those owed something, and the number of replaced positions. */
  spread(owing: Set<Subscription>): number {
    let conflated = 0
    this.fleet.tellChanged((slot, fromLat, fromLng, toLat, toLng) => {
      this.viewports.visit(this.fleet.idOf(slot), fromLat, fromLng, toLat, toLng, (subscription) => {
        if (this.owe(subscription, slot)) conflated++
        owing.add(subscription)
      })
    })
    return conflated
  }

  /** Answers whether the slot was owed already. */
  owe(subscription: Subscription, slot: number): boolean {
    if (subscription.mark(slot)) return true
    this.fleet.owe(slot)
    return false
  }

  /** The subscription is owed nothing any more. */
  forgive(subscription: Subscription): void {
    for (const slot of subscription.takeDirty()) this.fleet.pay(slot)
  }

  /** Content of a position message: newest positions of owed units in sight, and those that left it. */
  payload(subscription: Subscription, now: number): { positions: string[]; gone: string[] } {
    const positions: string[] = []
    const gone: string[] = []
    for (const slot of subscription.takeDirty()) {
      if (this.inSight(subscription, slot)) {
        subscription.shown.add(slot)
        positions.push(this.fleet.text(slot, now, subscription.caller))
      } else if (subscription.shown.has(slot)) {
        subscription.shown.delete(slot)
        gone.push(this.fleet.idOf(slot))
      }
      this.fleet.pay(slot)
    }
    return { positions, gone }
  }

  beginSnapshot(subscription: Subscription): void {
    const { channels, trackerIds, viewport } = subscription.wanted
    let slots: number[] | undefined = []
    if (channels.has('positions')) {
      if (trackerIds !== undefined) slots = this.fleet.slotsOf(trackerIds)
      else slots = viewport === undefined ? undefined : this.fleet.slotsWithin(viewport)
    }
    subscription.snapshot = { slots, at: 0 }
  }

  /** The next positions of a running snapshot; with its last ones it is complete. */
  nextOfSnapshot(subscription: Subscription, now: number): string[] {
    const snapshot = subscription.snapshot as Snapshot
    const { slots } = snapshot
    const size = slots?.length ?? this.fleet.size
    const end = Math.min(size, snapshot.at + SNAPSHOT_SLOTS)
    const positions: string[] = []
    for (; snapshot.at < end && positions.length < SNAPSHOT_POSITIONS; snapshot.at++) {
      const slot = slots === undefined ? snapshot.at : slots[snapshot.at]
      if (!this.inSight(subscription, slot)) continue
      subscription.shown.add(slot)
      positions.push(this.fleet.text(slot, now, subscription.caller))
    }
    if (snapshot.at >= size) subscription.snapshot = undefined
    return positions
  }

  /** Whether anybody subscribes to the channel: its events are made for subscribers only. */
  asksFor(channel: ChannelName): boolean {
    return this.asking.has(channel)
  }

  /** Subscriptions to the event's channel that it may concern. */
  audienceOf(event: LiveEvent): Iterable<Subscription> {
    return this.asking.get(event.channel)?.of(event) ?? []
  }

  know(trackerId: string, facts: TrackerFacts): void {
    this.fleet.know(trackerId, facts)
    this.awaited.heard(trackerId)
  }

  trackerGone(trackerId: string): void {
    this.fleet.remove(trackerId)
    this.awaited.gone(trackerId)
  }

  /** The points that came before its deletion are over. */
  forget(trackerId: string): void {
    this.fleet.forget(trackerId)
    this.awaited.gone(trackerId)
  }

  /** Resolves when the tracker's viewers are known; undefined where nobody subscribes, or waiting is of no use. */
  factsOf(trackerId: string): Promise<void> | undefined {
    if (!this.isLoaded || this.subscriptions.size === 0 || this.fleet.sightOf(trackerId) !== undefined) return undefined
    return this.awaited.of(trackerId)
  }

  private isShown(slot: number): boolean {
    for (const { shown } of this.subscriptions) if (shown.has(slot)) return true
    return false
  }

  inSight(subscription: Subscription, slot: number): boolean {
    return (
      this.fleet.isWithin(slot, subscription.wanted.viewport) &&
      subscription.concerns(this.fleet.idOf(slot), this.fleet.sightAt(slot), true)
    )
  }

  /** Whether an event is for the subscription. Its tracker may be gone: then only owner and admin see it. */
  sees(subscription: Subscription, event: LiveEvent): boolean {
    if (!subscription.wanted.channels.has(event.channel)) return false
    if (event.isFor !== undefined) return event.isFor(subscription)
    if (event.trackerId === undefined) return true
    const sight = this.fleet.sightOf(event.trackerId) ?? { hubIds: [] }
    return subscription.concerns(event.trackerId, sight, event.channel === 'trip')
  }
}
