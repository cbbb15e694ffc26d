import type { Caller } from '../../../kernel/caller.ts'
import type { TrackerRefusal } from '../../trackers/views.ts'

export type RejectCode = TrackerRefusal | 'too_old' | 'too_far_ahead'

export interface Rejected {
  /** Index in the frame or request. */
  index: number
  code: RejectCode
  message: string
}

/** Result of one request's points. Accepted points are durable. */
export interface StoredPoints {
  accepted: number
  /** Points that the request repeats within itself. */
  duplicates: number
  rejected: readonly Rejected[]
}

/** The entrance for points as device protocols see it. */
export interface PointTaker {
  /** @throws Failure too_large, rate_limited, overloaded, engine_down */
  store(caller: Caller, points: readonly unknown[]): Promise<StoredPoints>
}

/**
 * Whether a point refused with this code may be accepted later, because somebody can create the tracker, raise the
 * limit or move the key: a sender that deletes sent points must keep it. All other refusals are final.
 */
export const isMendable = (code: RejectCode): boolean =>
  code === 'unknown_tracker' || code === 'tracker_limit' || code === 'forbidden_tracker'
