import { LAT_MAX_E7, LNG_MAX_E7, normalizeLngE7, toE7, TURN_E7, wrapLngE7 } from './coordinates.ts'

/** A viewport in E7; where west > east it crosses the antimeridian. Its sides are included. */
export type Box = { readonly west: number; readonly south: number; readonly east: number; readonly north: number }

/**
 * A viewport from degrees. Longitudes may be any number of turns off, as panned maps have them; 360° and more is all
 * around. Latitudes are cut off at the poles. West greater than east crosses the antimeridian.
 */
export const boxOfDegrees = (west: number, south: number, east: number, north: number): Box => {
  const around = Math.round(east * 1e7) - Math.round(west * 1e7) >= TURN_E7
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

/**
 * The smallest box that holds all of these plain boxes (west, south, east, north in turn): it leaves out the widest gap
 * in longitude, so boxes on both sides of the antimeridian get one across it.
 */
export const boxAround = (boxes: ArrayLike<number>): Box => {
  const spans: [west: number, east: number][] = []
  let [south, north] = [LAT_MAX_E7, -LAT_MAX_E7]
  for (let at = 0; at < boxes.length; at += 4) {
    spans.push([boxes[at]!, boxes[at + 2]!])
    south = Math.min(south, boxes[at + 1]!)
    north = Math.max(north, boxes[at + 3]!)
  }
  spans.sort(([a], [b]) => a - b)
  let [west, east] = [spans[0]![0], Math.max(...spans.map(([, end]) => end))]
  let widest = TURN_E7 - (east - west)
  let reached = spans[0]![1]
  for (const [from, to] of spans) {
    if (from - reached > widest) {
      widest = from - reached
      west = from
      east = reached
    }
    reached = Math.max(reached, to)
  }
  return { west, south, east, north }
}

const spans = (box: Box, lngE7: number): boolean =>
  box.west <= box.east ? lngE7 >= box.west && lngE7 <= box.east : lngE7 >= box.west || lngE7 <= box.east
