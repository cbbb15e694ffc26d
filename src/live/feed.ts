import type { EventLog } from '../engines/event-log.ts'
import type { Clock } from '../kernel/clock.ts'
import type { JsonSchema } from '../kernel/json.ts'
import type { Logger } from '../kernel/logger.ts'
import type { Follower } from '../kit/consumers/follower.ts'
import type { FeedName, Reach } from './cursor.ts'
import type { ChannelName, LiveEvent } from './live-event.ts'

export interface FeedOptions {
  log: EventLog
  partitions: number
  clock: Clock
  logger: Logger
}

export interface FeedHub {
  readonly options: FeedOptions
  isWatched(organizationId: string): boolean
  /** Whether anybody of the organization, or of any, subscribes to the channel. */
  asksFor(channel: ChannelName, organizationId?: string): boolean
  /** Moves a part of cursors. */
  seen(part: number, reach: Reach): void
  /** Offers an event to subscribers of the organization. */
  offer(organizationId: string, event: LiveEvent): void
  /** Offers it, and keeps it for clients that come back. */
  tell(organizationId: string, event: LiveEvent): void
}

/** The organization's events of a feed that a client has missed. */
export interface ReplayQuestion {
  organizationId: string
  from: Reach
  to: Reach
  /** Ends the reading of the log. */
  signal: AbortSignal
}

/** A channel whose events are derived from the log by position alone. */
export interface LiveFeed {
  channel: FeedName
  /** Sends subscribers the events logged from here on. */
  follow(hub: FeedHub): Promise<Follower>
  /** Events from one reach to another, from the log; undefined, as the last one, where a snapshot is the better answer. */
  replay(options: FeedOptions, question: ReplayQuestion): AsyncGenerator<LiveEvent | undefined>
  /** If one event holds several: the reach at the end of the one that begins after this reach. */
  endOf?(options: FeedOptions, from: Reach, signal: AbortSignal): Promise<Reach | undefined>
}

export interface EventDocument {
  channel: ChannelName
  description: string
  schema: JsonSchema
  examples: readonly object[]
}
