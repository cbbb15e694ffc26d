import { EARTH_RADIUS_METERS } from './distance.ts'
import { angleToSegment, SEGMENT_NUMBERS, writeSegment, writeVector } from './great-circle.ts'

/**
 * Douglas–Peucker: the indices, rising, of the points to keep from `from` to `to` (exclusive). The first and the last are kept;
 * each point left out is within `toleranceMeters` of the great-circle segment between the kept points around it. Works on unit
 * vectors, so the antimeridian and the poles need no special case. No recursion; at worst quadratic in the points given.
 */
export const simplify = (
  lngsE7: ArrayLike<number>,
  latsE7: ArrayLike<number>,
  toleranceMeters: number,
  from = 0,
  to = lngsE7.length,
): Uint32Array => {
  const count = to - from
  if (count <= 2) return Uint32Array.from({ length: Math.max(0, count) }, (_, i) => from + i)
  const vectors = new Float64Array(count * 3)
  for (let i = 0; i < count; i++) writeVector(lngsE7[from + i]!, latsE7[from + i]!, vectors, i * 3)
  const keeps = new Uint8Array(count)
  keeps[0] = keeps[count - 1] = 1
  const stack = [0, count - 1]
  let kept = 2
  while (stack.length > 0) {
    const last = stack.pop()!
    const first = stack.pop()!
    const far = farthest(vectors, first, last, toleranceMeters / EARTH_RADIUS_METERS)
    if (far < 0) continue
    keeps[far] = 1
    kept++
    stack.push(first, far, far, last)
  }
  const indices = new Uint32Array(kept)
  for (let i = 0, k = 0; i < count; i++) if (keeps[i] === 1) indices[k++] = from + i
  return indices
}

const segment = new Float64Array(SEGMENT_NUMBERS)

/** The point between first and last that is farthest from their segment, or -1 where all are within the tolerance. */
const farthest = (vectors: Float64Array, first: number, last: number, tolerance: number): number => {
  let found = -1
  let angleMax = tolerance
  writeSegment(vectors, first * 3, last * 3, segment, 0)
  for (let i = first + 1; i < last; i++) {
    const angle = angleToSegment(segment, 0, vectors[i * 3]!, vectors[i * 3 + 1]!, vectors[i * 3 + 2]!)
    if (angle > angleMax) {
      angleMax = angle
      found = i
    }
  }
  return found
}
