import { type EventLog, eventsBackwards } from '../../engines/event-log.ts'
import { decodeJson } from '../../kernel/event.ts'
import type { Row, TableDeclaration } from '../../kernel/table.ts'
import {
  type About,
  NOTIFICATION_MADE,
  NOTIFICATION_READ,
  type NotificationMade,
  type NotificationRead,
  notificationStream,
} from './events.ts'

export const NOTIFICATIONS: TableDeclaration = {
  name: 'notifications',
  version: 2,
  equality: ['_id', 'userId', 'isRead', 'automationId'],
  range: ['createdAt'],
  text: ['subject', 'text'],
}

/** Users with notifications, so that expired ones are found. */
export const NOTIFIED_USERS: TableDeclaration = { name: 'notified-users', version: 1, range: ['firstAt'] }

export interface NotificationRow extends Row {
  _id: string
  organizationId: string
  version: number
  userId: string
  subject?: string
  text: string
  isRead: boolean
  readAt?: string
  automationId: string
  event: string
  about: About
  createdAt: string
}

export interface NotifiedUserRow extends Row {
  organizationId: string
  /** Time of the oldest kept one, RFC 3339. */
  firstAt: string
}

export const notificationRow = ({ notificationId, at, ...made }: NotificationMade): NotificationRow => ({
  ...made,
  _id: notificationId,
  version: 1,
  isRead: false,
  createdAt: at,
})

export const readRow = (row: NotificationRow, readAt: string): NotificationRow => ({
  ...row,
  version: 2,
  isRead: true,
  readAt,
})

/** A notification as of a revision of its user's stream; fast for the newest ones. */
export const notificationAt = async (
  log: Pick<EventLog, 'read'>,
  userId: string,
  notificationId: string,
  revision: number | 'end',
): Promise<NotificationRow | undefined> => {
  let readAt: string | undefined
  for await (const { type, data } of eventsBackwards(log, notificationStream(userId), revision)) {
    if (type !== NOTIFICATION_MADE && type !== NOTIFICATION_READ) continue
    const fact = decodeJson<NotificationMade | NotificationRead>(data)
    if (fact.notificationId !== notificationId) continue
    if (type === NOTIFICATION_READ) readAt = fact.at
    else
      return readAt === undefined
        ? notificationRow(fact as NotificationMade)
        : readRow(notificationRow(fact as NotificationMade), readAt)
  }
  return undefined
}

export const notificationShown = ({ userId: _own, ...row }: NotificationRow): Row => row
