import { randomUUID } from 'node:crypto'
import type { Test } from 'tap'
import { directory } from '../../projections/directory.ts'
import { automationResource } from '../../src/features/automations/declaration.ts'
import { AUTOMATIONS } from '../../src/features/automations/views.ts'
import { dataType } from '../../src/features/data/data-type.ts'
import { flow } from '../../src/features/flows/flow.ts'
import { geofenceRoutes } from '../../src/features/geofences/api.ts'
import { geofence } from '../../src/features/geofences/declaration.ts'
import { geofenceGroup } from '../../src/features/geofences/group.ts'
import { ShapeChecker } from '../../src/features/geofences/shape-checker.ts'
import { hub } from '../../src/features/hubs/hub.ts'
import { systemClock } from '../../src/kernel/system-clock.ts'
import type { UserCaller } from '../../src/kernel/caller.ts'
import { announceFences } from '../../src/reactors/announce/fences.ts'
import { routeCaller } from './call-route.ts'
import { openServices, startProjections } from './open-services.ts'
import { folderOf } from './folder-of.ts'

/** Geofences, with what names their groups and all that it names. */
const RESOURCES = [geofenceGroup, geofence, automationResource, flow, hub, dataType]

export const ownerOf = (organizationId: string): UserCaller => ({
  kind: 'user',
  organizationId,
  userId: randomUUID(),
  identityId: randomUUID(),
  email: 'owner@example.com',
  jti: randomUUID(),
  expiresAt: Number.MAX_SAFE_INTEGER,
  roleId: randomUUID(),
  roleKey: 'owner',
  permissions: new Set(['view/geofence', 'edit/geofence', 'view/location-history']),
  permissionDetails: [],
  hubIds: 'all',
  teamIds: [],
})

/** The routes of geofences over the embedded engines, as a client meets them. */
export const openGeofences = async (t: Test, { partitions = 2 } = {}) => {
  const services = await openServices(folderOf(t), systemClock, RESOURCES)
  await services.tables.declare(AUTOMATIONS)
  const shapes = new ShapeChecker(systemClock)
  const announcer = await announceFences({ ...services, partitions }, { tripStopMs: 300_000, rollout: '*' })
  const { runner, settle } = await startProjections(services, [directory([geofenceGroup.rows, geofence.rows])])
  const routes = geofenceRoutes({
    ...services,
    shapes,
  })
  t.teardown(async () => {
    await announcer.close()
    await shapes.close()
    await runner.close()
    await services.close()
  })
  const organizationId = randomUUID()
  const call = routeCaller({ routes, settle })
  return { services, shapes, announcer, call, organizationId, caller: ownerOf(organizationId), routes }
}
