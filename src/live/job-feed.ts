import type { EventLog } from '../engines/event-log.ts'
import { BACKTEST_DELETED, BACKTEST_STREAMS, type BacktestDeleted } from '../features/backtests/events.ts'
import { backtestShown, cancelledRow, evolveBacktest, type BacktestRow } from '../features/backtests/views.ts'
import { decodeJson, type RecordedEvent } from '../kernel/event.ts'
import { idOfStream } from '../kit/commands/declared-event.ts'
import { foldStream } from '../kit/commands/fold-stream.ts'
import type { Follower } from '../kit/consumers/follower.ts'
import type { Reach } from './cursor.ts'
import type { LiveEvent } from './event-ring.ts'
import type { LiveHub } from './hub.ts'
import { followLive, reachOf } from './log-feed.ts'

/** Events of all organizations that one resume may read before it gives up. */
const REPLAY_EVENTS_MAX = 100_000
const REPLAY_PAGE_EVENTS = 64

/** Tells those who look at an organization how its jobs go, as the log has it. Jobs have one part of cursors, behind the partitions. */
export const jobFeed = (hub: LiveHub): Promise<Follower> => {
  const { log, partitions: index } = hub.options
  const tell = async (event: RecordedEvent): Promise<void> => {
    const { organizationId } = decodeJson<{ organizationId: string }>(event.data)
    const told = hub.isWatched(organizationId) ? await jobEvent(log, event, index) : undefined
    hub.seen(index, reachOf(event.position))
    if (told !== undefined) hub.tell(organizationId, told)
  }
  return followLive(hub, { name: 'live-jobs', index, prefixes: [BACKTEST_STREAMS], tell })
}

/** The organization's events of jobs from one reach to another, from the log; undefined, as the last one, where so much happened that a snapshot is the better answer. */
export async function* replayJobs(
  log: EventLog,
  organizationId: string,
  from: Reach,
  to: Reach,
  partition: number,
  signal: AbortSignal,
): AsyncGenerator<LiveEvent | undefined> {
  if (to.revision <= from.revision) return
  let read = 0
  for await (const { events, checkpoint } of log.follow(
    { prefixes: [BACKTEST_STREAMS] },
    from.revision,
    signal,
    REPLAY_PAGE_EVENTS,
  )) {
    for (const event of events) {
      if (
        event.position > to.revision ||
        decodeJson<{ organizationId: string }>(event.data).organizationId !== organizationId
      )
        continue
      const told = await jobEvent(log, event, partition)
      if (told !== undefined) yield told
    }
    read += events.length
    if (checkpoint >= to.revision) return
    if (read > REPLAY_EVENTS_MAX) return yield undefined
  }
}

/** The job after the event, as its GET answers it then; undefined for the end of one that had ended before. */
const jobEvent = async (log: EventLog, event: RecordedEvent, partition: number): Promise<LiveEvent | undefined> => {
  const row =
    event.type === BACKTEST_DELETED ? cancelledRow(decodeJson<BacktestDeleted>(event.data)) : await jobAt(log, event)
  if (row === undefined) return undefined
  return {
    channel: 'job',
    userId: row.userId,
    partition,
    reach: reachOf(event.position),
    text: () => JSON.stringify(backtestShown(row)),
  }
}

const jobAt = (log: EventLog, { stream, revision }: RecordedEvent): Promise<BacktestRow | undefined> =>
  foldStream<BacktestRow | undefined>(log, stream, revision, undefined, (row, fact) =>
    evolveBacktest(idOfStream(stream), row, fact),
  )
