import { DECISIONS_HISTORY } from '../../projections/decisions-history.ts'
import { historyConsumer } from '../../projections/history-checkpoints.ts'
import { RUNS_HISTORY } from '../../projections/runs-history.ts'
import { HistoryRows } from '../engines/clickhouse-sql/rows.ts'
import { addonRoutes } from '../features/addons/api.ts'
import { auditRoute } from '../features/audit/api.ts'
import { AUDIT, auditedPrefixes } from '../features/audit/views.ts'
import { automationRoutes } from '../features/automations/api.ts'
import { runsStream } from '../features/automations/events.ts'
import { automationRunRoutes } from '../features/automations/runs-api.ts'
import { AUTOMATION_RUNS } from '../features/automations/views.ts'
import { backtestRoutes } from '../features/backtests/api.ts'
import { BacktestPlaces } from '../features/backtests/places.ts'
import { geofenceRoutes } from '../features/geofences/api.ts'
import { ShapeChecker } from '../features/geofences/shape-checker.ts'
import { dataRoutes } from '../features/data/api.ts'
import { readRecord, RECORDS } from '../features/data/views.ts'
import { FLOWS, withFieldNames } from '../features/flows/views.ts'
import { recordFiles } from '../features/data/record-files.ts'
import { RecordWriter } from '../features/data/record-writer.ts'
import { fileRoutes } from '../features/files/api.ts'
import { scheduleRoutes } from '../features/tasks/schedule-api.ts'
import { notificationRoutes } from '../features/notifications/api.ts'
import { taskRoutes } from '../features/tasks/api.ts'
import { taskFiles } from '../features/tasks/task-files.ts'
import { TaskWriter } from '../features/tasks/task-writer.ts'
import { flow } from '../features/flows/flow.ts'
import { GEOFENCES, type GeofenceRow } from '../features/geofences/views.ts'
import { hubRoutes } from '../features/hubs/hub-routes.ts'
import { AzureProvider } from '../features/identity/azure-provider.ts'
import { azureRoutes } from '../features/identity/azure-routes.ts'
import { SIGN_INS_USED } from '../features/identity/single-use.ts'
import { identityContext } from '../features/identity/context.ts'
import { activeIntegration, appIntegrationRoutes } from '../features/integrations/app-integration.ts'
import { pluginSetting } from '../features/plugins/plugin-setting.ts'
import { identityRoutes } from '../features/identity/routes.ts'
import { historyRoutes } from '../features/locations/history/api.ts'
import { readTrack } from '../features/locations/history/query.ts'
import { livePositionsRoute } from '../features/locations/live-positions-api.ts'
import { readTripToken, tripToken } from '../features/locations/trip-token.ts'
import { team } from '../features/teams/team.ts'
import { trackerRoutes } from '../features/trackers/api.ts'
import { TRACKER_STREAMS } from '../features/trackers/events.ts'
import { TrackerQuota } from '../features/trackers/tracker-quota.ts'
import { TrackerWriter } from '../features/trackers/tracker-writer.ts'
import { statusAt, trackerLookups, type TrackerRow, TRACKERS_TABLE } from '../features/trackers/views.ts'
import { watchTrackers } from '../features/trackers/watch-trackers.ts'
import { transitionRoutes } from '../features/transitions/api.ts'
import { type Transition, transitionStream } from '../features/transitions/events.ts'
import { transitionShown } from '../features/transitions/views.ts'
import { tripRoutes } from '../features/trips/api.ts'
import { readRunningMeters, RUNNING_TRIPS, TRIPS } from '../features/trips/views.ts'
import { vehicle } from '../features/vehicles/vehicle.ts'
import { seesHubs } from '../kernel/caller.ts'
import { Failure } from '../kernel/errors.ts'
import { decodeJson } from '../kernel/event.ts'
import { ownShares } from '../kit/http/own-share.ts'
import { Uploads } from '../kit/files/uploads.ts'
import type { Route } from '../kit/http/route.ts'
import { backtestOf } from '../reactors/backtests/answer-backtest.ts'
import { dryRun } from '../reactors/dispatch/dry-run.ts'
import { TableDirectory } from '../reactors/dispatch/directory.ts'
import { tripId } from '../reactors/matcher/detect-trips.ts'
import { AUDITED, PROJECTIONS, resources } from './product.ts'
import type { OpenRole, RoleServices } from './role.ts'

/** A read that finds nothing waits so long at most for the history to follow. */
const CATCH_UP_MS = 1_000
/** More points than this are not read for one answer: such a back-test is a job. */
const BACKTEST_POINTS_MAX = 20_000_000

/** The routes for users and their programs. */
export const openApi: OpenRole = async (services) => {
  const { config, tables, clock } = services
  await tables.declare(RUNNING_TRIPS)
  await tables.declare(SIGN_INS_USED)
  const shapes = new ShapeChecker(clock)
  const quota = new TrackerQuota(tables, clock, config.trackersMax)
  const watching = await watchTrackers(services, 'api-trackers', { quota })
  const writer = new TrackerWriter({ ...services, resources }, quota)
  const uploads = new Uploads({ files: services.files, bytesMax: config.fileBytesMax })
  return {
    routes: [
      ...officeRoutes(services),
      ...dataRoutes({ ...services, resources, uploads }),
      ...flow.routes({ ...services, resources }),
      ...scheduleRoutes({ ...services, resources }),
      ...taskRoutes({ ...services, resources, uploads }),
      ...attachments(services, uploads),
      ...trackerRoutes({ ...services, resources, ages: config, writer }),
      ...geofenceRoutes({ ...services, resources, shapes }),
      ...backtests(services),
      ...notificationRoutes(services),
      ...locationRoutes(services),
      ...automationParts(services),
      auditLog(services),
    ],
    close: async () => {
      await services.processes.idle()
      await watching.close()
      await shapes.close()
    },
  }
}

const officeRoutes = (roleServices: RoleServices): Route[] => {
  const services = { ...roleServices, resources }
  const identity = identityContext(services, roleServices.config)
  return [
    ...identityRoutes(identity),
    ...azureRoutes(identity, {
      provider: new AzureProvider(),
      integrationOf: (appIntegrationId) => activeIntegration(services, appIntegrationId),
      publicUrl: roleServices.publicUrl,
    }),
    ...appIntegrationRoutes(services),
    ...addonRoutes({ ...services, origin: roleServices.config.addonOrigin }),
    ...hubRoutes(services),
    ...[team, vehicle, pluginSetting].flatMap((resource) => resource.routes(services)),
  ]
}

const attachments = (roleServices: RoleServices, uploads: Uploads): Route[] => {
  const services = { ...roleServices, resources }
  const holders = [taskFiles(services, new TaskWriter(services)), recordFiles(services, new RecordWriter(services))]
  return fileRoutes({ files: services.files, uploads, holders })
}

const backtests = (services: RoleServices): Route[] => {
  const { tables, backtestPointsMax: pointsMax = BACKTEST_POINTS_MAX } = services
  const { visibleTrackers } = trackerLookups(tables)
  return backtestRoutes({
    ...services,
    visibleTrackers,
    places: new BacktestPlaces(tables),
    runBacktest: backtestOf({ ...services, visibleTrackers, pointsMax }),
    findGeofence: async ({ organizationId }, geofenceId) => {
      const row = await tables.get<GeofenceRow>(GEOFENCES.name, organizationId, geofenceId)
      if (row === undefined) throw new Failure('not_found')
      return { geofenceId: row._id, geofenceGroupId: row.geofenceGroupId, geofenceVersion: row.version }
    },
    show: (transition) => transitionShown(transition as Transition),
  })
}

const locationRoutes = (services: RoleServices): Route[] => {
  const { config, tables, keyring, log, partitions } = services
  const history = ownShares(services.history)
  const lookups = trackerLookups(tables)
  return [
    livePositionsRoute({ tables, statusAt: (seenAt, now) => statusAt(seenAt, now, config) }),
    ...historyRoutes({ history, ...lookups }),
    ...transitionRoutes({ history, ...lookups }),
    ...tripRoutes({
      tables: listedRows(services),
      ...lookups,
      seesTracker: async (caller, trackerId) => {
        const row = await tables.get<TrackerRow>(TRACKERS_TABLE, caller.organizationId, trackerId)
        return seesHubs(caller, row?.hubIds ?? [])
      },
      ownsTracker: async (organizationId, trackerId) => {
        // Its own stream says so, also when its row is gone.
        const [first] = await log.read(TRACKER_STREAMS + trackerId, 0, 1)
        return (
          first !== undefined && decodeJson<{ organizationId: string }>(first.data).organizationId === organizationId
        )
      },
      tripToken: (trackerId, startedAt) => tripToken(keyring, trackerId, startedAt),
      readTripToken: (token) => readTripToken(keyring, token),
      tripId,
      runningMeters: (trips) => readRunningMeters(tables, partitions, trips),
      readTrack: (organizationId, trackerId, from, to, signal) =>
        readTrack(history, { organizationId, trackerIds: 'all' }, trackerId, from, to, signal),
    }),
  ]
}

/** Who puts what the history lists into it, and from which streams. */
const LISTED_FROM: { [table: string]: { consumer: string; streamOf(partition: number): string } } = {
  [TRIPS.name]: { consumer: DECISIONS_HISTORY, streamOf: transitionStream },
  [AUTOMATION_RUNS.name]: { consumer: RUNS_HISTORY, streamOf: runsStream },
}

/** Trips and runs as the history lists them; one that it lacks is looked for again when it has all that was logged. */
const listedRows = ({ history, clock, settle, partitions }: RoleServices): HistoryRows =>
  new HistoryRows(history, clock, (table) => {
    const { consumer, streamOf } = LISTED_FROM[table]
    const steps = Array.from({ length: partitions }, (_, partition) => ({
      consumer: historyConsumer(consumer, partition),
      stream: streamOf(partition),
      source: String(partition),
    }))
    return settle({ types: [], position: -1 }, CATCH_UP_MS, steps)
  })

const auditLog = (services: RoleServices): Route => {
  const { log, tables, checkpoints, settle } = services
  const audited = auditedPrefixes(AUDITED)
  const followers = PROJECTIONS.filter(({ prefixes }) => prefixes.some((prefix) => audited.includes(prefix)))
  const names = followers.map(({ name }) => name)
  // A command is answered once these have stored what it wrote; the end of the log may lie far beyond, among points.
  return auditRoute({
    log,
    listed: listedRows(services),
    resources: resources.all(),
    asShown: async (caller, { plural }, values) => {
      if (plural === RECORDS) return readRecord(tables, caller, values)
      return plural === FLOWS ? (await withFieldNames(tables, caller.organizationId, [values]))[0] : values
    },
    caughtUp: async () =>
      settle({ types: [], position: await checkpoints.changedThrough(names) }, CATCH_UP_MS, [{ consumer: AUDIT }]),
  })
}

const automationParts = (services: RoleServices): Route[] => {
  const { config, tables, actions } = services
  const directory = new TableDirectory({ ...services, ages: config })
  return [
    ...automationRoutes({
      ...services,
      resources,
      editor: (...user) => directory.editor(...user),
      dryRun: (automation, now) => dryRun({ ...services, directory, actions }, automation, now),
    }),
    ...automationRunRoutes({
      ...services,
      listed: listedRows(services),
      visibleTrackers: trackerLookups(tables).visibleTrackers,
    }),
  ]
}
