import type { Feature, MultiPolygon, Polygon, Position } from 'geojson'
import { seeded } from './random.ts'

type Fence = Feature<Polygon | MultiPolygon, { name: string }>

/** Size of a block in degrees: at Warsaw some 820 by 890 m. */
const WIDTH = 0.012
const HEIGHT = 0.008
/** Blocks along the side of a district. */
const SIDE = 4

/**
 * Fences that make work of any trace of a town, the same for the same points: a crooked block of eight corners around every
 * point, its edges shared with its neighbours; a courtyard cut out of each third block, and a fence that fills it exactly;
 * districts of several parts, each a chessboard of blocks, that overlap all of these.
 */
export const cityBlocks = (points: Iterable<{ lat: number; lng: number }>): Fence[] => {
  const cells = new Map<string, [column: number, row: number]>()
  for (const { lat, lng } of points) {
    const [column, row] = [Math.floor(lng / WIDTH), Math.floor(lat / HEIGHT)]
    cells.set(`${column} ${row}`, [column, row])
  }
  const districts = new Map<string, Position[][][]>()
  const fences: Fence[] = []
  for (const [name, [column, row]] of cells) {
    const ring = blockOf(column, row)
    const rings = [ring]
    if ((column + row) % 3 === 0) {
      rings.push(courtyardOf(ring))
      fences.push(fenceOf(`Courtyard ${name}`, { type: 'Polygon', coordinates: [courtyardOf(ring)] }))
    }
    fences.push(fenceOf(`Block ${name}`, { type: 'Polygon', coordinates: rings }))
    if ((column + row) % 2 !== 0) continue
    const district = `District ${Math.floor(column / SIDE)} ${Math.floor(row / SIDE)}`
    districts.set(district, [...(districts.get(district) ?? []), [ring]])
  }
  for (const [name, coordinates] of districts) fences.push(fenceOf(name, { type: 'MultiPolygon', coordinates }))
  return fences
}

const fenceOf = (name: string, geometry: Polygon | MultiPolygon): Fence => ({
  type: 'Feature',
  properties: { name },
  geometry,
})

const blockOf = (column: number, row: number): Position[] => {
  const corners = [
    [column, row],
    [column + 1, row],
    [column + 1, row + 1],
    [column, row + 1],
  ]
  const ring = corners.flatMap(([x, y], index) => {
    const [nextX, nextY] = corners[(index + 1) % corners.length]
    return [shifted(x, y), shifted((x + nextX) / 2, (y + nextY) / 2)]
  })
  return [...ring, ring[0]]
}

/** A corner of the grid, or the middle between two, moved by up to a sixth of a block: the same for all blocks that meet there. */
const shifted = (x: number, y: number): Position => {
  const random = seeded(Math.imul(x * 2, 73_856_093) ^ Math.imul(y * 2, 19_349_663))
  return [rounded((x + (random() - 0.5) / 3) * WIDTH), rounded((y + (random() - 0.5) / 3) * HEIGHT)]
}

const courtyardOf = (ring: Position[]): Position[] => {
  const corners = ring.slice(1)
  const middle = [0, 1].map((axis) => corners.reduce((sum, corner) => sum + corner[axis], 0) / corners.length)
  return ring.map((corner) => corner.map((degrees, axis) => rounded(middle[axis] + (degrees - middle[axis]) / 2)))
}

const rounded = (degrees: number): number => Math.round(degrees * 1e7) / 1e7
