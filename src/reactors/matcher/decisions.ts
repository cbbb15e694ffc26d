import type { Decision, PointValue, Transition } from '../../features/transitions/events.ts'
import { idFrom } from '../../kit/commands/ids.ts'
import type { TripDraft } from './detect-trips.ts'
import type { Fences } from './fences.ts'

/** A transition before it has its place among the decisions of its source event. */
export interface TransitionDraft {
  type: 'entry' | 'leave'
  geofenceId: string
  geofenceGroupId: string
  at: number
  cause: Transition['cause']
  point: PointValue
}

/** Collects the decisions of one source event, in order, and numbers them. */
export class Decisions {
  readonly list: Decision[] = []
  /** What one point led to, until it is added. */
  readonly drafts: TransitionDraft[] = []
  readonly tripDrafts: TripDraft[] = []
  private readonly sourceRevision: number

  constructor(sourceRevision: number) {
    this.sourceRevision = sourceRevision
  }

  addTransitions(organizationId: string, trackerId: string, drafts: readonly TransitionDraft[]): void {
    for (const { type, geofenceId, geofenceGroupId, at, cause, point } of drafts) {
      const _id = idFrom(organizationId, geofenceId, trackerId, this.sourceRevision, this.list.length)
      this.list.push({
        kind: 'transition',
        _id,
        organizationId,
        trackerId,
        geofenceId,
        geofenceGroupId,
        type,
        at,
        cause,
        point,
      })
    }
  }

  addTrips(organizationId: string, trackerId: string, drafts: readonly TripDraft[]): void {
    for (const draft of drafts) this.list.push({ organizationId, trackerId, ...draft })
  }
}

export const draftOf = (
  fences: Fences,
  number: number,
  type: 'entry' | 'leave',
  at: number,
  cause: Transition['cause'],
  point: PointValue,
): TransitionDraft => {
  const geofenceGroupId = fences.fence(number)?.geofenceGroupId ?? ''
  return { type, geofenceId: fences.numbers.idOf(number), geofenceGroupId, at, cause, point }
}

/** Leaves before entries, then by geofence: the same at every replay. */
export const inOrder = (a: TransitionDraft, b: TransitionDraft): number =>
  a.type !== b.type ? (a.type === 'leave' ? -1 : 1) : a.geofenceId < b.geofenceId ? -1 : 1
