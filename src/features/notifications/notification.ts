import { type EventLog, eventsOf } from '../../engines/event-log.ts'
import type { Decider } from '../../kernel/decider.ts'
import { Failure } from '../../kernel/errors.ts'
import { decodeJson, type Fact } from '../../kernel/event.ts'
import { type CommandContext, handleCommand } from '../../kit/commands/handle-command.ts'
import type { Wrote } from '../../kit/http/route.ts'
import {
  NOTIFICATION_MADE,
  NOTIFICATION_READ,
  NOTIFICATIONS_ERASED,
  NOTIFICATIONS_LEFT,
  type NotificationMade,
  type NotificationRead,
  type NotificationsLeft,
  notificationStream,
} from './events.ts'

/** Newest notifications always kept per user; beyond `KEPT_MAX` older ones are dropped. */
export const KEPT_MIN = 500
const KEPT_MAX = 600

interface Known {
  notificationId: string
  at: string
  isRead: boolean
}

/** The notifications of one user, oldest first. */
type State = readonly Known[]

type Command =
  | { type: 'make'; made: readonly NotificationMade[] }
  | { type: 'read'; read: NotificationRead }
  | { type: 'readAll'; read: Omit<NotificationRead, 'notificationId'> }
  | { type: 'expire'; organizationId: string; userId: string; before: string }

const notifications: Decider<State, Command> = {
  initial: [],
  decide: (command, state) => {
    if (command.type === 'make') return make(command.made, state)
    if (command.type === 'read') return read(command.read, state)
    if (command.type === 'readAll') return readAll(command.read, state)
    const { before, ...whose } = command
    const old = state.filter(({ at }) => at < before)
    return old.length === 0 ? [] : [left(whose, old, state.slice(old.length))]
  },
  evolve: (state, { type, data }) => {
    if (type === NOTIFICATION_MADE) {
      const { notificationId, at } = data as NotificationMade
      return [...state, { notificationId, at, isRead: false }]
    }
    if (type === NOTIFICATION_READ) {
      const { notificationId } = data as NotificationRead
      return state.map((one) => (one.notificationId === notificationId ? { ...one, isRead: true } : one))
    }
    if (type === NOTIFICATIONS_LEFT) {
      const gone = new Set((data as NotificationsLeft).notificationIds)
      return state.filter(({ notificationId }) => !gone.has(notificationId))
    }
    return type === NOTIFICATIONS_ERASED ? [] : state
  },
}

const make = (made: readonly NotificationMade[], state: State): Fact[] => {
  const known = new Set(state.map(({ notificationId }) => notificationId))
  const told: NotificationMade[] = []
  for (const one of made) {
    if (!known.has(one.notificationId)) told.push(one)
    known.add(one.notificationId)
  }
  const facts: Fact[] = told.map((data) => ({ type: NOTIFICATION_MADE, data }))
  const all = [...state, ...told.map(({ notificationId, at }) => ({ notificationId, at, isRead: false }))]
  if (told.length === 0 || all.length <= KEPT_MAX) return facts
  const [old, kept] = [all.slice(0, -KEPT_MIN), all.slice(-KEPT_MIN)]
  return [...facts, left(made[0], old, kept)]
}

const read = (data: NotificationRead, state: State): Fact[] => {
  const known = state.find(({ notificationId }) => notificationId === data.notificationId)
  if (known === undefined) throw new Failure('not_found')
  return known.isRead ? [] : [{ type: NOTIFICATION_READ, data }]
}

const readAll = (whose: Omit<NotificationRead, 'notificationId'>, state: State): Fact<string, NotificationRead>[] =>
  state
    .filter(({ isRead }) => !isRead)
    .map(({ notificationId }) => ({ type: NOTIFICATION_READ, data: { ...whose, notificationId } }))

const left = (
  { organizationId, userId }: Pick<NotificationsLeft, 'organizationId' | 'userId'>,
  old: State,
  kept: State,
): Fact<string, NotificationsLeft> => ({
  type: NOTIFICATIONS_LEFT,
  data: {
    organizationId,
    userId,
    notificationIds: old.map(({ notificationId }) => notificationId),
    ...(kept.length > 0 && { firstAt: kept[0].at }),
  },
})

type Log = Pick<EventLog, 'read' | 'append' | 'truncateBefore'>

/**
 * Sends a user several in-app notifications in one append: fewer than `KEPT_MIN`, and no more than an append may have.
 * Repeating an id changes nothing.
 */
export const makeNotifications = (
  log: EventLog,
  userId: string,
  made: readonly NotificationMade[],
  context: CommandContext,
): Promise<Written> => write(log, userId, { type: 'make', made }, context)

/** Marks a notification as read; repeating it changes nothing. @throws Failure not_found */
export const readNotification = (log: EventLog, read: NotificationRead, context: CommandContext): Promise<Written> =>
  write(log, read.userId, { type: 'read', read }, context)

/** Marks all notifications as read; returns how many were unread. */
export const readAllNotifications = async (
  log: EventLog,
  whose: Omit<NotificationRead, 'notificationId'>,
  context: CommandContext,
): Promise<Written & { count: number }> => {
  const { wrote } = await write(log, whose.userId, { type: 'readAll', read: whose }, context)
  return { wrote, count: wrote?.types.length ?? 0 }
}

/** Drops a user's notifications from before that time (RFC 3339), also from the log. */
export const expireNotifications = (
  log: EventLog,
  whose: { organizationId: string; userId: string; before: string },
  context: CommandContext,
): Promise<Written> => write(log, whose.userId, { type: 'expire', ...whose }, context)

interface Written {
  wrote?: Wrote
}

const write = async (log: EventLog, userId: string, command: Command, context: CommandContext): Promise<Written> => {
  const stream = notificationStream(userId)
  const { state, wrote } = await handleCommand(log, stream, notifications, command, context)
  if (wrote?.types.includes(NOTIFICATIONS_LEFT)) await truncate(log, stream, state)
  return { wrote }
}

/** Removes events before the oldest kept notification; if none is kept, all but the last. */
const truncate = async (log: Log, stream: string, [oldest]: State): Promise<void> => {
  let first = -1
  for await (const { type, data, revision } of eventsOf(log, stream)) {
    first = revision
    const isOldest =
      type === NOTIFICATION_MADE && decodeJson<NotificationMade>(data).notificationId === oldest?.notificationId
    if (isOldest) break
  }
  return log.truncateBefore(stream, first)
}
