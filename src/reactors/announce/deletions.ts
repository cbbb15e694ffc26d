import {
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
import { OwnedCheckpoint } from '../../kit/consumers/checkpoint.ts'
import { ReachedPosition } from '../../kit/consumers/reached-position.ts'
import type { Services } from '../../kit/services.ts'
import { untilDone } from '../../kit/consumers/until-done.ts'

export const ANNOUNCE_DELETIONS = 'announce-deletions'
const RETRY_MS = [100, 500, 2_000, 5_000]
const PAGE_EVENTS = 64
/** Clocks of nodes may differ by this much. */
const SLACK_MS = 60_000

/**
 * Says in a tracker's partition that it was deleted: follows the streams of trackers from its checkpoint, so that a
 * crash between both appends loses nothing. What may have been announced right before a crash is looked for first: a
 * second announcement would forget a tracker that was made anew meanwhile. Where the announcement stands is kept in a
 * stream of its own, since the location stream is truncated and the history knows nothing of deletions.
 */
export class DeletionAnnouncer {
  private readonly services: Pick<Services, 'log' | 'tables' | 'clock' | 'partitions'>
  private readonly epoch: number
  private readonly onFailure: (error: unknown) => void
  private readonly abort = new AbortController()
  private running: Promise<void> | undefined
  private readonly through: ReachedPosition
  private checkpoint: OwnedCheckpoint | undefined

  /** `epoch` is that of the log. */
  constructor(
    services: Pick<Services, 'log' | 'tables' | 'clock' | 'partitions'>,
    epoch: number,
    onFailure: (error: unknown) => void,
  ) {
    this.services = services
    this.epoch = epoch
    this.onFailure = onFailure
    this.through = new ReachedPosition(services.clock)
  }

  async start(): Promise<void> {
    this.checkpoint = await OwnedCheckpoint.take(this.services.tables, ANNOUNCE_DELETIONS)
    this.through.moveTo(this.checkpoint.at?.all ?? -1)
    this.running = this.untilDone(() => this.follow())
  }

  /** Whether every deletion up to that position of the log is said in its partition; false when it is not after `timeoutMs`. */
  waitAnnounced(position: number, timeoutMs: number): Promise<boolean> {
    return this.through.wait(position, timeoutMs)
  }

  async close(): Promise<void> {
    this.abort.abort()
    await this.running
  }

  private async follow(): Promise<void> {
    const { log } = this.services
    const from = this.through.at < 0 ? undefined : this.through.at
    // Whether this process knows by itself what was announced since the checkpoint.
    let isFirst = true
    for await (const batch of log.follow({ prefixes: [TRACKER_STREAMS] }, from, this.abort.signal)) {
      const deletions = batch.events.filter(({ type }) => type === TRACKER.deleted)
      for (const event of deletions) await this.untilDone(() => this.announce(event, isFirst))
      if (this.abort.signal.aborted) return
      this.through.moveTo(batch.checkpoint)
      if (deletions.length > 0 && !(await this.store(batch.checkpoint))) return
      if (deletions.length > 0 || batch.caughtUp) isFirst = false
    }
  }

  private async announce(event: RecordedEvent, mayBeThere: boolean): Promise<void> {
    const { log, partitions } = this.services
    const announcement = announcementOf(event)
    const partition = partitionOf(idOfStream(event.stream), partitions)
    const stream = locationStream(partition)
    const found = mayBeThere ? await this.find(stream, announcement.id, event.loggedAt) : undefined
    const revision = found ?? (await log.append(stream, [announcement], 'any')).revision
    await log.append(deletedTrackersStream(partition), [placeOf(announcement, this.epoch, revision)], 'any')
  }

  /** Revision of the event with that id. */
  private async find(stream: string, id: string, since: number): Promise<number | undefined> {
    let from: number | 'end' = 'end'
    for (;;) {
      const events: RecordedEvent[] = await this.services.log.read(stream, from, PAGE_EVENTS, 'backwards')
      const found = events.find((event) => event.id === id)
      if (found !== undefined) return found.revision
      const last = events.at(-1)
      if (events.length < PAGE_EVENTS || last === undefined || last.loggedAt < since - SLACK_MS || last.revision === 0)
        return undefined
      from = last.revision - 1
    }
  }

  /** False when another process has taken over. */
  private async store(all: number): Promise<boolean> {
    let isOurs = true
    await this.untilDone(async () => void (isOurs = (await this.checkpoint?.move({ all })) !== false))
    return isOurs
  }

  private untilDone(run: () => Promise<void>): Promise<void> {
    return untilDone(run, {
      clock: this.services.clock,
      signal: this.abort.signal,
      retryMs: RETRY_MS,
      onFailure: this.onFailure,
    })
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

const placeOf = ({ id, data, metadata }: NewEvent, epoch: number, revision: number): NewEvent => {
  const { organizationId, trackerId } = decodeJson<TrackerDeleted>(data)
  const place: DeletionPlaced = { organizationId, trackerId, epoch, revision }
  return {
    id: idFrom(DELETION_PLACED, id),
    type: DELETION_PLACED,
    data: encodeJson(place),
    isJson: true,
    metadata: { ...metadata, $causationId: id },
  }
}
