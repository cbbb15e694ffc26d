/** In-app notifications of one user of an organization, and the read ones among them. */
export const NOTIFICATION_STREAMS = 'notifications-'
export const notificationStream = (userId: string): string => NOTIFICATION_STREAMS + userId

export const NOTIFICATION_MADE = 'notificationMade'
export const NOTIFICATION_READ = 'notificationRead'
export const NOTIFICATIONS_LEFT = 'notificationsLeft'
export const NOTIFICATIONS_ERASED = 'notificationsErased'

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

/** Notifications that expired, or that newer ones displaced. */
export interface NotificationsLeft {
  organizationId: string
  userId: string
  notificationIds: readonly string[]
  /** Time of the oldest remaining one, RFC 3339; absent if none remains. */
  firstAt?: string
}

/** The only remaining event of a deleted user's stream. */
export interface NotificationsErased {
  organizationId: string
  userId: string
  at: string
}
