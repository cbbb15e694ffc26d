import type { Box } from '../../geo/box.ts'

/** Levels of a grid over the earth, each with cells half as wide and high at every step in between. */
const LEVELS = [2, 5, 8, 11, 14]
/** Cells that one question names at most. */
const CELLS_MAX = 64

/** The cells that a place lies in, one at each level: what a box is looked for by. */
export const cellsOf = (lat: number, lng: number): string[] =>
  LEVELS.map((level) => nameOf(level, columnOf(level, lng), rowOf(level, lat)))

/** Wider than any rounding of an edge of a cell, in degrees. */
const EDGE = 1e-6

/** In degrees; west beyond east crosses the antimeridian. */
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

/** Cells that cover a box, at the finest level at which they are few. */
export const cellsOver = (box: Degrees): string[] => {
  const { level, first, width, bottom, height } = coverOf(box)
  const cells: string[] = []
  const size = 2 ** level
  for (let x = 0; x < Math.min(width, size); x++)
    for (let y = 0; y < height; y++) cells.push(nameOf(level, (first + x) % size, bottom + y))
  return cells
}

/** The box that those cells fill, a little more at each side: all that lies in one of them lies in it. East is beyond west. */
export const boundsOfCells = (box: Degrees): Degrees => {
  const { level, first, width, bottom, height } = coverOf(box)
  const [columnDegrees, rowDegrees] = [360 / 2 ** level, 180 / 2 ** level]
  return {
    west: first * columnDegrees - 180 - EDGE,
    south: bottom * rowDegrees - 90 - EDGE,
    east: (first + width) * columnDegrees - 180 + EDGE,
    north: (bottom + height) * rowDegrees - 90 + EDGE,
  }
}

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

/** A box in 1e-7 degree as degrees. */
export const degreesOf = ({
  west,
  south,
  east,
  north,
}: Box): { west: number; south: number; east: number; north: number } => ({
  west: west / 1e7,
  south: south / 1e7,
  east: east / 1e7,
  north: north / 1e7,
})
