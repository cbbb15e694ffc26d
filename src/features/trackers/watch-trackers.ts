import { breathe } from '../../kernel/breath.ts'
import { decodeJson, type RecordedEvent } from '../../kernel/event.ts'
import { idOfStream } from '../../kit/commands/declared-event.ts'
import { eachOnce, Follower } from '../../kit/consumers/follower.ts'
import { DIRECTORY } from '../../kit/consumers/projection.ts'
import type { Services } from '../../kit/services.ts'
import type { DeviceAuthenticator } from './device-authenticator.ts'
import {
  INGEST_KEY,
  INGEST_KEY_STREAMS,
  TRACKER,
  TRACKER_STREAMS,
  type IngestKeyData,
  type TrackerData,
} from './events.ts'
import type { KnownTrackers } from './known-trackers.ts'

/** A credential has changed or ended: sockets that it opened are checked again. */
export interface DeviceAccessChange {
  organizationId: string
  trackerId?: string
  keyId?: string
}

/** Caches of trackers and keys in a process, as far as it has them. */
export interface WatchedTrackers {
  known?: KnownTrackers
  devices?: DeviceAuthenticator
  onAccessChanged?: (change: DeviceAccessChange) => void
}

/**
 * Keeps a process's caches of trackers and keys current, whoever changed them: follows each change in the log, so that
 * a deleted tracker is refused before any table has the deletion, also one deleted before this process started. Resolves
 * once it listens. `name` is the consumer's.
 */
export const watchTrackers = async (
  services: Pick<Services, 'log' | 'tables' | 'clock' | 'logger'>,
  name: string,
  watched: WatchedTrackers,
): Promise<Follower> =>
  new Follower(services, {
    name,
    source: { prefixes: [TRACKER_STREAMS, INGEST_KEY_STREAMS] },
    handle: eachOnce(async (event) => {
      await breathe()
      note(event, watched)
    }),
  }).startBehindRows(services.tables, DIRECTORY)

const note = (event: RecordedEvent, watched: WatchedTrackers): void => {
  const id = idOfStream(event.stream)
  if (event.stream.startsWith(TRACKER_STREAMS)) noteTracker(id, event, decodeJson<TrackerData>(event.data), watched)
  else noteIngestKey(id, event, decodeJson<IngestKeyData>(event.data), watched)
}

const noteTracker = (
  trackerId: string,
  { type, revision, position }: RecordedEvent,
  { organizationId, values }: TrackerData,
  { known, devices, onAccessChanged }: WatchedTrackers,
): void => {
  if (type === TRACKER.deleted) {
    known?.noteDeleted(organizationId, trackerId, { revision, position })
    devices?.note('tracker', trackerId, null, position)
    onAccessChanged?.({ organizationId, trackerId })
    return
  }
  known?.noteWritten(trackerId, values)
  if (values.keyHash !== undefined)
    devices?.note('tracker', trackerId, { kind: 'tracker', organizationId, keyHash: values.keyHash }, position)
  if (type === TRACKER.changed) onAccessChanged?.({ organizationId, trackerId })
}

const noteIngestKey = (
  keyId: string,
  { type, position }: RecordedEvent,
  { organizationId, values }: IngestKeyData,
  { devices, onAccessChanged }: WatchedTrackers,
): void => {
  const { keyHash, autoCreate, hubId } = values
  devices?.note(
    'ingestKey',
    keyId,
    type === INGEST_KEY.deleted ? null : { kind: 'ingestKey', organizationId, keyHash, autoCreate, hubId },
    position,
  )
  if (type !== INGEST_KEY.created) onAccessChanged?.({ organizationId, keyId })
}
