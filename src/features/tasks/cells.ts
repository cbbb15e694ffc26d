import type { Range } from '../../engines/table-store.ts'
import type { Box } from '../../geo/box.ts'
import { fromE7, LNG_MAX_E7, toE7 } from '../../geo/coordinates.ts'

/** Levels of a grid over the earth; each increment halves the width and height of the cells. */
const LEVELS = [2, 5, 8, 11, 14]
const CELLS_MAX = 64

/** Index members of a place: its coordinates, and its cells, one at each level. */
export const placeOf = (lat: number, lng: number): { placeLat: number; placeLng: number; cells: string[] } => {
  const [placeLat, placeLng] = [fromE7(toE7(lat)), lngOf(toE7(lng))]
  const cells = LEVELS.map((level) => nameOf(level, columnOf(level, placeLng), rowOf(level, placeLat)))
  return { placeLat, placeLng, cells }
}

/** Query for the places in a box: the cells covering it, and the bounds within those. */
export const withinBox = (box: Box): { cells: string[]; ranges: Range[] } => {
  const degrees = degreesOf(box)
  const cover = coverOf(degrees)
  const { west, south, east, north } = degrees
  const around = boundsOf(cover, degrees)
  return {
    cells: cellsOf(cover),
    ranges: [
      { field: 'placeLat', from: south, to: north, keptWithin: { from: around.south, to: around.north } },
      { field: 'placeLng', from: west, to: east, goesRound: true, keptWithin: { from: around.west, to: around.east } },
    ],
  }
}

/** A box in the coordinates of stored places. */
const degreesOf = ({ west, south, east, north }: Box): Degrees => ({
  west: east === LNG_MAX_E7 ? fromE7(west) : lngOf(west),
  south: fromE7(south),
  east: lngOf(east),
  north: fromE7(north),
})

/** In degrees: -180 and 180 are the same meridian, and stored as 180. */
const lngOf = (e7: number): number => fromE7(e7 === -LNG_MAX_E7 ? LNG_MAX_E7 : e7)

/** Exceeds any rounding of an edge of a cell, in degrees. */
const EDGE = 1e-6

/** In degrees; west greater than east crosses the antimeridian. */
interface Degrees {
  west: number
  south: number
  east: number
  north: number
}

/** Cells that cover a box. */
interface Cover {
  level: number
  first: number
  width: number
  bottom: number
  height: number
}

const cellsOf = ({ level, first, width, bottom, height }: Cover): string[] => {
  const cells: string[] = []
  const size = 2 ** level
  for (let x = 0; x < Math.min(width, size); x++)
    for (let y = 0; y < height; y++) cells.push(nameOf(level, (first + x) % size, bottom + y))
  return cells
}

/** Box of those cells, slightly enlarged: it contains every place in them. */
const boundsOf = ({ level, first, width, bottom, height }: Cover, box: Degrees): Degrees => {
  const [columnDegrees, rowDegrees] = [360 / 2 ** level, 180 / 2 ** level]
  const [south, north] = [bottom * rowDegrees - 90 - EDGE, (bottom + height) * rowDegrees - 90 + EDGE]
  // All the way round, from the middle of the part outside the box.
  const middle = (box.west + box.east) / 2
  if (box.west > box.east && width >= 2 ** level) return { west: middle, south, east: middle, north }
  const east = (first + width) * columnDegrees - 180 + EDGE
  const turn = box.west > box.east ? 360 : 0
  return { west: first * columnDegrees - 180 - EDGE, south, east: east - turn, north }
}

/** Cells of the box at the finest level with few enough. */
const coverOf = ({ west, south, east, north }: Degrees): Cover => {
  let cover: Cover | undefined
  for (const level of LEVELS) {
    const first = columnOf(level, west)
    const turn = west <= east ? 0 : 2 ** level
    const width = columnOf(level, east) + turn - first + 1
    const bottom = rowOf(level, south)
    const height = rowOf(level, north) - bottom + 1
    if (cover !== undefined && width * height > CELLS_MAX) break
    cover = { level, first, width, bottom, height }
  }
  return cover as Cover
}

const nameOf = (level: number, column: number, row: number): string => `${level}/${column}/${row}`

const columnOf = (level: number, lng: number): number =>
  Math.min(2 ** level - 1, Math.floor(((lng + 180) / 360) * 2 ** level))

const rowOf = (level: number, lat: number): number =>
  Math.min(2 ** level - 1, Math.floor(((lat + 90) / 180) * 2 ** level))
