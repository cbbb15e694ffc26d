/**
 * Coordinates are integers of 1e-7 degree ("E7"; 11 mm of latitude), so that equality is exact and a position is 8 bytes.
 * The longest a longitude can be, 1,800,000,000, fits an Int32.
 */
export const LNG_MAX_E7 = 1_800_000_000
export const LAT_MAX_E7 = 900_000_000
export const TURN_E7 = 3_600_000_000

/** Degrees to the nearest 1e-7 degree; a tie goes to the east or north. For finite values within ±180. */
export const toE7 = (degrees: number): number => Math.round(degrees * 1e7) | 0

/** The double nearest to the decimal number of the integer. */
export const fromE7 = (e7: number): number => e7 / 1e7

/** The same longitude within -180 (included) to 180 degrees (excluded). */
export const wrapLngE7 = (lngE7: number): number => lngE7 - TURN_E7 * Math.floor((lngE7 + LNG_MAX_E7) / TURN_E7)

/** Degrees of longitude, any number of turns, to E7 as kept: -180 and 180 stay unchanged. */
export const normalizeLngE7 = (degrees: number): number =>
  toE7(Math.abs(degrees) <= 180 ? degrees : degrees - 360 * Math.floor((degrees + 180) / 360))

/**
 * Eastward extent of an edge from one vertex to the next. A jump of over 180° goes the short way, across the
 * antimeridian; an edge between -180 and 180 at a pole runs along the pole.
 */
export const eastwardE7 = (ax: number, ay: number, bx: number, by: number): number => {
  const dx = bx - ax
  if (Math.abs(dx) <= LNG_MAX_E7) return dx
  const alongPole = Math.abs(dx) === TURN_E7 && ay === by && Math.abs(ay) === LAT_MAX_E7
  return alongPole ? dx : dx - Math.sign(dx) * TURN_E7
}
