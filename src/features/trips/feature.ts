import { listedDecisions, pointsListed } from '../../../projections/listed-rows.ts'
import type { Feature } from '../../feature.ts'
import { decodeJson } from '../../kernel/event.ts'
import { ownShares } from '../../kit/http/own-share.ts'
import { tripId } from '../../reactors/matcher/detect-trips.ts'
import { readTrack } from '../locations/history/query.ts'
import { readTripToken, tripToken } from '../locations/trip-token.ts'
import { TRACKER_STREAMS } from '../trackers/events.ts'
import { seesWhere, trackerLookups, TRACKERS_TABLE, type TrackerRow } from '../trackers/views.ts'
import { tripRoutes } from './api.ts'
import { TRIP, TRIP_EXAMPLE } from './schemas.ts'
import { readRunningMeters, RUNNING_TRIPS } from './views.ts'

export const trips: Feature = {
  tables: [RUNNING_TRIPS],
  routes: (services) => {
    const { tables, keyring, log, partitions } = services
    const history = ownShares(services.history)
    return tripRoutes({
      tables: listedDecisions(services),
      ...trackerLookups(tables),
      visibleTrackers: trackerLookups(tables).locatedTrackers,
      seesTracker: async (caller, trackerId) => {
        const row = await tables.get<TrackerRow>(TRACKERS_TABLE, caller.organizationId, trackerId)
        return seesWhere(caller, row ?? { hubIds: [] })
      },
      ownsTracker: async (organizationId, trackerId) => {
        // The tracker's own stream proves it, even without a row.
        const [first] = await log.read(TRACKER_STREAMS + trackerId, 0, 1)
        return (
          first !== undefined && decodeJson<{ organizationId: string }>(first.data).organizationId === organizationId
        )
      },
      tripToken: (trackerId, startedAt) => tripToken(keyring, trackerId, startedAt),
      readTripToken: (token) => readTripToken(keyring, token),
      tripId,
      runningMeters: (running) => readRunningMeters(tables, partitions, running),
      pointsListed: pointsListed(services),
      readTrack: (organizationId, trackerId, from, to, signal) =>
        readTrack(history, { organizationId, trackerIds: 'all' }, trackerId, from, to, signal),
    })
  },
  liveEvents: [
    { channel: 'trip', description: 'A trip that started or finished.', schema: TRIP, examples: [TRIP_EXAMPLE] },
  ],
}
