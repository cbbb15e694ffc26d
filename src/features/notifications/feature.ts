import { notifications as projection } from '../../../projections/notifications.ts'
import type { Feature } from '../../feature.ts'
import { notificationAction } from '../../reactors/dispatch/actions/notification.ts'
import { notificationRoutes } from './api.ts'
import { NOTIFICATION_EVENTS, notificationFeed } from './live-feed.ts'

export const notifications: Feature = {
  projections: [projection],
  routes: notificationRoutes,
  actions: (services) => ({ notification: notificationAction(services) }),
  liveEvents: NOTIFICATION_EVENTS,
  live: notificationFeed,
}
