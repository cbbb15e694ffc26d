import { locationStream, SNAPSHOT_ASKED } from '../features/locations/events.ts'
import { encodeJson } from '../kernel/event.ts'
import { pause } from '../kit/consumers/retry.ts'
import { idSource } from '../kit/commands/ids.ts'
import { JobRunner } from '../kit/jobs/runner.ts'
import type { IsOurs, Lag } from '../kit/consumers/follower.ts'
import { dispatcherOf } from '../reactors/dispatch/owed-rows.ts'
import { newestSnapshot } from '../reactors/matcher/snapshot.ts'
import { type AbsentConsumer, LogConsumers } from '../reactors/sweep/log-consumers.ts'
import { PartitionSweeper } from '../reactors/sweep/sweep-partitions.ts'
import { LogSpace } from '../reactors/sweep/log-space.ts'
import { sweepFiles } from '../reactors/sweep/sweep-files.ts'
import { sweepNotifications } from '../reactors/sweep/sweep-notifications.ts'
import { sweepShares } from '../reactors/sweep/sweep-shares.ts'
import { locationSweep } from '../reactors/sweep/truncate-locations.ts'
import { transitionSweep } from '../reactors/sweep/truncate-transitions.ts'
import { UPKEEP, upkeepWork } from '../reactors/upkeep/upkeep.ts'
import { DECISIONS_HISTORY } from '../../projections/decisions-history.ts'
import { loadHistoryCheckpoint } from '../../projections/history-checkpoints.ts'
import { fileOwners } from './file-owners.ts'
import { LATEST_POSITION } from '../../projections/latest-position.ts'
import { LOCATION_HISTORY } from '../../projections/location-history.ts'
import type { OperationServices } from './services.ts'
import { rebuild } from './rebuilds.ts'

/** Consumers that the location log must be kept for. */
export const KEEPING_LOCATIONS: readonly string[] = [LOCATION_HISTORY, LATEST_POSITION]

const DAY_MS = 86_400_000
/** A decision missing from the log must have expired wherever it is read, even if its clock was ahead. */
const TRANSITIONS_SLACK_MS = DAY_MS
const SNAPSHOT_LOOK_MS = 50
const SNAPSHOT_LIMIT_MS = 60_000

/** Upkeep done once in the whole service: hourly sweeps of the log, and operators' requests. */
export const openUpkeep = async (services: OperationServices, isOurs: IsOurs) => {
  const { logger } = services
  // The turns belong to the process, and continue when another process, or this one again, does the upkeep.
  const end = new AbortController()
  let running: Promise<unknown> = Promise.resolve()
  const inTurn = <Result>(what: () => Promise<Result>): Promise<Result> => {
    const result = services.upkeepTurns.run(() => {
      end.signal.throwIfAborted()
      return what()
    })
    running = result.catch(() => undefined) // the caller gets the rejection
    return result
  }
  const ended = AbortSignal.any([end.signal, services.upkeepTurns.signal])
  const consumers = new LogConsumers(services, KEEPING_LOCATIONS)
  const space = new LogSpace(services)
  let absent: readonly AbsentConsumer[] = []
  const sweeper = new PartitionSweeper(services, {
    sweeps: sweepsOf(services, consumers),
    exclusively: inTurn,
    onSwept: async () => {
      warnOf(services, (absent = await consumers.absent()))
      await space.reclaim()
      await sweepFiles(services, fileOwners(services), ended)
      await sweepNotifications(services, ended)
      await sweepShares(services, ended)
    },
    onFailure: (error, stream) => logger.error('the log was not swept', { stream, error: String(error) }),
  })
  sweeper.startLater()
  const work = upkeepWork({
    rebuild: (name, signal) => inTurn(() => rebuild(services, name, AbortSignal.any([signal, ended]))),
    sweep: () => sweeper.sweepAll(),
    forget: async (name) => {
      await consumers.forget(name)
      absent = absent.filter(({ consumer }) => consumer !== name)
      return { forgotten: name }
    },
  })
  const keepMs = services.config.automationLogDays * DAY_MS
  const tasks = new JobRunner({ ...services, isOurs }, { name: UPKEEP, works: [work], atOnceMax: 1, keepMs })
  await tasks.start()
  return {
    /** Lags of consumers that run nowhere. */
    lags: (): Lag[] => absent.map((one) => ({ ...one, partition: String(one.partition) })),
    close: async (): Promise<void> => {
      end.abort(new Error('the upkeep is left'))
      await tasks.close()
      await running
      await sweeper.close()
    },
  }
}

const sweepsOf = (services: OperationServices, consumers: LogConsumers) => [
  locationSweep(services, {
    keepMs: services.config.locationLogDays * DAY_MS,
    consumersAt: (partition) => consumers.checkpointsAt(partition),
    snapshot: (partition, through) => askedSnapshot(services, partition, through),
  }),
  transitionSweep(services, {
    keepMs: services.config.locationHistoryDays * DAY_MS + TRANSITIONS_SLACK_MS,
    appliedAt: (partition) => transitionsApplied(services.tables, partition),
  }),
]

/** Requests a snapshot in the partition's stream unless one goes that far; returns the newest one's reach. */
export const askedSnapshot = async (
  { log, clock }: Pick<OperationServices, 'log' | 'clock'>,
  partition: number,
  through: number,
): Promise<number> => {
  const before = await newestSnapshot(log, partition)
  if (before >= through) return before
  const id = idSource(clock.now()).next()
  const asked = { id, type: SNAPSHOT_ASKED, data: encodeJson({}), isJson: true, metadata: { actor: 'reactor:upkeep' } }
  await log.append(locationStream(partition), [asked], 'any')
  const endMs = clock.monotonic() + SNAPSHOT_LIMIT_MS
  while (clock.monotonic() < endMs) {
    await pause(clock, SNAPSHOT_LOOK_MS)
    const newest = await newestSnapshot(log, partition)
    if (newest >= through) return newest
  }
  throw new Error(`the matcher of partition ${partition} wrote no snapshot in time`)
}

/** Revision up to which all checkpointing consumers have applied the transitions of a partition; -1 for none. */
export const transitionsApplied = async (tables: OperationServices['tables'], partition: number): Promise<number> => {
  const history = await loadHistoryCheckpoint(tables, DECISIONS_HISTORY, partition)
  const dispatched = (await tables.checkpoint(dispatcherOf(partition)))?.source ?? -1
  return Math.min(history, dispatched)
}

/** Warns of registered consumers that run nowhere and hold the location log back. */
const warnOf = ({ logger }: Pick<OperationServices, 'logger'>, absent: readonly AbsentConsumer[]): void => {
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
