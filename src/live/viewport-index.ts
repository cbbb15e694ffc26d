import RBush from 'rbush'
import { LNG_MAX_E7 } from '../geo/coordinates.ts'
import { type Box, plainBoxes } from '../geo/box.ts'
import type { Subscription } from './subscription.ts'

interface Entry {
  minX: number
  minY: number
  maxX: number
  maxY: number
  subscription: Subscription
}

/** Side of a cell, 1e-7 degree: some 2 km. */
const CELL = 200_000
const CELLS_ACROSS = 65_536
const CELLS_MAX = 100_000
const NOBODY: readonly Subscription[] = []

/** Finds the subscriptions whose viewport may hold a place, so that a moving tracker costs nothing to those who look elsewhere. */
export class ViewportIndex {
  private readonly tree = new RBush<Entry>()
  private readonly entries = new Map<Subscription, Entry[]>()
  /** Who looks at a cell, found on first use after a viewport came or went: trackers stay in a cell for many points. */
  private readonly cells = new Map<number, readonly Subscription[]>()
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
    this.cells.clear()
  }

  remove(subscription: Subscription): void {
    this.everywhere.delete(subscription)
    if (subscription.wanted.viewport === undefined)
      for (const trackerId of subscription.wanted.trackerIds ?? []) this.unwatch(trackerId, subscription)
    for (const entry of this.entries.get(subscription) ?? []) this.tree.remove(entry)
    if (this.entries.delete(subscription)) this.cells.clear()
  }

  /** Calls `visit` for each subscription that a tracker's step from one place to another (NaN: nowhere) may concern; at most once each. */
  visit(
    trackerId: string,
    fromLat: number,
    fromLng: number,
    toLat: number,
    toLng: number,
    visit: (subscription: Subscription) => void,
  ): void {
    for (const subscription of this.everywhere) visit(subscription)
    for (const subscription of this.byTracker.get(trackerId) ?? []) visit(subscription)
    if (this.entries.size === 0) return
    const before = this.lookingAt(fromLat, fromLng)
    const now = this.lookingAt(toLat, toLng)
    for (const subscription of now) visit(subscription)
    if (before !== now) for (const subscription of before) if (!now.includes(subscription)) visit(subscription)
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

  /** Whoever may see the place: viewports that touch its cell. */
  private lookingAt(lat: number, lng: number): readonly Subscription[] {
    if (Number.isNaN(lat)) return NOBODY
    const row = Math.floor(lat / CELL)
    const column = Math.floor(lng / CELL)
    const key = row * CELLS_ACROSS + column
    const known = this.cells.get(key)
    if (known !== undefined) return known
    const found = this.tree.search({
      minX: column * CELL,
      minY: row * CELL,
      maxX: (column + 1) * CELL,
      maxY: (row + 1) * CELL,
    })
    const subscriptions = found.length === 0 ? NOBODY : [...new Set(found.map(({ subscription }) => subscription))]
    if (this.cells.size >= CELLS_MAX) this.cells.clear()
    this.cells.set(key, subscriptions)
    return subscriptions
  }
}

/** -180 and 180 are the same meridian: a box that ends on one has the other too. */
const boxesOf = (viewport: Box): Omit<Entry, 'subscription'>[] => {
  const boxes: Omit<Entry, 'subscription'>[] = []
  const { south, north } = viewport
  const add = (minX: number, minY: number, maxX: number, maxY: number): void =>
    void boxes.push({ minX, minY, maxX, maxY })
  const plain = plainBoxes(viewport)
  for (let i = 0; i < plain.length; i += 4) add(plain[i], plain[i + 1], plain[i + 2], plain[i + 3])
  if (viewport.west === -LNG_MAX_E7) add(LNG_MAX_E7, south, LNG_MAX_E7, north)
  if (viewport.east === LNG_MAX_E7) add(-LNG_MAX_E7, south, -LNG_MAX_E7, north)
  return boxes
}
