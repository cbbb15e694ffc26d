// A place as people type it.
import type { Position } from './geometry.ts'

/** Undefined where it is not just a latitude and a longitude: with decimal commas there are four numbers, not two. */
export const typedPlace = (text: string): Position | undefined => {
  const [lat, lng, ...more] = text
    .split(/[,;\s]+/)
    .filter(Boolean)
    .map(Number)
  const isPlace = lat !== undefined && lng !== undefined && Math.abs(lat) <= 90 && Math.abs(lng) <= 180
  return isPlace && more.length === 0 ? [lng, lat] : undefined
}
