import type { EventLog } from '../engines/event-log.ts'
import { NOTIFICATIONS_ERASED, type NotificationsErased, notificationStream } from '../features/notifications/events.ts'
import { eventTypes, type ResourceData } from '../kit/commands/declared-event.ts'
import { appendFacts } from '../kit/commands/handle-command.ts'
import type { StepOrigin } from '../kit/commands/process.ts'
import { formatTime } from '../kit/http/request-context.ts'
import type { Wrote } from '../kit/http/route.ts'
import type { Fact } from '../kernel/event.ts'

/**
 * Permanently erases the content of a stream, and leaves one event in its place from which followers of the log, and
 * replays of it, remove the subject. Repeating it changes nothing.
 */
export const bury = async (
  log: EventLog,
  stream: string,
  tombstone: Fact,
  { ids, metadata }: StepOrigin,
): Promise<Wrote | undefined> => {
  const id = ids.next()
  const [first, second] = await log.read(stream, 0, 2)
  if (first?.id === id && second === undefined) return { position: first.position, types: [tombstone.type] }
  await log.erase(stream)
  return appendFacts(log, stream, [tombstone], [id], 0, metadata)
}

export const buryNotifications = async (
  log: EventLog,
  userId: string,
  origin: StepOrigin,
): Promise<Wrote | undefined> => {
  const stream = notificationStream(userId)
  if ((await log.head(stream)) < 0) return undefined
  const { organizationId, now } = origin
  const data: NotificationsErased = { organizationId, userId, at: formatTime(now) }
  return bury(log, stream, { type: NOTIFICATIONS_ERASED, data }, origin)
}

/** Buries a record: its tombstone is a deletion without values. */
export const buryRecord = (
  log: EventLog,
  noun: string,
  recordId: string,
  origin: StepOrigin,
): Promise<Wrote | undefined> => {
  const at = formatTime(origin.now)
  const data: ResourceData = { organizationId: origin.organizationId, values: {}, createdAt: at, at }
  return bury(log, `${noun}-${recordId}`, { type: eventTypes(noun).deleted, data }, origin)
}
