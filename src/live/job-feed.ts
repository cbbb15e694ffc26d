import type { EventLog } from '../engines/event-log.ts'
import { BACKTEST_DELETED, BACKTEST_STREAMS, type BacktestDeleted } from '../features/backtests/events.ts'
import {
  type BacktestRow,
  backtestShown,
  cancelledRow,
  evolveBacktest,
  seesBacktest,
} from '../features/backtests/views.ts'
import { decodeJson, type RecordedEvent } from '../kernel/event.ts'
import { idOfStream } from '../kit/commands/declared-event.ts'
import { foldStream } from '../kit/commands/fold-stream.ts'
import type { Follower } from '../kit/consumers/follower.ts'
import { partOf } from './cursor.ts'
import type { LiveHub } from './hub.ts'
import type { LiveEvent } from './live-event.ts'
import { followLive, organizationOf, reachOf, replayFeed, type ReplayQuestion } from './log-feed.ts'
import type { HubOptions } from './options.ts'

/** Tells those who look at an organization how its jobs go, as the log has it. */
export const jobFeed = (hub: LiveHub): Promise<Follower> => {
  const { log, partitions } = hub.options
  const index = partOf('job', partitions)
  const tell = async (event: RecordedEvent): Promise<void> => {
    const organizationId = organizationOf(event)
    const told = hub.isWatched(organizationId) ? await jobEvent(log, event, index) : undefined
    hub.seen(index, reachOf(event.position))
    if (told !== undefined) hub.tell(organizationId, told)
  }
  return followLive(hub, { name: 'live-jobs', index, prefixes: [BACKTEST_STREAMS], tell })
}

/** The organization's events of jobs from one reach to another, from the log. */
export const replayJobs = (
  { log, partitions }: Pick<HubOptions, 'log' | 'partitions'>,
  question: Omit<ReplayQuestion, 'prefixes' | 'told'>,
): AsyncGenerator<LiveEvent | undefined> => {
  const index = partOf('job', partitions)
  return replayFeed(log, { ...question, prefixes: [BACKTEST_STREAMS], told: (event) => jobEvent(log, event, index) })
}

/** The job after the event, as its GET answers it then; undefined for the end of one that had ended before. */
const jobEvent = async (log: EventLog, event: RecordedEvent, partition: number): Promise<LiveEvent | undefined> => {
  const row =
    event.type === BACKTEST_DELETED ? cancelledRow(decodeJson<BacktestDeleted>(event.data)) : await jobAt(log, event)
  if (row === undefined) return undefined
  return {
    channel: 'job',
    isFor: ({ caller }) => seesBacktest(caller, row.userId),
    partition,
    reach: reachOf(event.position),
    text: () => JSON.stringify(backtestShown(row)),
  }
}

const jobAt = (log: EventLog, { stream, revision }: RecordedEvent): Promise<BacktestRow | undefined> =>
  foldStream<BacktestRow | undefined>(log, stream, revision, undefined, (row, fact) =>
    evolveBacktest(idOfStream(stream), row, fact),
  )
