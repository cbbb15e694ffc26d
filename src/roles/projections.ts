import type { Projection } from '../kit/consumers/projection.ts'
import type { Resource } from '../kit/resource/resource.ts'
import { geofenceGroups } from '../features/geofences/group.ts'
import { hubResource } from '../features/hubs/hub.ts'
import { identityRows } from '../features/identity/directory.ts'
import { team } from '../features/teams/team.ts'
import { ingestKeyRows, trackerRows } from '../features/trackers/tracker-rows.ts'
import { vehicle } from '../features/vehicles/vehicle.ts'
import { access } from '../../projections/access.ts'
import { automationRuns } from '../../projections/automation-runs.ts'
import { automations } from '../../projections/automations.ts'
import { backtests } from '../../projections/backtests.ts'
import { directory } from '../../projections/directory.ts'
import { geofenceRows } from '../../projections/geofences.ts'
import { trips } from '../../projections/trips.ts'

const DAY_MS = 86_400_000

export interface Resources {
  hub: Resource
  team: Resource
  vehicle: Resource
  geofenceGroup: Resource
}

/** The plain resources, with the references that keep a record from being deleted. */
export const declareResources = (): Resources => ({
  hub: hubResource([
    { table: 'users', field: 'hubId' },
    { table: 'teams', field: 'hubId' },
    { table: 'vehicles', field: 'hubId' },
    { table: 'trackers', field: 'hubId' },
    { table: 'ingestKeys', field: 'hubId' },
  ]),
  team,
  vehicle,
  geofenceGroup: geofenceGroups([{ table: 'automations', field: 'geofenceGroupId' }]),
})

/** Every read model that is kept in tables and fed by the whole log. */
export const listProjections = (
  { hub, team, vehicle, geofenceGroup }: Resources,
  days: { history: number; runs: number },
): Projection[] => [
  directory([
    ...identityRows,
    hub.rows,
    team.rows,
    vehicle.rows,
    trackerRows,
    ingestKeyRows,
    geofenceGroup.rows,
    geofenceRows,
  ]),
  access,
  automations,
  automationRuns(days.runs),
  backtests,
  trips(days.history * DAY_MS),
]
