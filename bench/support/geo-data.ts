import type { Polygon } from 'geojson'

/** A seeded generator of numbers from 0 to 1 (mulberry32), so that two runs see the same data. */
export const seeded =
  (seed: number): (() => number) =>
  () => {
    seed = (seed + 0x6d2b79f5) | 0
    let mixed = Math.imul(seed ^ (seed >>> 15), 1 | seed)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }

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
