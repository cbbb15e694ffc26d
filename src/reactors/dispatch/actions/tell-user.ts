import { APPEND_BYTES_MAX, type EventLog } from '../../../engines/event-log.ts'
import type { NotificationMade } from '../../../features/notifications/events.ts'
import { makeNotifications } from '../../../features/notifications/notification.ts'
import type { EventMetadata } from '../../../kernel/event.ts'
import { idSource } from '../../../kit/commands/ids.ts'

const TOGETHER_MAX = 100
const BYTES_MAX = APPEND_BYTES_MAX / 2

interface Waiting {
  made: NotificationMade
  metadata: EventMetadata
  resolve: () => void
  reject: (error: unknown) => void
}

/** Notifies users in the application: one append for a user is under way, and later notifications go with the next. */
export class TellUser {
  private readonly log: EventLog
  private readonly waiting = new Map<string, Waiting[]>()

  constructor(log: EventLog) {
    this.log = log
  }

  /** Resolves when it is in the log. @throws Failure */
  tell(made: NotificationMade, metadata: EventMetadata): Promise<void> {
    return new Promise((resolve, reject) => {
      const one = { made, metadata, resolve, reject }
      const waiting = this.waiting.get(made.userId)
      if (waiting !== undefined) return waiting.push(one)
      this.waiting.set(made.userId, [one])
      void this.tellAll(made.userId)
    })
  }

  private async tellAll(userId: string): Promise<void> {
    // Notifications of the same turn of the event loop go together.
    await new Promise<void>((resume) => queueMicrotask(resume))
    const waiting = this.waiting.get(userId) ?? []
    while (waiting.length > 0) {
      const some = waiting.splice(0, countOf(waiting))
      try {
        await this.append(userId, some)
        for (const { resolve } of some) resolve()
      } catch (error) {
        for (const { reject } of some) reject(error)
      }
    }
    this.waiting.delete(userId)
  }

  private append(userId: string, some: readonly Waiting[]): Promise<unknown> {
    const [{ metadata, made }] = some
    // Each of several names its own automation, and its id is derived from the run.
    const { organizationId, actor } = metadata
    const isOfOne = some.every((one) => one.metadata.actor === actor)
    const shared = { organizationId, ...(isOfOne && { actor }) }
    const context = { ids: idSource(Date.parse(made.at)), metadata: some.length === 1 ? metadata : shared }
    return makeNotifications(
      this.log,
      userId,
      some.map((one) => one.made),
      context,
    )
  }
}

/** Number of notifications in the next append. */
const countOf = (waiting: readonly Waiting[]): number => {
  let bytes = 0
  const tooMany = waiting.findIndex(({ made }, i) => {
    bytes += bytesOf(made)
    return i > 0 && (i >= TOGETHER_MAX || bytes > BYTES_MAX)
  })
  return tooMany < 0 ? waiting.length : tooMany
}

/** Largest size as JSON: a half of a surrogate pair is written with six characters. */
const bytesOf = ({ subject = '', text }: NotificationMade): number => 1_000 + 6 * (subject.length + text.length)
