import { isGeofenceEvent, type RunTrigger } from '../../features/automations/events.ts'
import { pointShown } from '../../features/transitions/views.ts'
import { tripRow, tripShown } from '../../features/trips/views.ts'
import { seesHubs, type UserCaller } from '../../kernel/caller.ts'
import type { Directory, TrackerShown } from './directory.ts'

export type EventData = { [member: string]: unknown }

/** What says where a geofence is: left out, it may have 20,000 positions. */
const GEOMETRY = new Set(['geometry', 'center', 'radius', 'width', 'bbox'])

/** Whether the editor of an automation may see this event and its tracker. */
export const maySee = (
  directory: Pick<Directory, 'inRollout'>,
  editor: UserCaller,
  { event }: RunTrigger,
  tracker: TrackerShown | undefined,
): boolean => {
  const seesEvent = isGeofenceEvent(event)
    ? editor.permissions.has('view/geofence') && directory.inRollout(editor)
    : editor.permissions.has('view/location-history')
  return seesEvent && seesHubs(editor, tracker?.hubIds ?? [])
}

/**
 * What a webhook says about an event, and what rules are held against: ids and measurements of the event, and what it
 * refers to as it is now, as far as the automation's last editor may see that.
 */
export const eventData = async (
  directory: Directory,
  trigger: RunTrigger,
  tracker: TrackerShown | undefined,
  { permissions, userId }: Pick<UserCaller, 'permissions' | 'userId'>,
): Promise<EventData> => {
  const { organizationId, subject, geofence, trip, sourceId, point } = trigger
  const trackerId = subject.id
  const sees = (permission: string): boolean => permissions.has(permission)
  const user =
    tracker?.userId !== undefined && sees('view/user')
      ? await directory.user(organizationId, tracker.userId)
      : undefined
  return {
    organizationId,
    trackerId,
    tracker: tracker !== undefined && sees('view/tracker') ? tracker.shown : { _id: trackerId },
    ...(user !== undefined && { user: sees('edit/user') || user._id === userId ? user : withoutContact(user) }),
    ...(geofence !== undefined && {
      transitionId: sourceId,
      geofenceId: geofence.geofenceId,
      geofenceGroupId: geofence.geofenceGroupId,
      geofence: withoutGeometry(
        (await directory.geofence(organizationId, geofence.geofenceId)) ?? {
          _id: geofence.geofenceId,
          geofenceGroupId: geofence.geofenceGroupId,
        },
      ),
      cause: geofence.cause,
    }),
    ...(trip !== undefined && {
      trip: tripShown(tripRow({ _id: sourceId, trackerId, ...trip }), directory.tripToken(trackerId, trip.startedAt)),
    }),
    at: iso(trigger.at),
    ...(point !== undefined && { point: pointShown(trackerId, point) }),
  }
}

/** When the tracker of an event was seen at least. */
export const seenAt = ({ point, at }: RunTrigger): number => point?.recordedAt ?? at

/** What others see of a user. */
const withoutContact = ({ _id, name, status, roleId, teamIds }: EventData): EventData => ({
  _id,
  name,
  status,
  roleId,
  teamIds,
})

const withoutGeometry = (geofence: EventData): EventData =>
  Object.fromEntries(Object.entries(geofence).filter(([field]) => !GEOMETRY.has(field)))

export const iso = (ms: number): string => new Date(ms).toISOString()
