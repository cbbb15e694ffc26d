import type { Feature } from '../../feature.ts'
import { announceFences } from '../../reactors/announce/fences.ts'
import { ANNOUNCE_FENCES } from '../locations/events.ts'
import { geofenceRoutes } from './api.ts'
import { geofence } from './declaration.ts'
import { GEOFENCE_DELETED } from './events.ts'
import { geofenceGroup } from './group.ts'
import { ShapeChecker } from './shape-checker.ts'

export const geofences: Feature = {
  resources: [geofenceGroup, geofence],
  routes: (services) => geofenceRoutes({ ...services, shapes: services.kept(new ShapeChecker(services.clock)) }),
  jobs: ({ follows, ...services }) => {
    const { tripStopMs, tripGapMs, geofenceRollout } = services.config
    const rollout = geofenceRollout === '*' ? ('*' as const) : [...geofenceRollout]
    const settings = { tripStopMs, tripGapMs, rollout }
    return [follows(ANNOUNCE_FENCES, (isOurs) => announceFences({ ...services, isOurs }, settings))]
  },
  deletions: { geofence: GEOFENCE_DELETED },
}
