import { automationResource } from '../features/automations/declaration.ts'
import { geofence } from '../features/geofences/declaration.ts'
import { geofenceGroup } from '../features/geofences/group.ts'
import { hub } from '../features/hubs/hub.ts'
import { organization } from '../features/identity/organization.ts'
import { role } from '../features/identity/role.ts'
import { user } from '../features/identity/user.ts'
import { team } from '../features/teams/team.ts'
import { ingestKey, tracker } from '../features/trackers/declaration.ts'
import { vehicle } from '../features/vehicles/vehicle.ts'
import { ResourceSet } from '../kit/resource/resource-set.ts'

/** Those whose tables are kept together, each rebuilt by itself. */
export const DIRECTORY = [organization, role, user, hub, team, vehicle, tracker, ingestKey, geofenceGroup, geofence]

/** Every resource of the product. */
export const resources = new ResourceSet([...DIRECTORY, automationResource])
