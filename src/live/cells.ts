import { type Box, plainBoxes } from '../geo/box.ts'
import { LNG_MAX_E7 } from '../geo/coordinates.ts'

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

export const boxOfCell = (cell: number): PlainBox => {
  const row = Math.round(cell / CELLS_ACROSS)
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

/** Slots by cell, so that opening a map does not look at the whole fleet. */
export class Cells {
  private readonly slots = new Map<number, Set<number>>()

  /** Moves a slot between cells; NaN is no cell. */
  move(slot: number, from: number, to: number): void {
    const left = this.slots.get(from)
    left?.delete(slot)
    if (left?.size === 0) this.slots.delete(from)
    if (Number.isNaN(to)) return
    const entered = this.slots.get(to)
    if (entered === undefined) this.slots.set(to, new Set([slot]))
    else entered.add(slot)
  }

  /** The slots of all cells that the viewport touches; undefined where looking at every slot is less work. */
  within(viewport: Box): number[] | undefined {
    const found = new Set<number>()
    for (const { minX, minY, maxX, maxY } of boxesOf(viewport)) {
      const [south, north] = [Math.floor(minY / CELL_E7), Math.floor(maxY / CELL_E7)]
      const [west, east] = [Math.floor(minX / CELL_E7), Math.floor(maxX / CELL_E7)]
      if ((north - south + 1) * (east - west + 1) > this.slots.size) return undefined
      for (let row = south; row <= north; row++)
        for (let column = west; column <= east; column++)
          for (const slot of this.slots.get(row * CELLS_ACROSS + column) ?? []) found.add(slot)
    }
    return [...found]
  }
}
