import type { ShapeInput } from '../../geo/shape.ts'
import type { JsonObject } from '../../kernel/json.ts'

/** Events of the streams `geofence-<id>`. Groups are a plain resource: `geofenceGroup-<id>`. */
export const GEOFENCE_CREATED = 'geofenceCreated.v1'
export const GEOFENCE_CHANGED = 'geofenceChanged.v1'
export const GEOFENCE_DELETED = 'geofenceDeleted.v1'

export const GROUP_NOUN = 'geofenceGroup'
export const GROUP_CREATED = `${GROUP_NOUN}Created`
export const GROUP_CHANGED = `${GROUP_NOUN}Changed`
export const GROUP_DELETED = `${GROUP_NOUN}Deleted`

export interface GeofenceValues {
  name: string
  geofenceGroupId: string
  isActive: boolean
  /** Stored form: every position at 1e-7 degree. */
  shape: ShapeInput
  attributes?: JsonObject
}

export interface GeofenceCreated extends GeofenceValues {
  organizationId: string
  /** Time of the request, ms since the epoch. */
  at: number
}

/** Only changed values, so that a rename does not repeat a large geometry. */
export interface GeofenceChanged {
  organizationId: string
  changes: Partial<Omit<GeofenceValues, 'attributes'>> & { attributes?: JsonObject | null }
  at: number
}

export interface GeofenceDeleted {
  organizationId: string
  at: number
}

/** Rules of a group: the values that decide; a back-test may replace them. */
export interface GroupRules {
  /** Metres: a fix with a worse stated accuracy decides nothing. */
  maxAccuracy?: number
  debounce?: { fixes?: number; seconds?: number }
}

export const geofenceStream = (geofenceId: string): string => `geofence-${geofenceId}`
export const groupStream = (geofenceGroupId: string): string => `${GROUP_NOUN}-${geofenceGroupId}`
export const GEOFENCE_PREFIX = 'geofence-'
export const GROUP_PREFIX = `${GROUP_NOUN}-`
