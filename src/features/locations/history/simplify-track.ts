import { simplify } from '../../../geo/simplify.ts'
import { TRIP_FINISH, TRIP_START } from '../events.ts'
import { pick, PointBuffer, sameTracker, type PointRows } from './point-rows.ts'

/** A longer pause between two points of a tracker ends a piece of its track. */
const GAP_MS = 10 * 60_000
/** Longest piece simplified at once. */
const PIECE_POINTS_MAX = 20_000

/** Flag of the first point of a piece in a simplified track: omitted points are no gap. */
const PIECE_STARTS = 1 << 15

/**
 * Simplifies tracks: points come by tracker and, for each, in order of time. Tracks are cut into pieces at trips, at
 * gaps and after 20,000 points; of each piece the ends and the points that Douglas-Peucker keeps remain.
 */
export class TrackSimplifier {
  private readonly toleranceMeters: number
  private readonly piece = new PointBuffer(4_096)
  /** The piece begins at a cut after 20,000 points. */
  private isContinued = false

  constructor(toleranceMeters: number) {
    this.toleranceMeters = toleranceMeters
  }

  /** Remaining points of the pieces that these rows complete. */
  push(rows: PointRows): PointRows[] {
    const kept: PointRows[] = []
    let from = 0
    for (let i = 0; i < rows.count; i++) {
      const follows = i > from ? continues(rows, i - 1, rows, i) : this.continuesPiece(rows, i)
      if (follows && this.piece.rows.count + i - from < PIECE_POINTS_MAX) continue
      this.piece.append(rows, from, i)
      this.finish(kept)
      this.isContinued = follows
      from = i
    }
    this.piece.append(rows, from, rows.count)
    return kept
  }

  end(): PointRows[] {
    const kept: PointRows[] = []
    this.finish(kept)
    return kept
  }

  private continuesPiece(rows: PointRows, row: number): boolean {
    const piece = this.piece.rows
    return piece.count === 0 || continues(piece, piece.count - 1, rows, row)
  }

  private finish(kept: PointRows[]): void {
    const { rows } = this.piece
    if (rows.count > 0) {
      if (!this.isContinued) rows.flags[0] |= PIECE_STARTS
      kept.push(pick(rows, simplify(rows.lng, rows.lat, this.toleranceMeters, 0, rows.count)))
    }
    this.piece.clear()
  }
}

/** Whether the second point continues the piece of track of the first one. */
export type Continues = (a: PointRows, i: number, b: PointRows, j: number) => boolean

export const continues: Continues = (a, i, b, j) =>
  sameTracker(a, i, b, j) &&
  b.recordedAt[j] - a.recordedAt[i] <= GAP_MS &&
  (a.flags[i] & TRIP_FINISH) === 0 &&
  (b.flags[j] & TRIP_START) === 0

/** The same for points from a `TrackSimplifier`. */
export const continuesSimplified: Continues = (a, i, b, j) =>
  sameTracker(a, i, b, j) && (b.flags[j] & PIECE_STARTS) === 0
