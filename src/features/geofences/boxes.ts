import RBush from 'rbush'
import type { TableStore } from '../../engines/table-store.ts'
import { type Box, plainBoxes } from '../../geo/box.ts'
import { LNG_MAX_E7 } from '../../geo/coordinates.ts'
import { breathe } from '../../kernel/breath.ts'
import type { Clock } from '../../kernel/clock.ts'
import { GEOFENCE_BOXES, type GeofenceBoxRow } from './views.ts'

/** Most boxes cached across organizations; beyond it the least recently used organization is evicted. */
const BOXES_MAX = 300_000
/** Idle time after which boxes are reread: meanwhile deletions may have left no trace. */
const KEPT_MS = 3_600_000
const PAGE_ROWS = 500

interface Item {
  minX: number
  minY: number
  maxX: number
  maxY: number
  geofenceId: string
}

interface Kept {
  tree: RBush<Item>
  items: Map<string, Item[]>
  /** Position of the last change included. */
  position: number
  askedAtMs: number
  /** One query of the table runs at a time; concurrent callers share the next, which sees all their writes. */
  looking: Promise<void>
  next: Promise<void> | undefined
}

/**
 * In-memory index of organizations' geofences by their boxes. Filled on the first query of an organization, then kept
 * current with changes in the table since, by an indexed query; so it is right on any node, and writers see their own
 * writes.
 */
export class GeofenceBoxes {
  private readonly tables: Pick<TableStore, 'find' | 'scan'>
  private readonly clock: Clock
  /** Most recently used last. */
  private readonly organizations = new Map<string, Kept>()

  constructor(tables: Pick<TableStore, 'find' | 'scan'>, clock: Clock) {
    this.tables = tables
    this.clock = clock
  }

  /** Ids of geofences whose box meets the box, sides included; `all` if every one does. */
  async meeting(organizationId: string, box: Box): Promise<'all' | string[]> {
    const kept = await this.upToDate(organizationId)
    const found = new Set<string>()
    for (const [minX, minY, maxX, maxY] of searchedBoxes(box))
      for (const { geofenceId } of kept.tree.search({ minX, minY, maxX, maxY })) found.add(geofenceId)
    return found.size === kept.items.size ? 'all' : [...found]
  }

  private async upToDate(organizationId: string): Promise<Kept> {
    const now = this.clock.monotonic()
    let kept = this.organizations.get(organizationId)
    this.organizations.delete(organizationId)
    if (kept === undefined || now - kept.askedAtMs > KEPT_MS)
      kept = {
        tree: new RBush(),
        items: new Map(),
        position: -1,
        askedAtMs: now,
        looking: Promise.resolve(),
        next: undefined,
      }
    this.organizations.set(organizationId, kept)
    kept.askedAtMs = now
    await (kept.next ??= this.look(organizationId, kept))
    this.makeRoom()
    return kept
  }

  private async look(organizationId: string, kept: Kept): Promise<void> {
    await kept.looking
    kept.next = undefined
    const looking = this.follow(organizationId, kept)
    kept.looking = looking.catch(() => undefined) // the caller gets the rejection
    await looking
  }

  private async follow(organizationId: string, kept: Kept): Promise<void> {
    if (kept.position < 0) return this.load(organizationId, kept)
    for (;;) {
      const { rows } = await this.tables.find<GeofenceBoxRow>(GEOFENCE_BOXES.name, organizationId, {
        range: { field: 'position', from: kept.position },
        sort: { field: 'position', order: 'asc' },
        limit: PAGE_ROWS,
      })
      for (const { id, row } of rows) this.take(kept, id, row)
      if (rows.length < PAGE_ROWS) return
    }
  }

  private async load(organizationId: string, kept: Kept): Promise<void> {
    const all: Item[] = []
    let position = -1
    for await (const { id, row } of this.tables.scan<GeofenceBoxRow>(GEOFENCE_BOXES.name, organizationId)) {
      await breathe()
      position = Math.max(position, row.position)
      const items = itemsOf(id, row)
      if (items.length === 0) continue
      kept.items.set(id, items)
      all.push(...items)
    }
    kept.tree.load(all)
    kept.position = position
  }

  private take(kept: Kept, id: string, row: GeofenceBoxRow): void {
    for (const item of kept.items.get(id) ?? []) kept.tree.remove(item)
    const items = itemsOf(id, row)
    for (const item of items) kept.tree.insert(item)
    if (items.length === 0) kept.items.delete(id)
    else kept.items.set(id, items)
    kept.position = Math.max(kept.position, row.position)
  }

  private makeRoom(): void {
    let boxes = 0
    for (const { items } of this.organizations.values()) boxes += items.size
    for (const [organizationId, { items }] of this.organizations) {
      if (boxes <= BOXES_MAX || this.organizations.size === 1) return
      this.organizations.delete(organizationId)
      boxes -= items.size
    }
  }
}

const itemsOf = (geofenceId: string, { box }: GeofenceBoxRow): Item[] => {
  if (box === undefined) return []
  const plain = plainBoxes(box)
  const items: Item[] = []
  for (let at = 0; at < plain.length; at += 4)
    items.push({ minX: plain[at], minY: plain[at + 1], maxX: plain[at + 2], maxY: plain[at + 3], geofenceId })
  return items
}

/** The box as plain boxes; -180 and 180 are the same meridian. */
const searchedBoxes = (box: Box): [west: number, south: number, east: number, north: number][] => {
  const { south, north } = box
  const plain = plainBoxes(box)
  const boxes: [number, number, number, number][] = []
  for (let at = 0; at < plain.length; at += 4) {
    const [west, east] = [plain[at], plain[at + 2]]
    boxes.push([west, south, east, north])
    if (west === -LNG_MAX_E7) boxes.push([LNG_MAX_E7, south, LNG_MAX_E7, north])
    if (east === LNG_MAX_E7) boxes.push([-LNG_MAX_E7, south, -LNG_MAX_E7, north])
  }
  return boxes
}
