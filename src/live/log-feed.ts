import type { RecordedEvent } from '../kernel/event.ts'
import { eachOnce, Follower } from '../kit/consumers/follower.ts'
import type { Reach } from './cursor.ts'
import type { LiveHub } from './hub.ts'

export interface LogFeedOptions {
  /** Of the consumer. */
  name: string
  /** Which part of cursors it moves. */
  index: number
  prefixes: readonly string[]
  /** Tells whoever looks of one event, which is the next one after the position `before`. What fails is tried again. */
  tell(event: RecordedEvent, before: number): Promise<void> | void
}

/** Follows streams that have one part of cursors together, a position in the log, from here on; what was before is there by `since`. */
export const followLive = async (hub: LiveHub, { name, index, prefixes, tell }: LogFeedOptions): Promise<Follower> => {
  const head = await hub.options.log.headPosition()
  let before = head
  const seen = (position: number): void => {
    before = position
    hub.seen(index, reachOf(position))
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
export const reachOf = (position: number): Reach => ({ revision: position, seen: 0 })
