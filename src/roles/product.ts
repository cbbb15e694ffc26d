import type { UserCaller } from '../kernel/caller.ts'
import type { Projection } from '../kit/consumers/projection.ts'
import { ResourceSet } from '../kit/resource/resource-set.ts'
import { addon } from '../features/addons/addon.ts'
import { auditedNouns } from '../features/audit/views.ts'
import { automationResource } from '../features/automations/declaration.ts'
import { dataType } from '../features/data/data-type.ts'
import { record } from '../features/data/record.ts'
import { flow } from '../features/flows/flow.ts'
import { schedule } from '../features/tasks/schedule.ts'
import { task } from '../features/tasks/task.ts'
import { geofence } from '../features/geofences/declaration.ts'
import { geofenceGroup } from '../features/geofences/group.ts'
import { hub } from '../features/hubs/hub.ts'
import { organization } from '../features/identity/organization.ts'
import { appIntegration } from '../features/integrations/app-integration.ts'
import { pluginSetting } from '../features/plugins/plugin-setting.ts'
import { role } from '../features/identity/role.ts'
import { user } from '../features/identity/user.ts'
import { team } from '../features/teams/team.ts'
import { ingestKey, tracker } from '../features/trackers/declaration.ts'
import { vehicle } from '../features/vehicles/vehicle.ts'
import { access } from '../../projections/access.ts'
import { automations } from '../../projections/automations.ts'
import { backtests } from '../../projections/backtests.ts'
import { directory } from '../../projections/directory.ts'
import { notifications } from '../../projections/notifications.ts'
import { processes } from '../../projections/processes.ts'

/** Resources whose tables are kept together, each rebuilt by itself. */
const DIRECTORY = [
  organization,
  role,
  user,
  hub,
  team,
  vehicle,
  tracker,
  ingestKey,
  geofenceGroup,
  geofence,
  appIntegration,
  pluginSetting,
  addon,
  dataType,
  record,
  flow,
  task,
  schedule,
]

/** Every resource of the product. */
export const resources = new ResourceSet([...DIRECTORY, automationResource])

/** What the audit log tells of. */
export const AUDITED = auditedNouns(resources.all())

/** Every read model that is kept in tables and fed by the whole log. */
export const PROJECTIONS: readonly Projection[] = [
  directory(DIRECTORY.map(({ rows }) => rows)),
  access,
  automations,
  backtests,
  notifications,
  processes,
]

/** Whether geofences are there for the caller: by organization, or by the domain of an address that staff have shown to be theirs. */
export const inRollout =
  ({ geofenceRollout, staffDomains }: { geofenceRollout: readonly string[] | '*'; staffDomains: readonly string[] }) =>
  ({ organizationId, verifiedEmail = '' }: Pick<UserCaller, 'organizationId' | 'verifiedEmail'>): boolean =>
    geofenceRollout === '*' ||
    geofenceRollout.includes(organizationId) ||
    staffDomains.includes(verifiedEmail.slice(verifiedEmail.lastIndexOf('@') + 1).toLowerCase())
