import { automations } from '../../projections/automations.ts'
import { loadHistoryCheckpoint } from '../../projections/history-checkpoints.ts'
import { RUNS_HISTORY } from '../../projections/runs-history.ts'
import { ownedPartitions } from '../kit/consumers/owners.ts'
import { Dispatcher } from '../reactors/dispatch/dispatcher.ts'
import { TableDirectory } from '../reactors/dispatch/directory.ts'
import type { OpenRole } from './role.ts'

const DAY_MS = 86_400_000

/** Turns decisions into runs of automations. */
export const openDispatcher: OpenRole = async (services) => {
  const { config, metrics, feeds, owners, partitions, checkpoints } = services
  const dispatcher = new Dispatcher({
    ...services,
    directory: new TableDirectory({ ...services, ages: config }),
    scheduleMs: config.webhookScheduleMs,
    maxAgeMs: config.automationMaxAgeMs,
    automationsListed: (position, timeoutMs) => checkpoints.reached(automations.name, { all: position }, timeoutMs),
    retentionMs: config.automationLogDays * DAY_MS,
    listedThrough: (partition) => loadHistoryCheckpoint(services.tables, RUNS_HISTORY, partition),
    onDelivery: (outcome, count) => metrics.deliveries.inc({ outcome }, count),
  })
  await dispatcher.declare()
  const joined = await owners.join(ownedPartitions(feeds.transitions, dispatcher, partitions))
  return {
    lags: () => dispatcher.lags(services.clock.now()),
    close: async () => {
      await joined.leave()
      await dispatcher.close()
    },
  }
}
