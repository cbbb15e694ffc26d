import { bytesOf } from './config-values.ts'

/** A limit on one kind of thing of an organization. */
interface Limit {
  /** Its name in the organization's `limits` and `uses`. */
  name: string
  flag: string
  default: string
  /** As in `10 trackers`. */
  thing: string
}

const limit = <Name extends string>(name: Name, flag: string, thing: string, most = '100000') => ({
  name,
  flag,
  default: most,
  thing,
  meaning: `most ${thing} that one organization may have`,
})

/** Limits of everything that takes memory or disk space for as long as it exists. */
export const LIMITS = [
  limit('trackers', 'trackers-max', 'trackers'),
  limit('geofences', 'geofences-max', 'geofences'),
  limit('geofencePositions', 'geofence-positions-max', 'positions in geofences', '2000000'),
  limit('geofenceGroups', 'geofence-groups-max', 'geofence groups'),
  limit('automations', 'automations-max', 'automations', '1000'),
  limit('tasks', 'tasks-max', 'tasks'),
  limit('shares', 'shares-max', 'shares', '10000'),
  limit('schedules', 'schedules-max', 'task schedules', '50000'),
  limit('routingResults', 'routing-results-max', 'routing results'),
  limit('flows', 'flows-max', 'flows'),
  limit('dataTypes', 'data-types-max', 'data types'),
  limit('records', 'records-max', 'records', '10000000'),
  limit('exportConfigs', 'export-configs-max', 'export configs'),
  limit('filesBytes', 'files-bytes-max', 'bytes in files', '100GiB'),
  limit('users', 'users-max', 'users'),
  limit('serviceAccounts', 'service-accounts-max', 'service accounts'),
  limit('roles', 'roles-max', 'roles'),
  limit('hubs', 'hubs-max', 'hubs'),
  limit('teams', 'teams-max', 'teams'),
  limit('vehicles', 'vehicles-max', 'vehicles'),
  limit('ingestKeys', 'ingest-keys-max', 'ingest keys'),
  limit('appIntegrations', 'app-integrations-max', 'app integrations'),
  limit('pluginSettings', 'plugin-settings-max', 'plugin settings'),
  limit('addons', 'addons-max', 'add-ons'),
] as const satisfies readonly (Limit & { meaning: string })[]

export type Limits = { readonly [name in (typeof LIMITS)[number]['name']]: number }

/** The largest number that a limit takes, and the largest size. */
const COUNT_MAX = 100_000_000
const GIB_MAX = 1_000_000

/** @throws ConfigError */
export const limitsOf = (read: {
  text(name: string): string
  integer(name: string, min: number, max: number): number
}): Limits =>
  Object.fromEntries(
    LIMITS.map(({ name, flag }) => [
      name,
      flag.endsWith('-bytes-max') ? bytesOf(flag, read.text(flag), GIB_MAX) : read.integer(flag, 1, COUNT_MAX),
    ]),
  ) as Limits
