import type { Caller } from './caller.ts'

/** A tracker that may receive points. `mark` and `index` are scratch of whoever builds a batch. */
export interface KnownTracker {
  /** UUID, lower case. */
  trackerId: string
  organizationId: string
  externalId?: string
  partition: number
  mark: number
  index: number
}

/** How a point names its tracker; neither for a credential that is a tracker's or a user's. */
export interface TrackerName {
  trackerId?: string
  externalId?: string
}

export type TrackerRefusal = 'unknown_tracker' | 'forbidden_tracker' | 'tracker_limit' | 'invalid'

/** Answers which tracker a point is of, for the credential that it came with. */
export interface TrackerResolver {
  /** Without asking anyone; undefined when that takes a lookup or a creation. */
  known(
    caller: Caller,
    trackerId: string | undefined,
    externalId: string | undefined,
  ): KnownTracker | TrackerRefusal | undefined
  /** Looks up and, where the credential allows it, makes what is not known. Answers in the order of the names. @throws Failure engine_down. */
  resolve(caller: Caller, names: readonly TrackerName[]): Promise<(KnownTracker | TrackerRefusal)[]>
}
