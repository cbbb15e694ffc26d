import { LAT_MAX_E7, LNG_MAX_E7, normalizeLngE7, toE7, TURN_E7, wrapLngE7 } from './coordinates.ts'

/** A viewport in E7; where west > east it crosses the antimeridian. Its sides belong to it. */
export type Box = { readonly west: number; readonly south: number; readonly east: number; readonly north: number }

/**
 * A viewport from degrees. Longitudes may be any number of turns off, as maps that pan have them; 360° and more is all around.
 * Latitudes are cut off at the poles. West greater than east crosses the antimeridian.
 */
export const boxOfDegrees = (west: number, south: number, east: number, north: number): Box => {
  const around = east - west >= 360
  return {
    west: around ? -LNG_MAX_E7 : normalizeLngE7(west),
    south: toE7(Math.max(-90, south)),
    east: around ? LNG_MAX_E7 : normalizeLngE7(east),
    north: toE7(Math.min(90, north)),
  }
}

/** -180 and 180 are the same meridian. */
export const boxContains = (box: Box, lngE7: number, latE7: number): boolean =>
  latE7 >= box.south &&
  latE7 <= box.north &&
  (spans(box, lngE7) || (Math.abs(lngE7) === LNG_MAX_E7 && spans(box, -lngE7)))

/** The box as one or two that do not cross the antimeridian: west, south, east, north of each in turn. */
export const plainBoxes = (box: Box): Int32Array =>
  box.west <= box.east
    ? Int32Array.of(box.west, box.south, box.east, box.north)
    : Int32Array.of(box.west, box.south, LNG_MAX_E7, box.north, -LNG_MAX_E7, box.south, box.east, box.north)

/** Plain boxes for a range of longitudes that may run over ±180°, e.g. 170° to 190°. */
export const boxesOfRange = (west: number, south: number, east: number, north: number): Int32Array => {
  const s = Math.max(-LAT_MAX_E7, south)
  const n = Math.min(LAT_MAX_E7, north)
  if (east - west >= TURN_E7) return Int32Array.of(-LNG_MAX_E7, s, LNG_MAX_E7, n)
  const w = wrapLngE7(west)
  const e = w + east - west
  return plainBoxes({ west: w, south: s, east: e > LNG_MAX_E7 ? e - TURN_E7 : e, north: n })
}

const spans = (box: Box, lngE7: number): boolean =>
  box.west <= box.east ? lngE7 >= box.west && lngE7 <= box.east : lngE7 >= box.west || lngE7 <= box.east
