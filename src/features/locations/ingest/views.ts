import type { Caller } from '../../../kernel/caller.ts'
import type { TrackerRefusal } from '../../trackers/views.ts'

export type RejectCode = TrackerRefusal | 'too_old' | 'too_far_ahead'

export interface Rejected {
  /** Place in the frame or request. */
  index: number
  code: RejectCode
  message: string
}

/** What became of the points of one request. What was accepted is durable. */
export interface StoredPoints {
  accepted: number
  /** Points that the request repeats within itself. */
  duplicates: number
  rejected: readonly Rejected[]
}

/** The one way in for points, as protocols of devices see it. */
export interface PointTaker {
  /** @throws Failure too_large, rate_limited, overloaded, engine_down */
  store(caller: Caller, points: readonly unknown[]): Promise<StoredPoints>
}

/**
 * Whether a point that was refused with this code may be taken later, because somebody can make the tracker, raise the limit
 * or move the key: a sender that deletes what it has sent must keep it. Anything else is refused for good.
 */
export const isMendable = (code: RejectCode): boolean =>
  code === 'unknown_tracker' || code === 'tracker_limit' || code === 'forbidden_tracker'
