import type { Config } from '../config.ts'
import type { Metrics } from '../kit/metrics.ts'
import type { Services } from '../kit/services.ts'
import { LogConsumers, type AbsentConsumer } from '../reactors/log-consumers.ts'
import type { GeofenceMatcher } from '../reactors/match-geofences.ts'
import { LocationSweeper } from '../reactors/truncate-locations.ts'
import { LATEST_POSITION } from '../../projections/latest-position.ts'
import { LOCATION_HISTORY } from '../../projections/location-history.ts'
import type { InTurn } from './in-turn.ts'

const DAY_MS = 86_400_000

/** The sweep of the location log, with an alarm for consumers that hold it back and do not run. */
export const openSweep = async (config: Pick<Config, 'locationLogDays'>, services: Services, metrics: Metrics, matcher: GeofenceMatcher, turns: InTurn) => {
  const { logger } = services
  const consumers = new LogConsumers(services, [LOCATION_HISTORY, LATEST_POSITION])
  await consumers.register()
  const sweeper = new LocationSweeper(services, {
    keepMs: config.locationLogDays * DAY_MS,
    consumersAt: (partition) => consumers.checkpointsAt(partition),
    snapshot: (partition) => matcher.snapshot(partition),
    exclusively: turns.run,
    onSwept: async () => raiseAlarm(services, metrics, await consumers.absent()),
    onFailure: (partition, error) => logger.error('the location log was not swept', { partition, error: String(error) }),
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
    logger.warn('a consumer that does not run holds the location log back; waymark doctor --forget lets go', { consumer, events, seconds })
  }
}

const calm = (metrics: Metrics, consumer: string, partition: number): void => {
  metrics.consumerLagEvents.remove({ consumer, partition: String(partition) })
  metrics.consumerLagSeconds.remove({ consumer, partition: String(partition) })
}
