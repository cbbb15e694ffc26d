import { routings } from '../../../projections/routings.ts'
import type { Feature } from '../../feature.ts'
import { JobPlaces } from '../../kit/jobs/asking.ts'
import { dispatchRoutes } from '../../processes/dispatch-routes.ts'
import { COMPLETE_ROUTES, completeResults } from '../../reactors/routing/complete-results.ts'
import { LEAVE_ROUTES, leaveRoutes } from '../../reactors/routing/leave-routes.ts'
import { planWork } from '../../reactors/routing/plan-routes.ts'
import { withActualVisits } from './actual-visits.ts'
import { routingRoutes } from './api.ts'
import { JOB_EXAMPLE, JOB_SCHEMA } from './schemas.ts'
import { routingResult } from './result.ts'
import { ROUTING, ROUTING_BOUNDS, ROUTING_VIEW, ROUTINGS, type RoutingRow } from './views.ts'

export const routing: Feature = {
  resources: [routingResult],
  projections: [routings],
  routes: (services) =>
    routingRoutes({
      ...services,
      places: new JobPlaces(services.tables, ROUTING_BOUNDS),
      present: async (rows, { caller, now, wants, isList }) => {
        if (isList || !wants('routes')) return [...rows]
        return [await withActualVisits(services, caller, rows[0] as RoutingRow, now)]
      },
    }),
  works: (services) => [planWork(services)],
  jobs: ({ follows, ...services }) => [
    follows(COMPLETE_ROUTES, (isOurs) => completeResults({ ...services, isOurs })),
    follows(LEAVE_ROUTES, (isOurs) => leaveRoutes({ ...services, isOurs })),
  ],
  processes: ({ services }) => [dispatchRoutes(services)],
  jobViews: [ROUTING_VIEW],
  keptJobs: [{ kind: ROUTING, table: ROUTINGS }],
  liveEvents: [
    {
      channel: 'job',
      description: 'A planning of routes, each time that it goes on, for those who see its hub.',
      schema: JOB_SCHEMA,
      examples: [JOB_EXAMPLE],
    },
  ],
}
