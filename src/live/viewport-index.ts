import RBush from 'rbush'
import { boxesOf, boxOfCell, cellAt, overlap, type PlainBox } from './cells.ts'
import type { Subscription } from './subscription.ts'

interface Entry extends PlainBox {
  subscription: Subscription
}

/** Subscriptions to a cell, as of the index's version. */
interface Lookers {
  version: number
  subscriptions: readonly Subscription[]
}

interface Change {
  boxes: readonly PlainBox[]
  subscription: Subscription
  isGone: boolean
}

const CELLS_MAX = 100_000
/** Changes of viewports after which a looked-up cell is updated, which is less work than looking it up again. */
const CHANGES_KEPT = 16
const NOBODY: readonly Subscription[] = []

/** Finds subscriptions whose viewport may hold a place, so that a tracker costs nothing to viewers elsewhere. */
export class ViewportIndex {
  private readonly tree = new RBush<Entry>()
  private readonly entries = new Map<Subscription, Entry[]>()
  /** Found on first use: trackers stay in a cell for many points. */
  private readonly cells = new Map<number, Lookers>()
  /** The last changes, each at its version modulo their number. */
  private readonly changes: Change[] = []
  private version = 0
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
    this.changed({ boxes: entries, subscription, isGone: false })
  }

  remove(subscription: Subscription): void {
    this.everywhere.delete(subscription)
    if (subscription.wanted.viewport === undefined)
      for (const trackerId of subscription.wanted.trackerIds ?? []) this.unwatch(trackerId, subscription)
    const entries = this.entries.get(subscription)
    if (entries === undefined) return
    for (const entry of entries) this.tree.remove(entry)
    this.entries.delete(subscription)
    this.changed({ boxes: entries, subscription, isGone: true })
  }

  /** Calls `visit` once for each subscription that a tracker's step between two places (NaN: none) may concern. */
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
    const before = this.lookingAt(cellAt(fromLat, fromLng))
    const now = this.lookingAt(cellAt(toLat, toLng))
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

  private changed(change: Change): void {
    this.changes[++this.version % CHANGES_KEPT] = change
  }

  /** Possible viewers of the cell: viewports that touch it. */
  private lookingAt(cell: number): readonly Subscription[] {
    if (Number.isNaN(cell)) return NOBODY
    const known = this.cells.get(cell)
    if (known?.version === this.version) return known.subscriptions
    const isRecent = known !== undefined && this.version - known.version < CHANGES_KEPT
    const subscriptions = isRecent ? this.putRight(known, cell) : this.lookUp(cell)
    if (this.cells.size >= CELLS_MAX) this.cells.clear()
    this.cells.set(cell, { version: this.version, subscriptions })
    return subscriptions
  }

  private lookUp(cell: number): readonly Subscription[] {
    const found = this.tree.search(boxOfCell(cell))
    return found.length === 0 ? NOBODY : [...new Set(found.map(({ subscription }) => subscription))]
  }

  private putRight({ version, subscriptions }: Lookers, cell: number): readonly Subscription[] {
    const box = boxOfCell(cell)
    let right = subscriptions
    for (let at = version + 1; at <= this.version; at++) {
      const { boxes, subscription, isGone } = this.changes[at % CHANGES_KEPT]
      if (!boxes.some((other) => overlap(box, other))) continue
      right = isGone ? right.filter((other) => other !== subscription) : [...right, subscription]
    }
    return right
  }
}
