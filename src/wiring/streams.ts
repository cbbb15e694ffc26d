import type { EventLog } from '../engines/event-log.ts'
import { locationEntry } from '../features/locations/location-entry.ts'
import { locationStream, type LocationEntry } from '../features/locations/events.ts'
import { transitionStream } from '../features/transitions/events.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Logger } from '../kernel/logger.ts'
import type { Metrics } from '../kit/operations/metrics.ts'
import { PartitionFeed, type FeedLag } from '../kit/consumers/partition-feed.ts'
import { decodeTransition, type TransitionEntry } from '../reactors/dispatch/transition-entry.ts'

export interface Feeds {
  locations: PartitionFeed<LocationEntry>
  transitions: PartitionFeed<TransitionEntry>
}

/** The two families of streams that partitions have, each read once for all who follow it here. */
export const openFeeds = (log: EventLog, logger: Logger): Feeds => {
  const onFailure = (consumer: string, partition: number, error: unknown): void =>
    logger.error('consumer failed', { consumer, partition, error: String(error) })
  return {
    locations: new PartitionFeed({ log, streamOf: locationStream, decode: locationEntry, onFailure }),
    transitions: new PartitionFeed({ log, streamOf: transitionStream, decode: decodeTransition, onFailure }),
  }
}

/** Lag of every consumer, for metrics and doctor. */
export const lagsOf = (feeds: Feeds, clock: Clock): FeedLag[] => [
  ...feeds.locations.lags(clock.now()),
  ...feeds.transitions.lags(clock.now()),
]

export const showLags = (metrics: Metrics, lags: readonly FeedLag[]): void => {
  for (const { consumer, partition, events, seconds } of lags) {
    metrics.consumerLagEvents.set({ consumer, partition: String(partition) }, events)
    metrics.consumerLagSeconds.set({ consumer, partition: String(partition) }, seconds)
  }
}
