import type { EventLog } from '../engines/event-log.ts'
import { BACKTEST_DELETED, BACKTEST_STREAMS, type BacktestDeleted } from '../features/backtests/events.ts'
import { backtestShown, cancelledRow, evolveBacktest, type BacktestRow } from '../features/backtests/views.ts'
import { decodeJson, factOf, type RecordedEvent } from '../kernel/event.ts'
import { idOfStream } from '../kit/declared-event.ts'
import { pause } from '../kit/pause.ts'
import { ALL_SEEN, type Place } from './cursor.ts'
import type { LiveEvent } from './event-ring.ts'
import type { LiveHub } from './hub.ts'

const RETRY_MS = 1_000
const PAGE_EVENTS = 500
/** Events of all organizations that one resume may read before it gives up. */
const REPLAY_EVENTS_MAX = 100_000
const REPLAY_PAGE_EVENTS = 64

/** Tells those who look at an organization how its jobs go, as the log has it. Jobs have one place in cursors, behind the partitions. */
export class JobFeed {
  private readonly hub: LiveHub
  private readonly abort = new AbortController()
  private following: Promise<void> | undefined

  constructor(hub: LiveHub) {
    this.hub = hub
  }

  /** From here on; what was before is there by `since`. */
  async start(): Promise<void> {
    const head = await this.hub.options.log.headPosition()
    this.hub.seen(this.hub.options.partitions, placeOf(head))
    this.following = this.follow(head)
  }

  async close(): Promise<void> {
    this.abort.abort()
    await this.following
  }

  private async follow(from: number): Promise<void> {
    const { log, logger, clock } = this.hub.options
    let at = from
    while (!this.abort.signal.aborted) {
      try {
        for await (const { events } of log.follow({ prefixes: [BACKTEST_STREAMS] }, at, this.abort.signal)) {
          for (const event of events) {
            await this.tell(event)
            at = event.position
          }
        }
      } catch (error) {
        logger.error('jobs are not told live', { error: String(error) })
        await pause(clock, RETRY_MS, this.abort.signal)
      }
    }
  }

  private async tell(event: RecordedEvent): Promise<void> {
    const { options } = this.hub
    const { organizationId } = decodeJson<{ organizationId: string }>(event.data)
    const told = this.hub.isWatched(organizationId) ? await jobEvent(options.log, event, options.partitions) : undefined
    this.hub.seen(options.partitions, placeOf(event.position))
    if (told !== undefined) this.hub.tell(organizationId, told)
  }
}

/** The organization's events of jobs between two places, from the log; undefined, as the last one, where so much happened that a snapshot is the better answer. */
export async function* replayJobs(log: EventLog, organizationId: string, from: Place, to: Place, partition: number): AsyncGenerator<LiveEvent | undefined> {
  if (to.revision <= from.revision) return
  const end = new AbortController()
  let read = 0
  try {
    for await (const { events, checkpoint } of log.follow({ prefixes: [BACKTEST_STREAMS] }, from.revision, end.signal, REPLAY_PAGE_EVENTS)) {
      for (const event of events) {
        if (event.position > to.revision || decodeJson<{ organizationId: string }>(event.data).organizationId !== organizationId) continue
        const told = await jobEvent(log, event, partition)
        if (told !== undefined) yield told
      }
      read += events.length
      if (checkpoint >= to.revision) return
      if (read > REPLAY_EVENTS_MAX) return yield undefined
    }
  } finally {
    end.abort()
  }
}

/** The job after the event, as its GET answers it then; undefined for the end of one that had ended before. */
const jobEvent = async (log: EventLog, event: RecordedEvent, partition: number): Promise<LiveEvent | undefined> => {
  const row = event.type === BACKTEST_DELETED ? cancelledRow(decodeJson<BacktestDeleted>(event.data)) : await rowAt(log, event)
  if (row === undefined) return undefined
  return { channel: 'job', userId: row.userId, partition, place: placeOf(event.position), text: () => JSON.stringify(backtestShown(row)) }
}

const rowAt = async (log: EventLog, { stream, revision }: RecordedEvent): Promise<BacktestRow | undefined> => {
  const id = idOfStream(stream)
  let row: BacktestRow | undefined
  for (let from = 0; from <= revision; ) {
    const events = await log.read(stream, from, Math.min(PAGE_EVENTS, revision + 1 - from))
    if (events.length === 0) break
    for (const event of events) if (event.revision <= revision) row = evolveBacktest(id, row, factOf(event))
    from = events[events.length - 1].revision + 1
  }
  return row
}

const placeOf = (position: number): Place => ({ revision: position, seen: ALL_SEEN })
