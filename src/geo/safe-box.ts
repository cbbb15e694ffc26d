import { METERS_PER_E7 } from './distance.ts'
import { metersFrom, type Reach } from './reach.ts'

/*
 * A safe box holds a position and nothing of any boundary, so no answer changes within it. It begins as the leaf's box and
 * is cut back for each edge. Boxes are closed: west, south, east, north at boxes[at..at + 3].
 */

/** Cuts the box about (px, py) back so that it has no point of the edge a→b; to the position alone where that is on it. */
export const keepOffEdge = (
  boxes: Int32Array,
  at: number,
  px: number,
  py: number,
  ax: number,
  ay: number,
  bx: number,
  by: number,
): void => {
  const minX = Math.min(ax, bx)
  const maxX = Math.max(ax, bx)
  const minY = Math.min(ay, by)
  const maxY = Math.max(ay, by)
  if (maxX < boxes[at]! || minX > boxes[at + 2]! || maxY < boxes[at + 1]! || minY > boxes[at + 3]!) return

  // Distance that the box goes toward the line of the edge; the position is on its left where `side` > 0.
  const dx = bx - ax
  const dy = by - ay
  const left = dx * (py - ay)
  const right = dy * (px - ax)
  const side = left - right
  const east = side > 0 === dy > 0
  const north = side > 0 !== dx > 0
  const runX = east ? boxes[at + 2]! - px : px - boxes[at]!
  const runY = north ? boxes[at + 3]! - py : py - boxes[at + 1]!
  const width = Math.abs(dx)
  const height = Math.abs(dy)
  const clear = Math.abs(side) - 4e-16 * (Math.abs(left) + Math.abs(right))
  if (clear > (height * runX + width * runY) * (1 + 1e-15)) return

  // Either short of the edge's own box on one side, or short of its line on two, whichever leaves the wider berth.
  const gapX = px < minX ? minX - px : px - maxX
  const gapY = py < minY ? minY - py : py - maxY
  const corner = Math.floor(clear / (width + height)) - 1
  if (gapX > 0 && gapX >= gapY && gapX >= corner) {
    if (px < minX) boxes[at + 2] = minX - 1
    else boxes[at] = maxX + 1
  } else if (gapY > 0 && gapY >= corner) {
    if (py < minY) boxes[at + 3] = minY - 1
    else boxes[at + 1] = maxY + 1
  } else if (corner >= 0) {
    if (runX > corner && height > 0) boxes[at + (east ? 2 : 0)] = east ? px + corner : px - corner
    if (runY > corner && width > 0) boxes[at + (north ? 3 : 1)] = north ? py + corner : py - corner
  } else keepAt(boxes, at, px, py)
}

/** Cuts the box about (px, py) back so that it has no point of the reach's boundary. */
export const keepOffReach = (boxes: Int32Array, at: number, px: number, py: number, reach: Reach): void => {
  const meters = Math.abs(metersFrom(reach, px, py) - reach.meters) - ROUNDING_METERS
  const run = Math.floor(meters / (METERS_PER_E7 * Math.SQRT2)) - 1
  if (run < 0) return keepAt(boxes, at, px, py)
  boxes[at] = Math.max(boxes[at]!, px - run)
  boxes[at + 1] = Math.max(boxes[at + 1]!, py - run)
  boxes[at + 2] = Math.min(boxes[at + 2]!, px + run)
  boxes[at + 3] = Math.min(boxes[at + 3]!, py + run)
}

/** More than the error of the distance functions anywhere on the earth. */
export const ROUNDING_METERS = 0.2

const keepAt = (boxes: Int32Array, at: number, px: number, py: number): void => {
  boxes[at] = boxes[at + 2] = px
  boxes[at + 1] = boxes[at + 3] = py
}
