// Geofences as GeoJSON that a map can draw: circles become polygons, corridors stay lines with a width.
import type { Feature, Geometry } from 'geojson'
import { circleRing, distance, distanceToLine, isInRing, pixelsAtZoom0, type Position, unwrapped } from './geometry.ts'

export interface FenceShape {
  geometry?: { type: string; coordinates: unknown }
  center?: { lat: number; lng: number }
  radius?: number
  width?: number
}

export interface Fence extends FenceShape {
  _id: string
  name: string
  geofenceGroupId: string
  isActive: boolean
  version: number
}

export interface FenceFeature {
  feature: Feature
  label: Feature
}

/** Undefined if a shape is not complete yet. */
export const fenceFeature = (shape: FenceShape, id = '', name = ''): FenceFeature | undefined => {
  const drawn = drawnOf(shape)
  if (drawn === undefined) return undefined
  const properties = { id, name, ...drawn.properties }
  const at: Geometry = { type: 'Point', coordinates: drawn.middle }
  return {
    feature: { type: 'Feature', properties, geometry: drawn.geometry },
    label: { type: 'Feature', properties: { id, name }, geometry: at },
  }
}

interface Drawn {
  geometry: Geometry
  middle: Position
  properties?: { pixels: number }
}

const drawnOf = ({ geometry, center, radius, width }: FenceShape): Drawn | undefined => {
  if (center !== undefined) {
    if (!radius) return undefined
    const middle: Position = [center.lng, center.lat]
    return { geometry: { type: 'Polygon', coordinates: [circleRing(middle, radius)] }, middle }
  }
  if (geometry === undefined) return undefined
  if (geometry.type === 'LineString') {
    const coordinates = unwrapped(geometry.coordinates as Position[])
    if (coordinates.length < 2) return undefined
    const middle = coordinates[Math.floor(coordinates.length / 2)]!
    return {
      geometry: { type: 'LineString', coordinates },
      middle,
      properties: { pixels: pixelsAtZoom0(width ?? 0, middle[1]) },
    }
  }
  const coordinates = polygonsOf(geometry).map((rings) => rings.map(unwrapped))
  const ring = coordinates[0]?.[0]
  if (ring === undefined || ring.length < 3) return undefined
  return { geometry: { type: 'MultiPolygon', coordinates }, middle: middleOf(ring) }
}

const polygonsOf = ({ type, coordinates }: { type: string; coordinates: unknown }): Position[][][] =>
  type === 'Polygon' ? [coordinates as Position[][]] : (coordinates as Position[][][])

const middleOf = (ring: readonly Position[]): Position => [
  ring.reduce((sum, [lng]) => sum + lng, 0) / ring.length,
  ring.reduce((sum, [, lat]) => sum + lat, 0) / ring.length,
]

/** Whether a place is inside, accurate enough for display; the service alone decides. */
export const isInside = (place: Position, { geometry, center, radius, width }: FenceShape): boolean => {
  if (center !== undefined) return distance(place, [center.lng, center.lat]) <= (radius ?? 0)
  if (geometry === undefined) return false
  if (geometry.type === 'LineString')
    return distanceToLine(place, geometry.coordinates as Position[]) <= (width ?? 0) / 2
  return polygonsOf(geometry).some((rings) => rings.filter((ring) => isInRing(place, ring)).length % 2 === 1)
}
