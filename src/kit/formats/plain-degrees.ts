/** Numbers below are written with an exponent, which neither GPX nor readers of places take. */
const EXPONENT_BELOW = 1e-6
const DIGITS = 12

/** Degrees as a decimal without an exponent. */
export const plainDegrees = (degrees: number): string =>
  Math.abs(degrees) < EXPONENT_BELOW ? degrees.toFixed(DIGITS).replace(/\.?0+$/, '') : String(degrees)

/** The longitude of a GPX element: GPX has -180 for the antimeridian, and no 180. */
export const gpxLongitude = (degrees: number): string => plainDegrees(degrees === 180 ? -180 : degrees)
