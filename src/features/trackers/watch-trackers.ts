import type { EventLog } from '../../engines/event-log.ts'
import { breathe } from '../../kernel/breath.ts'
import { decodeJson, type RecordedEvent } from '../../kernel/event.ts'
import { idOfStream } from '../../kit/commands/declared-event.ts'
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
import type { TrackerQuota } from './tracker-quota.ts'

/** A credential has changed or ended: sockets that it opened are looked up anew. */
export interface DeviceAccessChange {
  organizationId: string
  trackerId?: string
  keyId?: string
}

export interface WatchTrackersOptions {
  log: EventLog
  known: KnownTrackers
  devices: DeviceAuthenticator
  quota: TrackerQuota
  onAccessChanged: (change: DeviceAccessChange) => void
}

/**
 * Keeps what this node remembers of trackers and keys right, whichever node changed them: hears of each change from the
 * log itself, so that a deleted tracker is refused before any table knows. Resolves once it listens; ends by the signal.
 */
export const watchTrackers = async (
  options: WatchTrackersOptions,
  signal: AbortSignal,
): Promise<{ ended: Promise<void> }> => {
  const from = await options.log.headPosition()
  const listen = async () => {
    const source = { prefixes: [TRACKER_STREAMS, INGEST_KEY_STREAMS] }
    for await (const { events } of options.log.follow(source, from, signal)) {
      for (const event of events) {
        await breathe()
        await note(event, options)
      }
    }
  }
  return { ended: listen() }
}

const note = async (event: RecordedEvent, options: WatchTrackersOptions): Promise<void> => {
  const id = idOfStream(event.stream)
  if (event.stream.startsWith(TRACKER_STREAMS))
    await noteTracker(id, event.type, decodeJson<TrackerData>(event.data), options)
  else noteIngestKey(id, event.type, decodeJson<IngestKeyData>(event.data), options)
}

const noteTracker = async (
  trackerId: string,
  type: string,
  { organizationId, values }: TrackerData,
  options: WatchTrackersOptions,
): Promise<void> => {
  const { known, devices, quota } = options
  if (type === TRACKER.deleted) {
    known.noteDeleted(organizationId, trackerId)
    devices.note(trackerId, null)
    await quota.deleted(organizationId)
    options.onAccessChanged({ organizationId, trackerId })
    return
  }
  if (type === TRACKER.created) {
    known.noteCreated(trackerId)
    await quota.created(organizationId, trackerId)
  }
  if (values.keyHash !== undefined)
    devices.note(trackerId, { kind: 'tracker', organizationId, keyHash: values.keyHash })
  if (type === TRACKER.changed) options.onAccessChanged({ organizationId, trackerId })
}

const noteIngestKey = (
  keyId: string,
  type: string,
  { organizationId, values }: IngestKeyData,
  { devices, onAccessChanged }: WatchTrackersOptions,
): void => {
  const { keyHash, autoCreate, hubId } = values
  devices.note(
    keyId,
    type === INGEST_KEY.deleted ? null : { kind: 'ingestKey', organizationId, keyHash, autoCreate, hubId },
  )
  if (type !== INGEST_KEY.created) onAccessChanged({ organizationId, keyId })
}
