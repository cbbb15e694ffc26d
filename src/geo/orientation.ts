import { orient2d } from 'robust-predicates'

// Differences of E7 coordinates are exact in a double; this bounds the loss of two products and one subtraction.
const ROUNDING = 3.3306690738754716e-16

/** Which side of the line a→b the point p is on: > 0 left, < 0 right, 0 exactly on it. The sign is always right. */
export const orientation = (ax: number, ay: number, bx: number, by: number, px: number, py: number): number => {
  const left = (bx - ax) * (py - ay)
  const right = (by - ay) * (px - ax)
  const det = left - right
  const bound = ROUNDING * (Math.abs(left) + Math.abs(right))
  return det > bound || -det > bound ? det : -orient2d(ax, ay, bx, by, px, py)
}

/** Whether a point lies on the edge a→b, its ends included. Exact. */
export const onEdge = (ax: number, ay: number, bx: number, by: number, px: number, py: number): boolean =>
  px >= Math.min(ax, bx) &&
  px <= Math.max(ax, bx) &&
  py >= Math.min(ay, by) &&
  py <= Math.max(ay, by) &&
  orientation(ax, ay, bx, by, px, py) === 0
