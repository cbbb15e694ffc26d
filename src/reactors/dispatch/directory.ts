import type { UserCaller } from '../../kernel/caller.ts'

export interface TrackerShown {
  /** As GET /tracker/{id} answers it; what was deleted as it last was, what was erased as `{_id}`. */
  shown: { [field: string]: unknown }
  /** The hubs that it belongs to. */
  hubIds: readonly string[]
  userId?: string
}

/** What events refer to, as it is now. Each answers undefined for what never was. */
export interface Directory {
  /** `seenAt`: when it was seen at least, ms since the epoch; the event that tells of it may be ahead of its latest position. */
  tracker(organizationId: string, trackerId: string, seenAt: number): Promise<TrackerShown | undefined>
  /** As GET /user/{id} answers it. */
  user(organizationId: string, userId: string): Promise<{ [field: string]: unknown } | undefined>
  /** As GET /geofence/{id} answers it; its geometry may be left out. */
  geofence(organizationId: string, geofenceId: string): Promise<{ [field: string]: unknown } | undefined>
  /** The editor of an automation with the permissions and hubs of now; undefined for who is no active user any more. @throws Failure engine_down while that is not known */
  editor(organizationId: string, userId: string): Promise<UserCaller | undefined>
  /** Whether geofences are rolled out to this editor. */
  inRollout(editor: UserCaller): boolean
  /** The tracking token of a trip. */
  tripToken(trackerId: string, startedAt: number): string
}
