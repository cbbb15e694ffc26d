import type { RecordedEvent } from '../kernel/event.ts'
import { eachOnce, Follower } from '../kit/consumers/follower.ts'
import { ALL_SEEN, type Place } from './cursor.ts'
import type { LiveHub } from './hub.ts'

export interface LogFeedOptions {
  /** Of the consumer. */
  name: string
  /** Which place of cursors it moves. */
  place: number
  prefixes: readonly string[]
  /** Tells whoever looks of one event. What fails is tried again. */
  tell(event: RecordedEvent): Promise<void> | void
}

/** Follows streams that have one place together in cursors, the position in the log, from here on; what was before is there by `since`. */
export const followLive = async (hub: LiveHub, { name, place, prefixes, tell }: LogFeedOptions): Promise<Follower> => {
  const head = await hub.options.log.headPosition()
  hub.seen(place, placeOf(head))
  const follower = new Follower(hub.options, { name, source: { prefixes }, handle: eachOnce(tell) })
  return follower.startBehind(head)
}

/** All of an event at that position is seen. */
export const placeOf = (position: number): Place => ({ revision: position, seen: ALL_SEEN })
