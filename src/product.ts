import type { Feature } from './feature.ts'
import { addons } from './features/addons/feature.ts'
import { audit } from './features/audit/feature.ts'
import { automations } from './features/automations/feature.ts'
import { backtests } from './features/backtests/feature.ts'
import { data } from './features/data/feature.ts'
import { devices } from './features/devices/feature.ts'
import { exporting } from './features/exports/feature.ts'
import { files } from './features/files/feature.ts'
import { flows } from './features/flows/feature.ts'
import { geofences } from './features/geofences/feature.ts'
import { hubs } from './features/hubs/feature.ts'
import { identity } from './features/identity/feature.ts'
import { imports } from './features/imports/feature.ts'
import { integrations } from './features/integrations/feature.ts'
import { locations } from './features/locations/feature.ts'
import { notifications } from './features/notifications/feature.ts'
import { plugins } from './features/plugins/feature.ts'
import { reports } from './features/reports/feature.ts'
import { serviceAccounts } from './features/service-accounts/feature.ts'
import { shares } from './features/shares/feature.ts'
import { routing } from './features/routing/feature.ts'
import { tasks } from './features/tasks/feature.ts'
import { teams } from './features/teams/feature.ts'
import { tiles } from './features/tiles/feature.ts'
import { trackers } from './features/trackers/feature.ts'
import { transitions } from './features/transitions/feature.ts'
import { trips } from './features/trips/feature.ts'
import { vehicles } from './features/vehicles/feature.ts'

/** The features of the product, in the order in which its documents show them. */
export const FEATURES: readonly Feature[] = [
  identity,
  serviceAccounts,
  integrations,
  addons,
  hubs,
  teams,
  vehicles,
  plugins,
  data,
  flows,
  tasks,
  routing,
  files,
  imports,
  exporting,
  trackers,
  devices,
  shares,
  geofences,
  backtests,
  notifications,
  locations,
  transitions,
  trips,
  reports,
  automations,
  audit,
  tiles,
]
