import { e7ToRadians } from './distance.ts'

/**
 * Great-circle segments by unit vectors. A prepared segment is 15 numbers: its ends A and B, the normal N of its plane,
 * and N × A and B × N, the normals of the planes that cut it off at its ends.
 */
export const SEGMENT_NUMBERS = 15

/** Writes the unit vector of a position in E7 to `out[at..at + 2]`. */
export const writeVector = (lngE7: number, latE7: number, out: Float64Array, at: number): void => {
  const lng = e7ToRadians(lngE7)
  const lat = e7ToRadians(latE7)
  const cosLat = Math.cos(lat)
  out[at] = cosLat * Math.cos(lng)
  out[at + 1] = cosLat * Math.sin(lng)
  out[at + 2] = Math.sin(lat)
}

/** Prepares the segment between the vectors at `a` and `b` of `from`. Ends that coincide give a segment of one point. */
export const writeSegment = (from: Float64Array, a: number, b: number, out: Float64Array, at: number): void => {
  for (let i = 0; i < 3; i++) {
    out[at + i] = from[a + i]!
    out[at + 3 + i] = from[b + i]!
    // By A × (B − A), which keeps its digits where the ends are close.
    out[at + 9 + i] = from[b + i]! - from[a + i]!
  }
  cross(out, at, at + 9, at + 6)
  const length = Math.hypot(out[at + 6]!, out[at + 7]!, out[at + 8]!)
  for (let i = 6; i < 9; i++) out[at + i] = length === 0 ? 0 : out[at + i]! / length
  cross(out, at + 6, at, at + 9)
  cross(out, at + 3, at + 6, at + 12)
}

/** The angle in radians from the unit vector (x, y, z) to the nearest point of a prepared segment. */
export const angleToSegment = (segment: Float64Array, at: number, x: number, y: number, z: number): number => {
  // Relative to the ends: nearby points are told apart by differences, not by the last digits of products near 1.
  const ax = x - segment[at]!
  const ay = y - segment[at + 1]!
  const az = z - segment[at + 2]!
  const bx = x - segment[at + 3]!
  const by = y - segment[at + 4]!
  const bz = z - segment[at + 5]!
  const pastA = segment[at + 9]! * ax + segment[at + 10]! * ay + segment[at + 11]! * az
  const beforeB = segment[at + 12]! * bx + segment[at + 13]! * by + segment[at + 14]! * bz
  if (pastA > 0 && beforeB > 0) {
    const sine = Math.abs(segment[at + 6]! * ax + segment[at + 7]! * ay + segment[at + 8]! * az)
    return Math.asin(Math.min(1, sine))
  }
  const chord = Math.sqrt(Math.min(ax * ax + ay * ay + az * az, bx * bx + by * by + bz * bz))
  return 2 * Math.asin(Math.min(1, chord / 2))
}

/** Lowest and highest latitude of a prepared segment, in radians: of its ends, or of the turning points between them. */
export const segmentLatitudes = (segment: Float64Array, at: number): [south: number, north: number] => {
  const ends = [Math.asin(clamp(segment[at + 2]!)), Math.asin(clamp(segment[at + 5]!))] as const
  let south = Math.min(...ends)
  let north = Math.max(...ends)
  const [nx, ny, nz] = [segment[at + 6]!, segment[at + 7]!, segment[at + 8]!]
  const level = Math.hypot(nx, ny)
  if (level === 0) return [south, north]
  // The point of the great circle nearest the north pole; its opposite is the southernmost.
  const top = [(-nz * nx) / level, (-nz * ny) / level, level] as const
  const pastA = segment[at + 9]! * top[0] + segment[at + 10]! * top[1] + segment[at + 11]! * top[2]
  const beforeB = segment[at + 12]! * top[0] + segment[at + 13]! * top[1] + segment[at + 14]! * top[2]
  if (pastA >= 0 && beforeB >= 0) north = Math.asin(clamp(level))
  if (pastA <= 0 && beforeB <= 0) south = -Math.asin(clamp(level))
  return [south, north]
}

const clamp = (sine: number): number => Math.max(-1, Math.min(1, sine))

const cross = (v: Float64Array, a: number, b: number, out: number): void => {
  const x = v[a + 1]! * v[b + 2]! - v[a + 2]! * v[b + 1]!
  const y = v[a + 2]! * v[b]! - v[a]! * v[b + 2]!
  const z = v[a]! * v[b + 1]! - v[a + 1]! * v[b]!
  v[out] = x
  v[out + 1] = y
  v[out + 2] = z
}
