import type { Polygon } from 'geojson'

/** A polygon about a centre in degrees whose vertices, at even angles, are between `rough` and 1 times the radius away. */
export const blob = (
  random: () => number,
  lng: number,
  lat: number,
  radius: number,
  vertices: number,
  rough = 0.6,
): Polygon => {
  const ring = Array.from({ length: vertices }, (_, i) => {
    const angle = (2 * Math.PI * i) / vertices
    const reach = radius * (rough + (1 - rough) * random())
    return [lng + reach * Math.cos(angle), lat + reach * Math.sin(angle)]
  })
  return { type: 'Polygon', coordinates: [[...ring, ring[0]!]] }
}
