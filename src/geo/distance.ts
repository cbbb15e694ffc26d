/** Mean radius of the earth, the same as turf's. */
export const EARTH_RADIUS_METERS = 6371008.8

const RADIANS_PER_E7 = Math.PI / 180 / 1e7

/** Metres of one unit of latitude; a unit of longitude is never longer. */
export const METERS_PER_E7 = EARTH_RADIUS_METERS * RADIANS_PER_E7

export const e7ToRadians = (e7: number): number => e7 * RADIANS_PER_E7

/** Great-circle distance in metres between two positions in E7 (haversine on a sphere). */
export const distanceMeters = (aLngE7: number, aLatE7: number, bLngE7: number, bLatE7: number): number => {
  const sinLat = Math.sin(((bLatE7 - aLatE7) * RADIANS_PER_E7) / 2)
  const sinLng = Math.sin(((bLngE7 - aLngE7) * RADIANS_PER_E7) / 2)
  const h = sinLat * sinLat + sinLng * sinLng * Math.cos(aLatE7 * RADIANS_PER_E7) * Math.cos(bLatE7 * RADIANS_PER_E7)
  return 2 * EARTH_RADIUS_METERS * Math.atan2(Math.sqrt(h), Math.sqrt(Math.max(0, 1 - h)))
}
