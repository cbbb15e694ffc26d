/** The ring of a box, in degrees, as GeoJSON has it. */
export const ringOf = (west: number, south: number, east: number, north: number): [number, number][] => [
  [west, south],
  [east, south],
  [east, north],
  [west, north],
  [west, south],
]
