import { POINT_STEPS, PointSteps } from '../../../projections/point-steps.ts'
import type { Feature } from '../../feature.ts'
import { ownedPart } from '../../kit/consumers/owners.ts'
import { ownShares } from '../../kit/http/own-share.ts'
import { GeofenceBoxes } from '../geofences/boxes.ts'
import { timeZoneOf } from '../identity/views.ts'
import { trackerLookups } from '../trackers/views.ts'
import { reportRoutes } from './api.ts'
import { limitsOf, placesOf } from './fences.ts'

export const reports: Feature = {
  jobs: ({ history, clock, logger, config }) => [
    ownedPart(POINT_STEPS, async () => new PointSteps({ history, clock, logger, gapMs: config.tripGapMs }).start()),
  ],
  routes: (services) => {
    const { tables, clock, config, inRollout } = services
    const boxes = new GeofenceBoxes(tables, clock)
    return reportRoutes({
      tables,
      history: ownShares(services.history),
      ...trackerLookups(tables),
      timeZoneOf: (organizationId) => timeZoneOf(tables, organizationId),
      gapMs: config.tripGapMs,
      seesGeofences: (caller) => caller.permissions.has('view/geofence') && inRollout(caller),
      placesOf: (organizationId) => placesOf(tables, boxes, organizationId),
      limitsOf: (organizationId, groupIds) => limitsOf(tables, organizationId, groupIds),
    })
  },
}
