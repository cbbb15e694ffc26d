// Groups overlapping trackers by a grid on the screen's pixels.
import type { Feature } from 'geojson'
import type { Fleet } from '../live/fleet.ts'
import { mercatorX, mercatorY } from './tracker-layer.ts'

const CELL_PIXELS = 56
const TILE_PIXELS = 512

export interface Cluster {
  slots: number[]
  lng: number
  lat: number
}

export interface Clustered {
  clusters: Cluster[]
  singles: number[]
}

/** Visible slots, by cell: a cell with two or more is a cluster. */
export const clustered = (fleet: Fleet, slots: readonly number[], zoom: number): Clustered => {
  const cells = new Map<number, number[]>()
  const cellsAcross = cellsAt(zoom)
  for (const slot of slots) {
    const column = Math.floor(mercatorX(fleet.lng[slot]!) * cellsAcross)
    const row = Math.floor(mercatorY(fleet.lat[slot]!) * cellsAcross)
    const key = row * cellsAcross + column
    const cell = cells.get(key)
    if (cell === undefined) cells.set(key, [slot])
    else cell.push(slot)
  }
  const found: Clustered = { clusters: [], singles: [] }
  for (const cell of cells.values()) {
    if (cell.length === 1) found.singles.push(cell[0]!)
    else found.clusters.push(clusterOf(fleet, cell))
  }
  return found
}

/** The grid changes only at half zooms, so that clusters do not flicker while zooming. */
const cellsAt = (zoom: number): number =>
  Math.max(1, Math.round((TILE_PIXELS * 2 ** (Math.round(zoom * 2) / 2)) / CELL_PIXELS))

const clusterOf = (fleet: Fleet, slots: number[]): Cluster => {
  let [lng, lat] = [0, 0]
  for (const slot of slots) {
    lng += fleet.lng[slot]!
    lat += fleet.lat[slot]!
  }
  return { slots, lng: lng / slots.length, lat: lat / slots.length }
}

export const clusterFeature = ({ slots, lng, lat }: Cluster, index: number): Feature => ({
  type: 'Feature',
  properties: { index, count: slots.length, name: String(slots.length) },
  geometry: { type: 'Point', coordinates: [lng, lat] },
})
