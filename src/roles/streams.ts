import type { EventLog } from '../engines/event-log.ts'
import { locationEntry } from '../features/locations/location-entry.ts'
import { locationStream, type LocationEntry } from '../features/locations/events.ts'
import { transitionStream } from '../features/transitions/events.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Logger } from '../kernel/logger.ts'
import type { Metrics } from '../kit/operations/metrics.ts'
import type { Lag } from '../kit/consumers/follower.ts'
import { PartitionFeed } from '../kit/consumers/partition-feed.ts'
import { decodeTransition, type TransitionEntry } from '../reactors/dispatch/owe.ts'

export interface Feeds {
  locations: PartitionFeed<LocationEntry>
  transitions: PartitionFeed<TransitionEntry>
}

/** The two families of streams that partitions have, each read once for all who follow it here. */
export const openFeeds = (log: EventLog, logger: Logger): Feeds => ({
  locations: new PartitionFeed({ log, logger, streamOf: locationStream, decode: locationEntry }),
  transitions: new PartitionFeed({ log, logger, streamOf: transitionStream, decode: decodeTransition }),
})

/** Lag of every consumer of partitions, for metrics and doctor. */
export const lagsOf = async (feeds: Feeds, clock: Clock): Promise<Lag[]> => [
  ...(await feeds.locations.lags(clock.now())),
  ...(await feeds.transitions.lags(clock.now())),
]

export const showLags = (metrics: Metrics, lags: readonly Lag[]): void => {
  for (const { consumer, partition, events, seconds } of lags) {
    metrics.consumerLagEvents.set({ consumer, partition }, events)
    metrics.consumerLagSeconds.set({ consumer, partition }, seconds)
  }
}
