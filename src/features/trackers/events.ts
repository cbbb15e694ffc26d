import { eventTypes, type ResourceData } from '../../kit/commands/declared-event.ts'

/** Streams `tracker-<id>`: created, changed (also by a new device key), deleted; recreation continues the stream. */
export const TRACKER = eventTypes('tracker')
export const TRACKER_STREAMS = 'tracker-'
/** Streams `ingestKey-<id>`. */
export const INGEST_KEY = eventTypes('ingestKey')
export const INGEST_KEY_STREAMS = 'ingestKey-'

/** Values in every event of a tracker; `keyHash` never leaves the service. */
export interface TrackerValues {
  name: string
  kind: 'phone' | 'vehicle' | 'device'
  userId?: string
  vehicleId?: string
  externalId?: string
  hubId?: string
  teamId?: string
  keyHash?: string
  /** A phone with its user's name, until somebody renames it. */
  isNamedAfterUser?: boolean
}

export interface IngestKeyValues {
  name: string
  autoCreate: boolean
  hubId?: string
  keyHash: string
}

export type TrackerData = Omit<ResourceData, 'values'> & { values: TrackerValues }
export type IngestKeyData = Omit<ResourceData, 'values'> & { values: IngestKeyValues }
