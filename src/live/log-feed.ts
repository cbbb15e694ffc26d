import type { RecordedEvent } from '../kernel/event.ts'
import { eachOnce, Follower } from '../kit/consumers/follower.ts'
import type { Place } from './cursor.ts'
import type { LiveHub } from './hub.ts'

export interface LogFeedOptions {
  /** Of the consumer. */
  name: string
  /** Which place of cursors it moves. */
  place: number
  prefixes: readonly string[]
  /** Tells whoever looks of one event, which is the next one after the position `before`. What fails is tried again. */
  tell(event: RecordedEvent, before: number): Promise<void> | void
}

/** Follows streams that have one place together in cursors, a position in the log, from here on; what was before is there by `since`. */
export const followLive = async (hub: LiveHub, { name, place, prefixes, tell }: LogFeedOptions): Promise<Follower> => {
  const head = await hub.options.log.headPosition()
  let before = head
  const seen = (position: number): void => {
    before = position
    hub.seen(place, placeOf(position))
  }
  const tellEach = eachOnce(async (event) => {
    const telling = tell(event, before)
    if (telling !== undefined) await telling
    before = event.position
  })
  seen(head)
  const follower = new Follower(hub.options, {
    name,
    source: { prefixes },
    handle: async (batch) => {
      await tellEach(batch)
      if (batch.checkpoint > before) seen(batch.checkpoint)
      return undefined
    },
  })
  return follower.startBehind(head)
}

/** All up to that position is seen. */
export const placeOf = (position: number): Place => ({ revision: position, seen: 0 })
