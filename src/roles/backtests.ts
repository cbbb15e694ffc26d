import type { Config } from '../config.ts'
import type { FoundTransition } from '../features/backtests/events.ts'
import type { BacktestServices } from '../features/backtests/api.ts'
import { GEOFENCES, type GeofenceRow } from '../features/geofences/views.ts'
import type { Transition } from '../features/transitions/events.ts'
import { transitionShown } from '../features/transitions/views.ts'
import { Failure } from '../kernel/errors.ts'
import type { Services } from '../kit/services.ts'
import { backtestOf } from '../reactors/backtests/answer-backtest.ts'
import { BacktestJobs } from '../reactors/backtests/backtest-jobs.ts'
import { trackerLookups } from './lookups.ts'

/** More points than this are not read for one answer: such a back-test is a job. */
const BACKTEST_POINTS_MAX = 20_000_000
const DAY_MS = 86_400_000

/** Back-tests: what their routes need, and what does those that are jobs. */
export const openBacktests = async (
  services: Services,
  config: Pick<Config, 'automationLogDays'>,
  pointsMax = BACKTEST_POINTS_MAX,
) => {
  const { log, tables, history, logger } = services
  const { visibleTrackers } = trackerLookups(tables)
  const onFailure = (error: unknown): void => logger.error('a back-test failed', { error: String(error) })
  const jobs = new BacktestJobs({ ...services, visibleTrackers, keepMs: config.automationLogDays * DAY_MS, onFailure })
  await jobs.start()
  const routes: BacktestServices = {
    log,
    tables,
    visibleTrackers,
    runBacktest: backtestOf({ log, history, visibleTrackers, pointsMax }),
    findGeofence: async ({ organizationId }, geofenceId) => {
      const row = await tables.get<GeofenceRow>(GEOFENCES.name, organizationId, geofenceId)
      if (row === undefined) throw new Failure('not_found')
      return { geofenceId: row._id, geofenceGroupId: row.geofenceGroupId, geofenceVersion: row.version }
    },
    reserve: (organizationId, backtestId) => jobs.waiting.reserve(organizationId, backtestId),
    release: (backtestId) => jobs.waiting.release(backtestId),
    show: (transition: FoundTransition) => transitionShown(transition as Transition),
  }
  return { routes, close: () => jobs.close() }
}
