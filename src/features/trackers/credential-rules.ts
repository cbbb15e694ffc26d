import type { TrackerValues } from './events.ts'
import type { KnownTracker, TrackerName, TrackerRefusal } from './views.ts'

/** The hub of a tracker that says so itself; a phone's are those of its user. */
export const ownHub = ({ kind, hubId }: TrackerValues): KnownTracker['hub'] =>
  kind === 'phone' ? undefined : { hubId }

/** A tracker's or user's credential speaks for its own tracker alone. */
export const ownOrForbidden = (
  own: KnownTracker,
  trackerId: string | undefined,
  externalId: string | undefined,
): KnownTracker | TrackerRefusal => {
  if (trackerId !== undefined && trackerId !== own.trackerId && trackerId.toLowerCase() !== own.trackerId)
    return 'forbidden_tracker'
  return externalId === undefined || externalId === own.externalId ? own : 'forbidden_tracker'
}

/** A point that carries both names must mean one tracker. */
export const agreed = (tracker: KnownTracker, { externalId }: TrackerName): KnownTracker | TrackerRefusal =>
  externalId === undefined || externalId === tracker.externalId ? tracker : 'invalid'
