import { decodeJson, type RecordedEvent } from '../../kernel/event.ts'
import { partOf } from '../../live/cursor.ts'
import type { EventDocument, FeedOptions, LiveFeed } from '../../live/feed.ts'
import type { LiveEvent } from '../../live/live-event.ts'
import { channelFeed, reachOf } from '../../live/log-feed.ts'
import {
  NOTIFICATION_MADE,
  NOTIFICATION_READ,
  NOTIFICATION_STREAMS,
  type NotificationMade,
  type NotificationRead,
} from './events.ts'
import { NOTIFICATION, NOTIFICATION_EXAMPLE } from './schemas.ts'
import { notificationAt, notificationRow, notificationShown } from './views.ts'

export const NOTIFICATION_EVENTS: readonly EventDocument[] = [
  {
    channel: 'notification',
    description: 'What the caller is told in the application, and again when they have read it.',
    schema: NOTIFICATION,
    examples: [NOTIFICATION_EXAMPLE],
  },
]

/** Reports in-app notifications to their users, and those that they read elsewhere. */
export const notificationFeed = (): LiveFeed =>
  channelFeed({
    channel: 'notification',
    prefixes: [NOTIFICATION_STREAMS],
    teller: (options) => (event) => notificationEvent(options, event),
  })

const notificationEvent = async (
  { log, partitions }: FeedOptions,
  { type, data, revision, position }: RecordedEvent,
): Promise<LiveEvent | undefined> => {
  if (type !== NOTIFICATION_MADE && type !== NOTIFICATION_READ) return undefined
  const fact = decodeJson<NotificationMade | NotificationRead>(data)
  const { userId, notificationId } = fact
  const row =
    type === NOTIFICATION_MADE
      ? notificationRow(fact as NotificationMade)
      : await notificationAt(log, userId, notificationId, revision)
  if (row === undefined) return undefined
  return {
    channel: 'notification',
    partition: partOf('notification', partitions),
    reach: reachOf(position),
    people: [userId],
    isFor: ({ caller }) => caller.userId === userId,
    text: () => JSON.stringify(notificationShown(row)),
  }
}
