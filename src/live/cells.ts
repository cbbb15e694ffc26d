import { type Box, plainBoxes } from '../geo/box.ts'
import { LNG_MAX_E7 } from '../geo/coordinates.ts'
import { Records } from '../kernel/records.ts'

/** Side of a cell, 1e-7 degree: some 2 km. */
const CELL_E7 = 200_000
const CELLS_ACROSS = 65_536

/** Sides in 1e-7 degree. */
export interface PlainBox {
  minX: number
  minY: number
  maxX: number
  maxY: number
}

/** The number of the cell of a place; NaN for one without coordinates. */
export const cellAt = (lat: number, lng: number): number =>
  Math.floor(lat / CELL_E7) * CELLS_ACROSS + Math.floor(lng / CELL_E7)

const rowOf = (cell: number): number => Math.round(cell / CELLS_ACROSS)

export const boxOfCell = (cell: number): PlainBox => {
  const row = rowOf(cell)
  const column = cell - row * CELLS_ACROSS
  return { minX: column * CELL_E7, minY: row * CELL_E7, maxX: (column + 1) * CELL_E7, maxY: (row + 1) * CELL_E7 }
}

export const overlap = (one: PlainBox, other: PlainBox): boolean =>
  one.minX <= other.maxX && other.minX <= one.maxX && one.minY <= other.maxY && other.minY <= one.maxY

/** The boxes of a viewport. -180 and 180 are the same meridian: one that ends on one of them includes the other too. */
export const boxesOf = (viewport: Box): PlainBox[] => {
  const boxes: PlainBox[] = []
  const { south, north } = viewport
  const add = (minX: number, minY: number, maxX: number, maxY: number): void =>
    void boxes.push({ minX, minY, maxX, maxY })
  const plain = plainBoxes(viewport)
  for (let i = 0; i < plain.length; i += 4) add(plain[i], plain[i + 1], plain[i + 2], plain[i + 3])
  if (viewport.west === -LNG_MAX_E7) add(LNG_MAX_E7, south, LNG_MAX_E7, north)
  if (viewport.east === LNG_MAX_E7) add(-LNG_MAX_E7, south, -LNG_MAX_E7, north)
  return boxes
}

/** Whole numbers of a slot's record: its neighbours in the ring of its cell, the cell, and whether it has one. */
const NEXT = 0
const BEFORE = 1
const CELL = 2
const HAS_CELL = 3
const LINK_INTS = 4

/** Slots by cell, so that opening a map does not look at the whole fleet. Those of one are a ring, in the order of coming. */
export class Cells {
  /** The first slot of each cell, by row and column: a Map of all of them would copy them all when it grows. */
  private readonly firsts = new Map<number, Map<number, number>>()
  private readonly links = new Records(LINK_INTS)
  /** Number of cells with slots. */
  private size = 0

  /** Moves a slot to the cell; NaN is no cell. */
  move(slot: number, to: number): void {
    const { ints } = this.links.piece(slot)
    const at = this.links.at(slot)
    const isNowhere = Number.isNaN(to)
    if (ints[at + HAS_CELL] === 0 ? isNowhere : ints[at + CELL] === to) return
    if (ints[at + HAS_CELL] !== 0) this.leave(slot, ints[at + CELL])
    ints[at + HAS_CELL] = isNowhere ? 0 : 1
    ints[at + CELL] = to
    if (!isNowhere) this.enter(slot, to)
  }

  private enter(slot: number, cell: number): void {
    const row = rowOf(cell)
    let firsts = this.firsts.get(row)
    if (firsts === undefined) this.firsts.set(row, (firsts = new Map()))
    const first = firsts.get(cell)
    if (first === undefined) {
      firsts.set(cell, slot)
      this.size++
    }
    const next = first ?? slot
    const before = first === undefined ? slot : this.link(first, BEFORE)
    this.join(before, slot)
    this.join(slot, next)
  }

  private leave(slot: number, cell: number): void {
    const firsts = this.firsts.get(rowOf(cell)) as Map<number, number>
    const next = this.link(slot, NEXT)
    if (next === slot) {
      firsts.delete(cell)
      if (firsts.size === 0) this.firsts.delete(rowOf(cell))
      this.size--
      return
    }
    this.join(this.link(slot, BEFORE), next)
    if (firsts.get(cell) === slot) firsts.set(cell, next)
  }

  private link(slot: number, way: number): number {
    return this.links.piece(slot).ints[this.links.at(slot) + way]
  }

  private join(before: number, next: number): void {
    this.links.piece(before).ints[this.links.at(before) + NEXT] = next
    this.links.piece(next).ints[this.links.at(next) + BEFORE] = before
  }

  /** The slots of all cells that the viewport touches; undefined where looking at every slot is less work. */
  within(viewport: Box): number[] | undefined {
    const found = new Set<number>()
    for (const { minX, minY, maxX, maxY } of boxesOf(viewport)) {
      const [south, north] = [Math.floor(minY / CELL_E7), Math.floor(maxY / CELL_E7)]
      const [west, east] = [Math.floor(minX / CELL_E7), Math.floor(maxX / CELL_E7)]
      if ((north - south + 1) * (east - west + 1) > this.size) return undefined
      for (let row = south; row <= north; row++) {
        const firsts = this.firsts.get(row)
        if (firsts === undefined) continue
        for (let column = west; column <= east; column++) this.addTo(found, firsts.get(row * CELLS_ACROSS + column))
      }
    }
    return [...found]
  }

  private addTo(found: Set<number>, first: number | undefined): void {
    if (first === undefined) return
    for (let slot = first; ; ) {
      found.add(slot)
      slot = this.link(slot, NEXT)
      if (slot === first) return
    }
  }
}
