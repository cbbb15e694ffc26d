import type { RecordedEvent } from '../kernel/event.ts'
import { pause } from '../kit/consumers/pause.ts'
import { ALL_SEEN, type Place } from './cursor.ts'
import type { LiveHub } from './hub.ts'

export interface LogFeedOptions {
  /** For the log of failures. */
  name: string
  /** Which place of cursors it moves. */
  place: number
  prefixes: readonly string[]
  /** Tells whoever looks of one event. What fails is tried again. */
  tell(event: RecordedEvent): Promise<void> | void
}

const RETRY_MS = 1_000

/** Follows streams that have one place together in cursors: the position in the log. */
export class LogFeed {
  private readonly hub: LiveHub
  private readonly options: LogFeedOptions
  private readonly abort = new AbortController()
  private following: Promise<void> | undefined

  constructor(hub: LiveHub, options: LogFeedOptions) {
    this.hub = hub
    this.options = options
  }

  /** From here on; what was before is there by `since`. */
  async start(): Promise<void> {
    const head = await this.hub.options.log.headPosition()
    this.hub.seen(this.options.place, placeOf(head))
    this.following = this.follow(head)
  }

  async close(): Promise<void> {
    this.abort.abort()
    await this.following
  }

  private async follow(from: number): Promise<void> {
    const { log, logger, clock } = this.hub.options
    const { name, prefixes, tell } = this.options
    let at = from
    while (!this.abort.signal.aborted) {
      try {
        for await (const { events } of log.follow({ prefixes }, at, this.abort.signal)) {
          for (const event of events) {
            const telling = tell(event)
            if (telling !== undefined) await telling
            at = event.position
          }
        }
      } catch (error) {
        logger.error(`${name} are not told live`, { error: String(error) })
        await pause(clock, RETRY_MS, this.abort.signal)
      }
    }
  }
}

/** All of an event at that position is seen. */
export const placeOf = (position: number): Place => ({ revision: position, seen: ALL_SEEN })
