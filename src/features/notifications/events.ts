/** The notifications of one user of an organization in the application, and which of them they have read. */
export const NOTIFICATION_STREAMS = 'notifications-'
export const notificationStream = (userId: string): string => NOTIFICATION_STREAMS + userId

export const NOTIFICATION_MADE = 'notificationMade'
export const NOTIFICATION_READ = 'notificationRead'
export const NOTIFICATIONS_LEFT = 'notificationsLeft'
export const NOTIFICATIONS_ERASED = 'notificationsErased'

/** What a notification is about. */
export interface About {
  type: 'tracker' | 'task' | 'record' | 'routingResult'
  id: string
}

export interface NotificationMade {
  organizationId: string
  userId: string
  notificationId: string
  subject?: string
  text: string
  automationId: string
  event: string
  about: About
  /** RFC 3339. */
  at: string
}

export interface NotificationRead {
  organizationId: string
  userId: string
  notificationId: string
  /** RFC 3339. */
  at: string
}

/** Their time is over, or newer ones pushed them out. */
export interface NotificationsLeft {
  organizationId: string
  userId: string
  notificationIds: readonly string[]
  /** When the oldest that is left was made, RFC 3339; absent where none is. */
  firstAt?: string
}

/** All that is left of the stream of somebody who was deleted. */
export interface NotificationsErased {
  organizationId: string
  userId: string
  at: string
}
