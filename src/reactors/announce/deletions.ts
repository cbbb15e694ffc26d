import { WrongRevision } from '../../engines/event-log.ts'
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
import { grouped } from '../../kernel/grouped.ts'
import { idOfStream } from '../../kit/commands/declared-event.ts'
import { idFrom } from '../../kit/commands/ids.ts'
import { severalAtOnce } from '../../kit/commands/several-at-once.ts'
import { Follower, type FollowerServices } from '../../kit/consumers/follower.ts'
import type { Services } from '../../kit/services.ts'
import { IdsSince } from './ids-since.ts'

type AnnouncerServices = FollowerServices & Pick<Services, 'log' | 'tables' | 'partitions'>
type Log = AnnouncerServices['log']

const PARTITIONS_AT_ONCE = 16

/**
 * Announces in a tracker's partition that it was deleted: follows the streams of trackers from its checkpoint, so that
 * a crash between both appends loses nothing. Announces it once, even if others do too: a second time would forget a
 * tracker that was made again meanwhile. The place of the announcement is kept in a stream of its own, since the
 * location stream is truncated and the history knows nothing of deletions. `epoch` is that of the log.
 */
export const announceDeletions = (services: AnnouncerServices, epoch: number): Follower => {
  const announcers = new Map<number, PartitionAnnouncer>()
  const announcerOf = (partition: number): PartitionAnnouncer => {
    const announcer = announcers.get(partition) ?? new PartitionAnnouncer(services.log, partition, epoch)
    announcers.set(partition, announcer)
    return announcer
  }
  return new Follower(services, {
    name: ANNOUNCE_DELETIONS,
    source: { prefixes: [TRACKER_STREAMS] },
    handle: async ({ events }, signal) => {
      const deletions = events.filter(({ type }) => type === TRACKER.deleted)
      const byPartition = grouped(deletions, ({ stream }) => partitionOf(idOfStream(stream), services.partitions))
      await severalAtOnce(byPartition, PARTITIONS_AT_ONCE, async ([partition, own]) => {
        for (const event of own) if (!signal.aborted) await announcerOf(partition).announce(event)
      })
      return deletions.length > 0 ? [] : undefined
    },
  }).start(services.tables)
}

class PartitionAnnouncer {
  private readonly log: Log
  private readonly epoch: number
  private readonly locations: string
  private readonly places: string
  private readonly announced: IdsSince
  private readonly placed: IdsSince

  constructor(log: Log, partition: number, epoch: number) {
    this.log = log
    this.epoch = epoch
    this.locations = locationStream(partition)
    this.places = deletedTrackersStream(partition)
    this.announced = new IdsSince(log, this.locations, TRACKER_DELETED)
    this.placed = new IdsSince(log, this.places, DELETION_PLACED)
  }

  async announce(event: RecordedEvent): Promise<void> {
    const announcement = announcementOf(event)
    const revision = await this.appendOnce(announcement, event.position)
    if (revision !== undefined) await this.log.append(this.places, [placeOf(announcement, this.epoch, revision)], 'any')
  }

  /**
   * Appends the announcement unless it stands in the stream after that position of the log, and answers its revision;
   * undefined where it stood there and is truncated. It expects the revision up to which it looked, so that nobody can
   * append the same event in between.
   */
  private async appendOnce(announcement: NewEvent, after: number): Promise<number | undefined> {
    for (;;) {
      const head = await this.log.head(this.locations)
      const found = await this.announced.find(announcement.id, after, head)
      if (found !== undefined) return found
      const place = await this.placed.find(placeIdOf(announcement), after, await this.log.head(this.places))
      if (place !== undefined) return undefined
      try {
        return (await this.log.append(this.locations, [announcement], head < 0 ? 'none' : head)).revision
      } catch (error) {
        if (!(error instanceof WrongRevision)) throw error // points were appended meanwhile
      }
    }
  }
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
