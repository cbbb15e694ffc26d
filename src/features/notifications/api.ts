import type { EventLog } from '../../engines/event-log.ts'
import type { TableStore } from '../../engines/table-store.ts'
import { Failure } from '../../kernel/errors.ts'
import { answerList } from '../../kit/http/answer-list.ts'
import { idSchema, type ListQuery, listQuerySchema, type ListShape } from '../../kit/http/list-query.ts'
import { answered, dataAnswer, pageAnswer } from '../../kit/http/page-members.ts'
import { formatTime, metadataOf, userOf } from '../../kit/http/request-context.ts'
import { route, type Route } from '../../kit/http/route.ts'
import { readAllNotifications, readNotification } from './notification.ts'
import { NOTIFICATION, NOTIFICATION_EXAMPLE } from './schemas.ts'
import { notificationAt, NOTIFICATIONS, notificationShown } from './views.ts'

export interface NotificationServices {
  log: EventLog
  tables: Pick<TableStore, 'find'>
}

const TAG = 'Notifications'

const LIST: ListShape = {
  table: NOTIFICATIONS,
  members: Object.keys(NOTIFICATION.properties as object),
  filters: {
    _id: { type: 'string', format: 'uuid' },
    unread: { type: 'boolean', description: 'Only those that are not read (`true`), or only those that are.' },
    automationId: { type: 'string', format: 'uuid', description: 'Those that this automation told.' },
  },
  several: ['_id', 'automationId'],
  conditions: { unread: (unread) => ({ isRead: unread !== true }) },
  sortable: [],
  order: { field: 'createdAt', order: 'desc' },
  searchable: true,
}

/** In-app notifications of the calling user. No permission is needed, and nobody else reads them. */
export const notificationRoutes = (services: NotificationServices): Route[] => [
  listRoute(services),
  readRoute(services),
  readAllRoute(services),
]

const listRoute = ({ tables }: NotificationServices): Route =>
  route<ListQuery>({
    method: 'GET',
    path: '/notifications',
    operationId: 'listNotifications',
    summary: 'List what the calling user was told in the application, newest first',
    description: 'Kept for 30 days, and of one user the newest 500 at least.',
    tag: TAG,
    access: 'user',
    query: listQuerySchema(LIST),
    answers: {
      200: pageAnswer(
        "A page of the caller's own notifications.",
        'NotificationPage',
        NOTIFICATION,
        NOTIFICATION_EXAMPLE,
      ),
    },
    handler: async (request) => {
      const caller = userOf(request)
      return answerList(LIST, {
        tables,
        caller,
        query: request.query,
        path: '/api/v3/notifications',
        where: { userId: caller.userId },
      })
    },
  })

const readRoute = ({ log }: NotificationServices): Route =>
  route({
    method: 'POST',
    path: '/notification/{notificationId}/read',
    operationId: 'readNotification',
    summary: 'Note that the calling user has read a notification',
    description: 'Of one that is read already it changes nothing.',
    tag: TAG,
    access: 'user',
    params: { notificationId: idSchema('The id of the notification.') },
    answers: {
      200: dataAnswer('The notification.', NOTIFICATION, {
        ...NOTIFICATION_EXAMPLE,
        version: 2,
        isRead: true,
        readAt: '2026-01-01T08:05:00.000Z',
      }),
    },
    handler: async (request) => {
      const { organizationId, userId } = userOf(request)
      const notificationId = request.params.notificationId.toLowerCase()
      const at = formatTime(request.now)
      const context = { ids: request.ids, metadata: metadataOf(request) }
      const { wrote } = await readNotification(log, { organizationId, userId, notificationId, at }, context)
      const row = await notificationAt(log, userId, notificationId, 'end')
      if (row === undefined) throw new Failure('not_found')
      return { body: { data: notificationShown(row) }, wrote }
    },
  })

const readAllRoute = ({ log }: NotificationServices): Route =>
  route({
    method: 'POST',
    path: '/notifications/read',
    operationId: 'readNotifications',
    summary: 'Note that the calling user has read all their notifications',
    tag: TAG,
    access: 'user',
    answers: {
      200: dataAnswer('How many were not read before.', answered('NotificationsRead', { read: { type: 'integer' } }), {
        read: 3,
      }),
    },
    handler: async (request) => {
      const { organizationId, userId } = userOf(request)
      const context = { ids: request.ids, metadata: metadataOf(request) }
      const whose = { organizationId, userId, at: formatTime(request.now) }
      const { wrote, count } = await readAllNotifications(log, whose, context)
      return { body: { data: { read: count } }, wrote }
    },
  })
