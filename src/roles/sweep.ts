import type { Config } from '../config.ts'
import type { Metrics } from '../kit/operations/metrics.ts'
import type { Services } from '../kit/services.ts'
import { LogConsumers, type AbsentConsumer } from '../reactors/sweep/log-consumers.ts'
import type { GeofenceMatcher } from '../reactors/matcher/match-geofences.ts'
import { PartitionSweeper } from '../reactors/sweep/sweep-partitions.ts'
import { locationSweep } from '../reactors/sweep/truncate-locations.ts'
import { transitionSweep } from '../reactors/sweep/truncate-transitions.ts'
import { LATEST_POSITION } from '../../projections/latest-position.ts'
import { LOCATION_HISTORY } from '../../projections/location-history.ts'
import type { InTurn } from './in-turn.ts'
import { transitionsApplied } from './transitions-applied.ts'

const DAY_MS = 86_400_000

/** A decision that is not in the log any more must have expired wherever it is read, also where it came from a clock that was ahead. */
const TRANSITIONS_SLACK_MS = DAY_MS

export interface SweepParts {
  config: Pick<Config, 'locationLogDays' | 'locationHistoryDays'>
  services: Services
  metrics: Metrics
  matcher: GeofenceMatcher
  turns: InTurn
}

/** The sweep of locations and transitions in the log, with an alarm for consumers that hold the locations back and do not run. */
export const openSweep = async ({ config, services, metrics, matcher, turns }: SweepParts) => {
  const { logger, tables } = services
  const consumers = new LogConsumers(services, [LOCATION_HISTORY, LATEST_POSITION])
  await consumers.register()
  const locations = locationSweep(services, {
    keepMs: config.locationLogDays * DAY_MS,
    consumersAt: (partition) => consumers.checkpointsAt(partition),
    snapshot: (partition) => matcher.snapshot(partition),
  })
  const transitions = transitionSweep(services, {
    keepMs: config.locationHistoryDays * DAY_MS + TRANSITIONS_SLACK_MS,
    appliedAt: transitionsApplied(tables),
  })
  const sweeper = new PartitionSweeper(services, {
    sweeps: [locations, transitions],
    exclusively: turns.run,
    onSwept: async () => raiseAlarm(services, metrics, await consumers.absent()),
    onFailure: (error, stream) => logger.error('the log was not swept', { stream, error: String(error) }),
  })
  sweeper.start()
  return {
    /** Now, without waiting for the hour. */
    sweep: () => sweeper.sweepAll(),
    /** Consumers that hold the log back and do not run here. */
    absent: () => consumers.absent(),
    forget: async (name: string): Promise<{ forgotten: string }> => {
      await consumers.forget(name)
      for (let partition = 0; partition < services.partitions; partition++) calm(metrics, name, partition)
      return { forgotten: name }
    },
    close: () => sweeper.close(),
  }
}

const raiseAlarm = ({ logger }: Services, metrics: Metrics, absent: readonly AbsentConsumer[]): void => {
  for (const { consumer, partition, events, seconds } of absent) {
    metrics.consumerLagEvents.set({ consumer, partition: String(partition) }, events)
    metrics.consumerLagSeconds.set({ consumer, partition: String(partition) }, seconds)
  }
  for (const consumer of new Set(absent.map((one) => one.consumer))) {
    const own = absent.filter((one) => one.consumer === consumer)
    const events = own.reduce((sum, one) => sum + one.events, 0)
    const seconds = Math.max(...own.map((one) => one.seconds))
    logger.warn('a consumer that does not run holds the location log back; waymark doctor --forget lets go', {
      consumer,
      events,
      seconds,
    })
  }
}

const calm = (metrics: Metrics, consumer: string, partition: number): void => {
  metrics.consumerLagEvents.remove({ consumer, partition: String(partition) })
  metrics.consumerLagSeconds.remove({ consumer, partition: String(partition) })
}
