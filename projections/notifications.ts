import {
  NOTIFICATION_MADE,
  NOTIFICATION_READ,
  NOTIFICATION_STREAMS,
  NOTIFICATIONS_ERASED,
  NOTIFICATIONS_LEFT,
  type NotificationMade,
  type NotificationRead,
  type NotificationsErased,
  type NotificationsLeft,
} from '../src/features/notifications/events.ts'
import {
  NOTIFICATIONS,
  type NotificationRow,
  notificationRow,
  NOTIFIED_USERS,
  type NotifiedUserRow,
  readRow,
} from '../src/features/notifications/views.ts'
import { decodeJson } from '../src/kernel/event.ts'
import { NO_ORGANIZATION } from '../src/kernel/table.ts'
import type { Projection, Rows } from '../src/kit/consumers/projection.ts'

/** Users' notifications in the application, until they expire. */
export const notifications: Projection = {
  name: 'notifications',
  version: 2,
  tables: [NOTIFICATIONS, NOTIFIED_USERS],
  prefixes: [NOTIFICATION_STREAMS],
  inputs: [NOTIFICATION_MADE, NOTIFICATION_READ, NOTIFICATIONS_LEFT, NOTIFICATIONS_ERASED],
  apply: async ({ type, data }, rows) => {
    if (type === NOTIFICATION_MADE) return made(decodeJson(data), rows)
    if (type === NOTIFICATION_READ) return read(decodeJson(data), rows)
    if (type === NOTIFICATIONS_LEFT) return left(decodeJson(data), rows)
    if (type === NOTIFICATIONS_ERASED) return erased(decodeJson(data), rows)
  },
}

const made = async (data: NotificationMade, rows: Rows): Promise<void> => {
  const { organizationId, userId, notificationId, at: firstAt } = data
  // A repeated event must not make it unread again.
  if ((await rows.get(NOTIFICATIONS.name, organizationId, notificationId)) === undefined)
    rows.put(NOTIFICATIONS.name, organizationId, notificationId, notificationRow(data))
  // Nor is this row there because that one is: of a commit that broke off, either may be stored.
  const known = await rows.get<NotifiedUserRow>(NOTIFIED_USERS.name, NO_ORGANIZATION, userId)
  if (known === undefined || firstAt < known.firstAt)
    rows.put(NOTIFIED_USERS.name, NO_ORGANIZATION, userId, { organizationId, firstAt } satisfies NotifiedUserRow)
}

const read = async ({ organizationId, notificationId, at }: NotificationRead, rows: Rows): Promise<void> => {
  const row = await rows.get<NotificationRow>(NOTIFICATIONS.name, organizationId, notificationId)
  if (row !== undefined && !row.isRead) rows.put(NOTIFICATIONS.name, organizationId, notificationId, readRow(row, at))
}

const left = ({ organizationId, userId, notificationIds, firstAt }: NotificationsLeft, rows: Rows): void => {
  for (const id of notificationIds) rows.delete(NOTIFICATIONS.name, organizationId, id)
  if (firstAt === undefined) rows.delete(NOTIFIED_USERS.name, NO_ORGANIZATION, userId)
  else rows.put(NOTIFIED_USERS.name, NO_ORGANIZATION, userId, { organizationId, firstAt } satisfies NotifiedUserRow)
}

const erased = async ({ organizationId, userId }: NotificationsErased, rows: Rows): Promise<void> => {
  for (const { id } of await rows.findBy(NOTIFICATIONS.name, organizationId, 'userId', userId))
    rows.delete(NOTIFICATIONS.name, organizationId, id)
  rows.delete(NOTIFIED_USERS.name, NO_ORGANIZATION, userId)
}
