import RBush from 'rbush'
import type { Subscription, Viewport } from './subscription.ts'

interface Entry {
  minX: number
  minY: number
  maxX: number
  maxY: number
  subscription: Subscription
}

const WORLD = 1_800_000_000

/** Finds the subscriptions whose viewport may hold a place, so that a moving tracker costs nothing to those who look elsewhere. */
export class ViewportIndex {
  private readonly tree = new RBush<Entry>()
  private readonly entries = new Map<Subscription, Entry[]>()
  /** With a list of trackers and no viewport. */
  private readonly byTracker = new Map<string, Set<Subscription>>()
  /** With neither: everything concerns them. */
  private readonly everywhere = new Set<Subscription>()

  add(subscription: Subscription): void {
    const { viewport, trackerIds } = subscription.wanted
    if (viewport === undefined) {
      if (trackerIds === undefined) this.everywhere.add(subscription)
      for (const trackerId of trackerIds ?? []) this.watch(trackerId, subscription)
      return
    }
    const entries = boxesOf(viewport).map((box) => ({ ...box, subscription }))
    for (const entry of entries) this.tree.insert(entry)
    this.entries.set(subscription, entries)
  }

  remove(subscription: Subscription): void {
    this.everywhere.delete(subscription)
    if (subscription.wanted.viewport === undefined) for (const trackerId of subscription.wanted.trackerIds ?? []) this.unwatch(trackerId, subscription)
    for (const entry of this.entries.get(subscription) ?? []) this.tree.remove(entry)
    this.entries.delete(subscription)
  }

  /** Calls `visit` for each subscription that a tracker's step from one place to another (NaN: nowhere) may concern; at most once each. */
  visit(trackerId: string, fromLat: number, fromLng: number, toLat: number, toLng: number, visit: (subscription: Subscription) => void): void {
    for (const subscription of this.everywhere) visit(subscription)
    for (const subscription of this.byTracker.get(trackerId) ?? []) visit(subscription)
    if (this.entries.size === 0) return
    const found = new Set<Subscription>()
    if (!Number.isNaN(fromLat)) this.at(fromLat, fromLng, found)
    if (!Number.isNaN(toLat)) this.at(toLat, toLng, found)
    for (const subscription of found) visit(subscription)
  }

  private watch(trackerId: string, subscription: Subscription): void {
    const watching = this.byTracker.get(trackerId) ?? new Set()
    watching.add(subscription)
    this.byTracker.set(trackerId, watching)
  }

  private unwatch(trackerId: string, subscription: Subscription): void {
    const watching = this.byTracker.get(trackerId)
    watching?.delete(subscription)
    if (watching?.size === 0) this.byTracker.delete(trackerId)
  }

  private at(lat: number, lng: number, found: Set<Subscription>): void {
    for (const entry of this.tree.search({ minX: lng, minY: lat, maxX: lng, maxY: lat })) found.add(entry.subscription)
  }
}

const boxesOf = ({ west, south, east, north }: Viewport): { minX: number; minY: number; maxX: number; maxY: number }[] =>
  west <= east
    ? [{ minX: west, minY: south, maxX: east, maxY: north }]
    : [
        { minX: west, minY: south, maxX: WORLD, maxY: north },
        { minX: -WORLD, minY: south, maxX: east, maxY: north },
      ]
