import {
  NOTIFICATION_MADE,
  NOTIFICATION_READ,
  NOTIFICATION_STREAMS,
  type NotificationMade,
  type NotificationRead,
} from '../features/notifications/events.ts'
import { notificationAt, notificationRow, notificationShown } from '../features/notifications/views.ts'
import { decodeJson, type RecordedEvent } from '../kernel/event.ts'
import type { Follower } from '../kit/consumers/follower.ts'
import { partOf } from './cursor.ts'
import type { LiveHub } from './hub.ts'
import type { LiveEvent } from './live-event.ts'
import { followChannel, reachOf, replayFeed, type ReplayQuestion } from './log-feed.ts'
import type { HubOptions } from './options.ts'

/** Tells users who asked for it what they are told in the application, and what they read elsewhere. */
export const notificationFeed = (hub: LiveHub): Promise<Follower> =>
  followChannel(hub, {
    channel: 'notification',
    prefixes: [NOTIFICATION_STREAMS],
    told: (event) => notificationEvent(hub.options, event),
  })

/** The organization's events of notifications from one reach to another, from the log. */
export const replayNotifications = (
  options: HubOptions,
  question: Omit<ReplayQuestion, 'prefixes' | 'told'>,
): AsyncGenerator<LiveEvent | undefined> => {
  const told = (event: RecordedEvent): Promise<LiveEvent | undefined> => notificationEvent(options, event)
  return replayFeed(options.log, { ...question, prefixes: [NOTIFICATION_STREAMS], told })
}

const notificationEvent = async (
  { log, partitions }: HubOptions,
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
