import { backtests as projection } from '../../../projections/backtests.ts'
import type { Feature, FeatureServices } from '../../feature.ts'
import { Failure } from '../../kernel/errors.ts'
import { JobPlaces } from '../../kit/jobs/asking.ts'
import { backtestOf } from '../../reactors/backtests/answer-backtest.ts'
import { backtestWork } from '../../reactors/backtests/run-backtest.ts'
import { GEOFENCES, type GeofenceRow } from '../geofences/views.ts'
import { trackerLookups } from '../trackers/views.ts'
import type { Transition } from '../transitions/events.ts'
import { transitionShown } from '../transitions/views.ts'
import { backtestRoutes } from './api.ts'
import { JOB_EXAMPLE, JOB_SCHEMA } from './schemas.ts'
import { BACKTEST, BACKTEST_BOUNDS, BACKTEST_VIEW, BACKTESTS } from './views.ts'

/** Most points read for one answer; larger back-tests are jobs. */
const POINTS_MAX = 20_000_000

export const backtests: Feature = {
  projections: [projection],
  routes: (services) => {
    const { tables, backtestPointsMax: pointsMax = POINTS_MAX } = services
    const { visibleTrackers } = trackerLookups(tables)
    return backtestRoutes({
      ...services,
      visibleTrackers,
      places: new JobPlaces(tables, BACKTEST_BOUNDS),
      runBacktest: backtestOf({ ...services, visibleTrackers, pointsMax }),
      findGeofence: ({ organizationId }, geofenceId) => findGeofence(tables, organizationId, geofenceId),
      show: (transition) => transitionShown(transition as Transition),
    })
  },
  works: (services) => {
    const { visibleTrackers } = trackerLookups(services.tables)
    return [backtestWork({ ...services, visibleTrackers })]
  },
  jobViews: [BACKTEST_VIEW],
  keptJobs: [{ kind: BACKTEST, table: BACKTESTS }],
  liveEvents: [
    {
      channel: 'job',
      description: 'A back-test that is a job, each time that it goes on, for users who may read it.',
      schema: JOB_SCHEMA,
      examples: [JOB_EXAMPLE],
    },
  ],
}

const findGeofence = async (tables: FeatureServices['tables'], organizationId: string, id: string) => {
  const row = await tables.get<GeofenceRow>(GEOFENCES.name, organizationId, id.toLowerCase())
  if (row === undefined) throw new Failure('not_found')
  return { geofenceId: row._id, geofenceGroupId: row.geofenceGroupId, geofenceVersion: row.version }
}
