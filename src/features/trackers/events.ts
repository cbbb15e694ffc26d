import { eventTypes, type ResourceData } from '../../kit/commands/declared-event.ts'

/** Streams `tracker-<id>`: created, changed (a new device key too) and deleted; made anew it goes on in the same stream. */
export const TRACKER = eventTypes('tracker')
export const TRACKER_STREAMS = 'tracker-'
/** Streams `ingestKey-<id>`. */
export const INGEST_KEY = eventTypes('ingestKey')
export const INGEST_KEY_STREAMS = 'ingestKey-'

/** What the data of every event of a tracker says; `keyHash` never leaves the service. */
export interface TrackerValues {
  name: string
  kind: 'phone' | 'vehicle' | 'device'
  userId?: string
  vehicleId?: string
  externalId?: string
  hubId?: string
  teamId?: string
  keyHash?: string
  /** A phone that is called as its user is, until somebody names it. */
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
