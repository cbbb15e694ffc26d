import { eventsBackwards, WrongRevision } from '../../engines/event-log.ts'
import {
  ANNOUNCE_DELETIONS,
  deletedTrackersStream,
  DELETION_PLACED,
  locationStream,
  partitionOf,
  TRACKER_DELETED,
  type DeletionPlaced,
  type TrackerDeleted,
} from '../../features/locations/events.ts'
import { TRACKER, TRACKER_STREAMS, type TrackerData } from '../../features/trackers/events.ts'
import { decodeJson, encodeJson, type NewEvent, type RecordedEvent } from '../../kernel/event.ts'
import { idOfStream } from '../../kit/commands/declared-event.ts'
import { idFrom } from '../../kit/commands/ids.ts'
import { Follower, type FollowerServices } from '../../kit/consumers/follower.ts'
import type { Services } from '../../kit/services.ts'

type AnnouncerServices = FollowerServices & Pick<Services, 'log' | 'tables' | 'partitions'>
type Log = AnnouncerServices['log']

/**
 * Announces in a tracker's partition that it was deleted: follows the streams of trackers from its checkpoint, so that
 * a crash between both appends loses nothing. Announces it once, even if others do too: a second time would forget a
 * tracker that was made again meanwhile. The place of the announcement is kept in a stream of its own, since the
 * location stream is truncated and the history knows nothing of deletions. `epoch` is that of the log.
 */
export const announceDeletions = (services: AnnouncerServices, epoch: number): Follower =>
  new Follower(services, {
    name: ANNOUNCE_DELETIONS,
    source: { prefixes: [TRACKER_STREAMS] },
    handle: async ({ events }, signal) => {
      const deletions = events.filter(({ type }) => type === TRACKER.deleted)
      for (const event of deletions) if (!signal.aborted) await announce(services, event, epoch)
      return deletions.length > 0 ? [] : undefined
    },
  }).start(services.tables)

const announce = async ({ log, partitions }: AnnouncerServices, event: RecordedEvent, epoch: number): Promise<void> => {
  const announcement = announcementOf(event)
  const partition = partitionOf(idOfStream(event.stream), partitions)
  const places = deletedTrackersStream(partition)
  const isSince = ({ position }: RecordedEvent): boolean => position > event.position
  const isPlaced = async (): Promise<boolean> =>
    (await findBackwards(log, places, 'end', placeIdOf(announcement), isSince)) !== undefined
  const revision = await appendOnce(log, locationStream(partition), announcement, event.position, isPlaced)
  if (revision !== undefined) await log.append(places, [placeOf(announcement, epoch, revision)], 'any')
}

/**
 * Appends the event unless it stands in the stream after that position of the log, and answers its revision; undefined
 * where it stood there and is truncated. It expects the revision up to which it looked, so that nobody can append the
 * same event in between.
 */
const appendOnce = async (
  log: Log,
  stream: string,
  event: NewEvent,
  after: number,
  isPlaced: () => Promise<boolean>,
): Promise<number | undefined> => {
  for (let lookedThrough = -1; ; ) {
    const head = await log.head(stream)
    const isUnseen = ({ revision, position }: RecordedEvent): boolean => revision > lookedThrough && position > after
    const found = await findBackwards(log, stream, head, event.id, isUnseen)
    if (found !== undefined) return found
    if (await isPlaced()) return undefined
    try {
      return (await log.append(stream, [event], head < 0 ? 'none' : head)).revision
    } catch (error) {
      if (!(error instanceof WrongRevision)) throw error
      lookedThrough = head // points were appended meanwhile
    }
  }
}

/** Revision of the event with that id, searched from `head` down through wanted events. */
const findBackwards = async (
  log: Log,
  stream: string,
  head: number | 'end',
  id: string,
  isWanted: (event: RecordedEvent) => boolean,
): Promise<number | undefined> => {
  for await (const event of eventsBackwards(log, stream, head)) {
    if (!isWanted(event)) return undefined
    if (event.id === id) return event.revision
  }
  return undefined
}

const announcementOf = (event: RecordedEvent): NewEvent => {
  const trackerId = idOfStream(event.stream)
  const { organizationId, at } = decodeJson<TrackerData>(event.data)
  const deletion: TrackerDeleted = { organizationId, trackerId, at: Date.parse(at) }
  return {
    id: idFrom(ANNOUNCE_DELETIONS, trackerId, event.revision),
    type: TRACKER_DELETED,
    data: encodeJson(deletion),
    isJson: true,
    metadata: { organizationId, actor: `reactor:${ANNOUNCE_DELETIONS}`, $causationId: event.id },
  }
}

const placeIdOf = ({ id }: Pick<NewEvent, 'id'>): string => idFrom(DELETION_PLACED, id)

const placeOf = ({ id, data, metadata }: NewEvent, epoch: number, revision: number): NewEvent => {
  const { organizationId, trackerId } = decodeJson<TrackerDeleted>(data)
  const place: DeletionPlaced = { organizationId, trackerId, epoch, revision }
  return {
    id: placeIdOf({ id }),
    type: DELETION_PLACED,
    data: encodeJson(place),
    isJson: true,
    metadata: { ...metadata, $causationId: id },
  }
}
