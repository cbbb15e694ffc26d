import type { Box } from '../../geo/box.ts'

/** Levels of a grid over the earth, each with cells half as wide and high at every step in between. */
const LEVELS = [2, 5, 8, 11, 14]
/** Cells that one question names at most. */
const CELLS_MAX = 64

/** The cells that a place lies in, one at each level: what a box is looked for by. */
export const cellsOf = (lat: number, lng: number): string[] =>
  LEVELS.map((level) => nameOf(level, columnOf(level, lng), rowOf(level, lat)))

/** Cells that cover a box, at the finest level at which they are few. In degrees; west beyond east crosses the antimeridian. */
export const cellsOver = ({
  west,
  south,
  east,
  north,
}: {
  west: number
  south: number
  east: number
  north: number
}): string[] => {
  let cells: string[] = []
  for (const level of LEVELS) {
    const first = columnOf(level, west)
    const size = 2 ** level
    const width = west <= east ? columnOf(level, east) - first + 1 : columnOf(level, east) + size - first + 1
    const bottom = rowOf(level, south)
    const height = rowOf(level, north) - bottom + 1
    if (cells.length > 0 && width * height > CELLS_MAX) break
    cells = []
    for (let x = 0; x < Math.min(width, size); x++)
      for (let y = 0; y < height; y++) cells.push(nameOf(level, (first + x) % size, bottom + y))
  }
  return cells
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
