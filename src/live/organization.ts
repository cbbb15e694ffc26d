import type { EventVector } from './cursor.ts'
import { EventRing, type LiveEvent } from './event-ring.ts'
import { seesBacktest } from '../features/backtests/views.ts'
import type { StatusAges } from '../features/trackers/views.ts'
import { Fleet } from './fleet.ts'
import type { Subscription } from './subscription.ts'
import { ViewportIndex } from './viewport-index.ts'

/** Events of an organization that are kept in memory. */
const RING_EVENTS = 10_000

/** The live view of one organization: its fleet, who looks at it, and what happened last. */
export class LiveOrganization {
  readonly fleet: Fleet
  readonly ring: EventRing
  readonly subscriptions = new Set<Subscription>()
  private readonly viewports = new ViewportIndex()
  /** Resolves when the fleet is loaded. */
  loaded: Promise<void> = Promise.resolve()
  isLoaded = false
  readonly deletedWhileLoading = new Set<string>()
  /** Since when nobody looks, ms; undefined while somebody does. */
  idleSince: number | undefined = undefined

  constructor(ages: StatusAges, vector: EventVector) {
    this.fleet = new Fleet(ages)
    this.ring = new EventRing(vector, RING_EVENTS)
  }

  add(subscription: Subscription): void {
    this.subscriptions.add(subscription)
    if (subscription.wanted.channels.has('positions')) this.viewports.add(subscription)
    this.idleSince = undefined
  }

  remove(subscription: Subscription, now: number): void {
    this.subscriptions.delete(subscription)
    this.viewports.remove(subscription)
    if (this.subscriptions.size === 0) this.idleSince = now
  }

  /** Tells subscriptions which units changed; answers those that are owed something, and how many positions a newer one replaced. */
  spread(owing: Set<Subscription>): number {
    let conflated = 0
    for (const slot of this.fleet.takeChanged()) {
      const { trackerId, point, toldLat, toldLng } = this.fleet.unit(slot)
      this.viewports.visit(
        trackerId,
        toldLat,
        toldLng,
        point?.lat ?? Number.NaN,
        point?.lng ?? Number.NaN,
        (subscription) => {
          if (subscription.mark(slot)) conflated++
          owing.add(subscription)
        },
      )
      this.fleet.told(slot)
    }
    return conflated
  }

  /** What a position message holds: newest positions of owed units in sight, and those that left it. */
  payload(subscription: Subscription, now: number): { positions: string[]; gone: string[] } {
    const positions: string[] = []
    const gone: string[] = []
    for (const slot of subscription.takeDirty()) {
      if (this.inSight(subscription, slot)) {
        subscription.shown.add(slot)
        positions.push(this.fleet.text(slot, now))
      } else if (subscription.shown.has(slot)) {
        subscription.shown.delete(slot)
        gone.push(this.fleet.unit(slot).trackerId)
      }
    }
    return { positions, gone }
  }

  inSight(subscription: Subscription, slot: number): boolean {
    const { trackerId, point, facts } = this.fleet.unit(slot)
    return point !== undefined && subscription.covers(point.lat, point.lng) && subscription.concerns(trackerId, facts)
  }

  /** Whether an event is for the subscription. Its tracker may be gone by now: then only owner and admin see it. A job and an automation have none, so only the channel chooses them. */
  sees(subscription: Subscription, event: LiveEvent): boolean {
    if (!subscription.wanted.channels.has(event.channel)) return false
    if (event.channel === 'job') return seesBacktest(subscription.caller, event.userId ?? '')
    if (event.trackerId === undefined) return true
    const facts = this.fleet.factsOf(event.trackerId) ?? { name: '', hubIds: [] }
    return subscription.concerns(event.trackerId, facts)
  }
}
