import { EVENTS, GEOMETRY_MEMBERS } from '../../features/automations/event-table.ts'
import { EVENT_DATA_TYPES, isGeofenceEvent, type RunTrigger } from '../../features/automations/events.ts'
import { pointShown } from '../../features/transitions/views.ts'
import { tripRow, tripShown } from '../../features/trips/views.ts'
import { seesHubs } from '../../kernel/caller.ts'
import type { JsonObject } from '../../kernel/json.ts'
import { formatTime } from '../../kit/http/request-context.ts'
import type { Directory, TrackerShown } from './directory.ts'
import { type EventData, type EventSeen, FORMER_NAMES, type Viewer } from './event-seen.ts'
import { seeSubject } from './subject-event.ts'

/** @param loggedAt latest time when the event was logged, ms since the epoch: its tracker was seen at least then */
export const seeEvent = async (directory: Directory, trigger: RunTrigger, loggedAt: number): Promise<EventSeen> => {
  const { organizationId, subject, event, at, point } = trigger
  if (subject.type !== 'tracker') return seeSubject(directory.subjects, trigger)
  const seenAt = Math.min(point?.recordedAt ?? at, loggedAt)
  const tracker = await directory.tracker(organizationId, subject.id, seenAt)
  return {
    isFor: (editor) =>
      editor.permissions.has(EVENTS[event].permission) &&
      (!isGeofenceEvent(event) || directory.inRollout(editor)) &&
      seesHubs(editor, tracker?.hubIds ?? []),
    data: (viewer) => trackerEventData(directory, trigger, tracker, viewer),
  }
}

/**
 * Data for rules, values and texts: the data, and in `old` the state before. A renamed field of a record is also found
 * by its former names: automations written with them keep working.
 */
export const rulesData = (event: RunTrigger['event'], data: EventData): EventData => {
  if (EVENTS[event].hasBefore) return { ...data, old: { [EVENT_DATA_TYPES[event]]: data.before } }
  const names = data[FORMER_NAMES]
  if (names === undefined) return data
  const record = data.record as { values: JsonObject }
  const values = { ...record.values }
  for (const [former, name] of names) if (Object.hasOwn(values, name)) values[former] = values[name]
  return { ...data, record: { ...record, values } }
}

export const trackerEventData = async (
  directory: Directory,
  trigger: RunTrigger,
  tracker: TrackerShown | undefined,
  { permissions, userId }: Viewer,
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
    at: formatTime(trigger.at),
    ...(point !== undefined && { point: pointShown(trackerId, point) }),
  }
}

/** Part of a user that others see. */
const withoutContact = ({ _id, name, status, roleId, teamIds }: EventData): EventData => ({
  _id,
  name,
  status,
  roleId,
  teamIds,
})

const withoutGeometry = (geofence: EventData): EventData =>
  Object.fromEntries(Object.entries(geofence).filter(([field]) => !GEOMETRY_MEMBERS.includes(field)))
