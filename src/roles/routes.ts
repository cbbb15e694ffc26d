import type { Config } from '../config.ts'
import { HistoryRows } from '../engines/clickhouse-sql/rows.ts'
import { automationRoutes } from '../features/automations/api.ts'
import { automationRunRoutes } from '../features/automations/runs-api.ts'
import { backtestRoutes, type BacktestServices } from '../features/backtests/api.ts'
import { geofenceRoutes, type GeofenceServices } from '../features/geofences/api.ts'
import { hub } from '../features/hubs/hub.ts'
import { identityContext } from '../features/identity/context.ts'
import { identityRoutes } from '../features/identity/routes.ts'
import { bulkRoute } from '../features/locations/ingest/bulk-api.ts'
import { historyRoutes } from '../features/locations/history/api.ts'
import { readTrack } from '../features/locations/history/query.ts'
import { livePositionsRoute } from '../features/locations/live-positions-api.ts'
import { readTripToken, tripToken } from '../features/locations/trip-token.ts'
import { team } from '../features/teams/team.ts'
import { trackerRoutes } from '../features/trackers/api.ts'
import { statusAt } from '../features/trackers/views.ts'
import { transitionRoutes } from '../features/transitions/api.ts'
import { tripRoutes } from '../features/trips/api.ts'
import { readRunningMeters } from '../features/trips/views.ts'
import { vehicle } from '../features/vehicles/vehicle.ts'
import { seesHubs, type UserCaller } from '../kernel/caller.ts'
import type { Route } from '../kit/http/route.ts'
import type { Services } from '../kit/services.ts'
import { tripId } from '../reactors/matcher/detect-trips.ts'
import type { Actions } from '../reactors/dispatch/actions/action.ts'
import type { Directory } from '../reactors/dispatch/directory.ts'
import { dryRun } from '../reactors/dispatch/dry-run.ts'
import type { IngestParts } from './ingest.ts'
import { ownsTracker } from './last-states.ts'
import { trackerLookups } from './lookups.ts'
import { resources } from './resources.ts'

export interface RouteParts {
  config: Config
  services: Services
  ingest: IngestParts
  actions: Actions
  directory: Directory
  inRollout: (caller: UserCaller) => boolean
  geofences: Pick<GeofenceServices, 'shapes'> & { backtests: BacktestServices }
}

/** Every route of the API. */
export const listRoutes = (parts: RouteParts): Route[] => [
  ...officeRoutes(parts),
  ...fleetRoutes(parts),
  ...locationRoutes(parts),
  ...automationParts(parts),
]

const officeRoutes = (parts: RouteParts): Route[] => {
  const services = { ...parts.services, resources }
  const identity = identityContext(services, parts.config)
  return [...identityRoutes(identity), ...hub.routes(services), ...team.routes(services), ...vehicle.routes(services)]
}

const fleetRoutes = ({ config, services, ingest, geofences }: RouteParts): Route[] => {
  return [
    ...trackerRoutes({ ...services, resources, ages: config, writer: ingest.writer }),
    ...geofenceRoutes({ ...services, ...geofences, resources }),
    ...backtestRoutes(geofences.backtests),
  ]
}

const locationRoutes = ({ config, services, ingest }: RouteParts): Route[] => {
  const { tables, history, keyring, log, clock } = services
  const listed = new HistoryRows(history, clock)
  const { visibleTrackers, trackersOf, trackerNames } = trackerLookups(tables)
  const trackerRow = (organizationId: string, trackerId: string) => tables.get('trackers', organizationId, trackerId)
  return [
    bulkRoute(ingest.ingest, keyring),
    livePositionsRoute({ tables, statusAt: (seenAt, now) => statusAt(seenAt, now, config) }),
    ...historyRoutes({ history, visibleTrackers, trackersOf, trackerNames }),
    ...transitionRoutes({ visibleTrackers, history }),
    ...tripRoutes({
      tables: listed,
      visibleTrackers,
      trackersOf,
      seesTracker: async (caller, trackerId) =>
        seesHubs(caller, ((await trackerRow(caller.organizationId, trackerId))?.hubIds as string[] | undefined) ?? []),
      ownsTracker: (organizationId, trackerId) => ownsTracker(log, organizationId, trackerId),
      tripToken: (trackerId, startedAt) => tripToken(keyring, trackerId, startedAt),
      readTripToken: (token) => readTripToken(keyring, token),
      tripId,
      runningMeters: (trips) => readRunningMeters(tables, services.partitions, trips),
      readTrack: (organizationId, trackerId, from, to, signal) =>
        readTrack(history, { organizationId, trackerIds: 'all' }, trackerId, from, to, signal),
    }),
  ]
}

const automationParts = ({ services, actions, inRollout, directory }: RouteParts): Route[] => {
  return [
    ...automationRoutes({
      ...services,
      resources,
      inRollout,
      actions,
      editor: (...user) => directory.editor(...user),
      dryRun: (automation, now) => dryRun({ ...services, directory, actions }, automation, now),
    }),
    ...automationRunRoutes({ ...services, visibleTrackers: trackerLookups(services.tables).visibleTrackers }),
  ]
}
