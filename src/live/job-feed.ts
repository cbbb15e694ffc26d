import type { EventLog } from '../engines/event-log.ts'
import { decodeJson, type RecordedEvent } from '../kernel/event.ts'
import { idOfStream } from '../kit/commands/declared-event.ts'
import { foldStream } from '../kit/commands/fold-stream.ts'
import { evolveJob, type JobRow, type JobView } from '../kit/jobs/job.ts'
import { cancelledRow, type JobDeleted } from '../kit/jobs/life.ts'
import { partOf } from './cursor.ts'
import type { LiveFeed } from './feed.ts'
import type { LiveEvent } from './live-event.ts'
import { followLive, organizationOf, reachOf, replayFeed } from './log-feed.ts'

/** Sends viewers of an organization the progress of its jobs, from the log. */
export const jobFeed = (views: readonly JobView[]): LiveFeed => {
  const prefixes = views.map(({ kind }) => kind.prefix)
  return {
    channel: 'job',
    follow: (hub) => {
      const { log, partitions } = hub.options
      const index = partOf('job', partitions)
      const tell = async (event: RecordedEvent): Promise<void> => {
        const organizationId = organizationOf(event)
        const told = hub.isWatched(organizationId) ? await jobEvent(log, views, event, index) : undefined
        hub.seen(index, reachOf(event.position))
        if (told !== undefined) hub.tell(organizationId, told)
      }
      return followLive(hub, { name: 'live-jobs', index, prefixes, tell })
    },
    replay: ({ log, partitions }, question) => {
      const index = partOf('job', partitions)
      return replayFeed(log, { ...question, prefixes, told: (event) => jobEvent(log, views, event, index) })
    },
  }
}

/** The job after the event, as its GET answers it; undefined for the end of a job that had ended before. */
const jobEvent = async (
  log: EventLog,
  views: readonly JobView[],
  event: RecordedEvent,
  partition: number,
): Promise<LiveEvent | undefined> => {
  const view = views.find(({ kind }) => event.stream.startsWith(kind.prefix)) as JobView
  const row =
    event.type === view.kind.types.deleted
      ? cancelledRow(decodeJson<JobDeleted>(event.data))
      : await jobAt(log, view, event)
  if (row === undefined) return undefined
  return {
    channel: 'job',
    isFor: ({ caller }) => view.sees(caller, row),
    ...(view.isOfGeofences && { isOfGeofences: true }),
    partition,
    reach: reachOf(event.position),
    text: ({ caller }) => JSON.stringify(view.shown(row, caller)),
  }
}

const jobAt = (log: EventLog, { kind }: JobView, { stream, revision }: RecordedEvent): Promise<JobRow | undefined> =>
  foldStream<JobRow | undefined>(log, stream, revision, undefined, (row, fact) =>
    evolveJob(kind, idOfStream(stream), row, fact),
  )
