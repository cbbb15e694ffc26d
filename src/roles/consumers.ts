import type { Config } from '../config.ts'
import type { LogOrigin } from '../kit/consumers/log-origin.ts'
import type { Metrics } from '../kit/operations/metrics.ts'
import type { Services } from '../kit/services.ts'
import type { LiveHub } from '../live/hub.ts'
import { Dispatcher } from '../reactors/dispatch/dispatcher.ts'
import type { Actions } from '../reactors/dispatch/actions/action.ts'
import type { Directory } from '../reactors/dispatch/directory.ts'
import { GeofenceMatcher } from '../reactors/matcher/match-geofences.ts'
import type { Decided } from '../features/transitions/events.ts'
import { DecisionsHistory } from '../../projections/decisions-history.ts'
import { LatestPositions } from '../../projections/latest-position.ts'
import { LocationHistory } from '../../projections/location-history.ts'
import { openLiveFeeds } from './live.ts'
import type { Feeds } from './streams.ts'

export interface ConsumerParts {
  config: Config
  services: Services
  origin: LogOrigin
  actions: Actions
  metrics: Metrics
  feeds: Feeds
  hub: LiveHub
  directory: Directory
}

/** What follows the streams of partitions, each from where it stands. */
export const openConsumers = async ({
  config,
  services,
  origin,
  actions,
  metrics,
  feeds,
  hub,
  directory,
}: ConsumerParts) => {
  const { tables, history, clock, logger, partitions } = services
  const failed = (consumer: string) => (error: unknown) =>
    logger.error('consumer failed', { consumer, error: String(error) })
  const matcher = new GeofenceMatcher(services, {
    onDecided: (partition, revision, position, decided) => {
      countTransitions(metrics, decided)
      feeds.transitions.offer(partition, revision, decided.sourceLoggedAt, { revision, position, decided })
    },
    onFailure: (partition, error) => logger.error('matcher failed', { partition, error: String(error) }),
  })
  const latest = new LatestPositions({ tables, clock, partitions, onFailure: failed('latest-position') })
  const archive = { history, tables, clock, epoch: origin.epoch }
  const locationHistory = new LocationHistory({ ...archive, onFailure: failed('location-history') })
  const decisionsHistory = new DecisionsHistory({ ...archive, onFailure: failed('decisions-history') })
  const dispatcher = new Dispatcher({
    ...services,
    actions,
    directory,
    scheduleMs: config.webhookScheduleMs,
    maxAgeMs: config.automationMaxAgeMs,
    retentionMs: config.automationLogDays * 86_400_000,
    onDelivery: (outcome, count) => metrics.deliveries.inc({ outcome }, count),
  })
  await dispatcher.declare()
  for (let partition = 0; partition < partitions; partition++) {
    for (const consumer of [hub.events, decisionsHistory, dispatcher]) await feeds.transitions.add(consumer, partition)
    for (const consumer of [hub.positions, latest, locationHistory, matcher])
      await feeds.locations.add(consumer, partition)
  }
  const told = await openLiveFeeds(hub)
  return {
    matcher,
    latest,
    locationHistory,
    decisionsHistory,
    close: async (): Promise<void> => {
      await told.close()
      await matcher.close()
      await dispatcher.close()
      await latest.close()
      await locationHistory.close()
      await decisionsHistory.close()
    },
  }
}

const countTransitions = (metrics: Metrics, { decisions }: Decided): void => {
  for (const decision of decisions) if (decision.kind === 'transition') metrics.transitions.inc({ type: decision.type })
}
