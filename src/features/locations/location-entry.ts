import { decodeJson, type RecordedEvent } from '../../kernel/event.ts'
import {
  FENCES_CHANGED,
  POINTS_RECORDED,
  SNAPSHOT_ASKED,
  TRACKER_DELETED,
  type FencesChanged,
  type LocationEntry,
  type TrackerDeleted,
} from './events.ts'
import { decodePointBatch } from './point-batch-codec.ts'

type Content = {
  [Kind in LocationEntry['kind']]: Omit<Extract<LocationEntry, { kind: Kind }>, 'partition' | 'revision' | 'position'>
}[LocationEntry['kind']]

/** How to read every type and version ever written. A version that is no longer written is turned into today's shape here. */
const READERS: { [type: string]: ((event: RecordedEvent) => Content) | undefined } = {
  [POINTS_RECORDED]: ({ data }) => ({ kind: 'points', batch: decodePointBatch(data) }),
  [FENCES_CHANGED]: ({ data }) => ({ kind: 'fencesChanged', change: decodeJson<FencesChanged>(data) }),
  [SNAPSHOT_ASKED]: ({ loggedAt }) => ({ kind: 'snapshotAsked', askedAt: loggedAt }),
  [TRACKER_DELETED]: ({ data }) => ({ kind: 'trackerDeleted', deletion: decodeJson<TrackerDeleted>(data) }),
}

/** Decodes one event of `locations-<partition>`. @throws Error for corrupted bytes and for a type that this version does not know. */
export const locationEntry = (event: RecordedEvent, partition: number): LocationEntry => {
  const read = READERS[event.type]
  if (read === undefined) throw new Error(`${event.stream}@${event.revision} has the unknown type ${event.type}`)
  return { partition, revision: event.revision, position: event.position, ...read(event) } as LocationEntry
}
