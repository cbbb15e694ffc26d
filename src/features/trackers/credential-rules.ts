import type { TrackerValues } from './events.ts'
import type { KnownTracker, TrackerName, TrackerRefusal } from './views.ts'

/** Hub of a tracker that has its own; phones have those of their users. */
export const ownHub = ({ kind, hubId }: TrackerValues): KnownTracker['hub'] =>
  kind === 'phone' ? undefined : { hubId }

/** A tracker's or user's credential is valid only for its own tracker. */
export const ownOrForbidden = (
  own: KnownTracker,
  trackerId: string | undefined,
  externalId: string | undefined,
): KnownTracker | TrackerRefusal => {
  if (trackerId !== undefined && trackerId !== own.trackerId && trackerId.toLowerCase() !== own.trackerId)
    return 'forbidden_tracker'
  return externalId === undefined || externalId === own.externalId ? own : 'forbidden_tracker'
}

/** A point with both names must mean one tracker. */
export const agreed = (tracker: KnownTracker, { externalId }: TrackerName): KnownTracker | TrackerRefusal =>
  externalId === undefined || externalId === tracker.externalId ? tracker : 'invalid'
