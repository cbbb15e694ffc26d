import type { EventLog } from '../engines/event-log.ts'
import { decodeJson, type RecordedEvent } from '../kernel/event.ts'
import { eachOnce, Follower } from '../kit/consumers/follower.ts'
import { type FeedName, partOf, type Reach } from './cursor.ts'
import type { FeedHub, FeedOptions, LiveFeed, ReplayQuestion } from './feed.ts'
import type { LiveEvent } from './live-event.ts'

/** Events of all organizations that one resume may read before it gives up. */
export const REPLAY_EVENTS_MAX = 500_000
const REPLAY_PAGE_EVENTS = 64

export interface LogFeedOptions {
  name: string
  /** Part of cursors that it moves. */
  index: number
  prefixes: readonly string[]
  /** Sends viewers one event, the next one after the position `before`. Failures are retried. */
  tell(event: RecordedEvent, before: number): Promise<void> | void
}

/** Follows streams that share one part of cursors, a position in the log, from here on; `since` has earlier events. */
export const followLive = async (hub: FeedHub, { name, index, prefixes, tell }: LogFeedOptions): Promise<Follower> => {
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

/** Live event of a logged one; undefined for none. */
type Told = (event: RecordedEvent) => Promise<LiveEvent | undefined>

export interface ChannelFeed {
  channel: FeedName
  prefixes: readonly string[]
  /** Starts to make live events, in the order of the log. */
  teller(options: FeedOptions): Told
}

/** The live feed of streams whose events go out on one channel. */
export const channelFeed = ({ channel, prefixes, teller }: ChannelFeed): LiveFeed => ({
  channel,
  follow: (hub) => followChannel(hub, channel, prefixes, teller(hub.options)),
  replay: (options, question) => replayFeed(options.log, { ...question, prefixes, told: teller(options) }),
})

/** Events of organizations without subscribers are skipped undecoded. */
const followChannel = (hub: FeedHub, channel: FeedName, prefixes: readonly string[], told: Told): Promise<Follower> => {
  const index = partOf(channel, hub.options.partitions)
  const tellAsked = async (event: RecordedEvent, organizationId: string): Promise<void> => {
    const one = await told(event)
    hub.seen(index, reachOf(event.position))
    if (one !== undefined) hub.offer(organizationId, one)
  }
  const tell = (event: RecordedEvent): Promise<void> | void => {
    const organizationId = organizationOf(event)
    if (hub.asksFor(channel, organizationId)) return tellAsked(event, organizationId)
    hub.seen(index, reachOf(event.position))
  }
  return followLive(hub, { name: `live-${channel}s`, index, prefixes, tell })
}

interface FeedReplay extends ReplayQuestion {
  prefixes: readonly string[]
  told: Told
}

/** The organization's events between two reaches, from the log; undefined at the end if too many: take a snapshot. */
export async function* replayFeed(
  log: EventLog,
  { organizationId, prefixes, from, to, signal, told }: FeedReplay,
): AsyncGenerator<LiveEvent | undefined> {
  if (to.revision <= from.revision) return
  let read = 0
  for await (const { events, checkpoint } of log.follow({ prefixes }, from.revision, signal, REPLAY_PAGE_EVENTS)) {
    for (const event of events) {
      if (event.position > to.revision || organizationOf(event) !== organizationId) continue
      const one = await told(event)
      if (one !== undefined) yield one
    }
    read += events.length
    if (checkpoint >= to.revision) return
    if (read > REPLAY_EVENTS_MAX) return yield undefined
  }
}

/** The reach at the end of the first event after a position. */
export const endOfNext = async (
  log: EventLog,
  prefixes: readonly string[],
  position: number,
  signal: AbortSignal,
): Promise<Reach | undefined> => {
  for await (const { events } of log.follow({ prefixes }, position, signal, 1))
    if (events.length > 0) return reachOf(events[0].position)
  return undefined
}

export const organizationOf = ({ metadata, data }: RecordedEvent): string =>
  metadata.organizationId ?? decodeJson<{ organizationId?: string }>(data).organizationId ?? ''

/** Everything up to that position is seen. */
export const reachOf = (position: number): Reach => ({ revision: position, seen: 0 })
