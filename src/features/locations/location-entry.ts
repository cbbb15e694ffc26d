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

/** Readers of every type and version ever written. Old versions are converted into the present form here. */
const READERS: { [type: string]: ((event: RecordedEvent) => Content) | undefined } = {
  [POINTS_RECORDED]: ({ data }) => ({ kind: 'points', batch: decodePointBatch(data) }),
  [FENCES_CHANGED]: ({ data }) => ({ kind: 'fencesChanged', change: decodeJson<FencesChanged>(data) }),
  [SNAPSHOT_ASKED]: ({ loggedAt }) => ({ kind: 'snapshotAsked', askedAt: loggedAt }),
  [TRACKER_DELETED]: ({ data }) => ({ kind: 'trackerDeleted', deletion: decodeJson<TrackerDeleted>(data) }),
}

/** Decodes an event of `locations-<partition>`. @throws Error for corrupted bytes or a type unknown to this version. */
export const locationEntry = (event: RecordedEvent, partition: number): LocationEntry => {
  const read = READERS[event.type]
  if (read === undefined) throw new Error(`${event.stream}@${event.revision} has the unknown type ${event.type}`)
  return { partition, revision: event.revision, position: event.position, ...read(event) } as LocationEntry
}
