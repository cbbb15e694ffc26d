import type { EventLog, FollowBatch, Source } from '../../engines/event-log.ts'
import { type Checkpoint, StaleCommit, type TableStore } from '../../engines/table-store.ts'
import type { Clock } from '../../kernel/clock.ts'
import type { RecordedEvent } from '../../kernel/event.ts'
import type { Logger } from '../../kernel/logger.ts'
import type { RowChange } from '../../kernel/table.ts'
import { OwnedCheckpoint } from './checkpoint.ts'
import { defer } from './deferred.ts'
import { forever, pause, RETRY_MS } from './retry.ts'
import { Storing } from './storing.ts'

/** Whether this process still owns something, by the stored rows: asked before it is taken again after a failure. */
export type IsOurs = () => Promise<boolean>

export interface FollowerServices {
  log: Pick<EventLog, 'follow'>
  clock: Clock
  logger: Logger
  /** Asked before the stored checkpoint is taken again; left out, it is always ours. */
  isOurs?: IsOurs
}

type CheckpointTables = Pick<TableStore, 'take' | 'commit'>

/** `later`: the rows of this batch come with those of a later one, and its checkpoint waits for them. */
type Handled = readonly RowChange[] | undefined | 'later'

export interface FollowerOptions {
  /** Name of the consumer: in metrics, in logged failures, and of its checkpoint. */
  name: string
  source: Source
  batchEventsMax?: number
  /** Kept with the checkpoint: a change of one of them requires other rows. */
  versions?: Checkpoint
  /** Called once the stored checkpoint is owned, before the first batch, and after a failure: to load the memory. */
  begin?(): Promise<void>
  /**
   * Handles a batch. A failed one is handed over again, whole, after a pause. Answers rows to be stored together with
   * the checkpoint; undefined where the batch had no effect, so that its checkpoint may wait. A follower that is far
   * behind hands over the next batch while the rows of the one before are being stored, which `isStoring` tells.
   */
  handle(batch: FollowBatch, signal: AbortSignal, isStoring: () => boolean): Promise<Handled> | Handled
}

/** Distance of a consumer from the end of the log, counted from its stored checkpoint. */
export interface Lag {
  consumer: string
  /** Number of a partition, or `all`. */
  partition: string
  /** Events that are not stored; a lower bound where their number is not known without reading them. */
  events: number
  /** Age of the oldest of them. */
  seconds: number
}

/** Shortest time between stores of a checkpoint that moved over events without effect. */
const CHECKPOINT_MS = 1_000

/** The rows of smaller batches are awaited: meanwhile further events arrive, which are stored at once. */
const OVERLAPPED_EVENTS = 256

/**
 * The one loop that follows the log: hands over batches in order, retries failures, and knows its position. It keeps
 * its position in a stored checkpoint, which it owns, or begins at the end of the log. Runs until closed.
 */
export class Follower {
  /** Everything up to here is handled; undefined before the first event of the log. */
  at: number | undefined
  private readonly services: FollowerServices
  private readonly options: FollowerOptions
  private readonly abort = new AbortController()
  private readonly caughtUp = defer<void>()
  private running: Promise<void> | undefined
  private tables: CheckpointTables | undefined
  private owned: OwnedCheckpoint | undefined
  private readonly storing = new Storing()
  private wasLost = false
  /** Rows follow with a later batch, which may be an empty one that marks the end of the log. */
  private isOwed = false
  private storedAtMs = Number.NEGATIVE_INFINITY
  /** Logged time of the oldest event read but not handled. */
  private behindSince: number | undefined
  private eventsBehind = 0

  constructor(services: FollowerServices, options: FollowerOptions) {
    this.services = services
    this.options = options
    this.caughtUp.promise.catch(() => undefined)
  }

  get name(): string {
    return this.options.name
  }

  /** Continues after the checkpoint stored here, or begins with the first event. */
  start(tables: CheckpointTables): this {
    this.tables = tables
    this.run()
    return this
  }

  /** Begins after a position of the log, -1 for its beginning, and stores nothing. */
  startBehind(at: number): this {
    this.at = at < 0 ? undefined : at
    this.run()
    return this
  }

  /** Begins where the stored rows of a consumer end, and stores nothing: whoever reads those hears of all that they lack. */
  async startBehindRows(tables: Pick<TableStore, 'checkpoint'>, consumer: string): Promise<this> {
    return this.startBehind((await tables.checkpoint(consumer))?.all ?? -1)
  }

  /** Resolves when everything then in the log is handled for the first time; rejects when closed before. */
  ready(): Promise<void> {
    return this.caughtUp.promise
  }

  lag(now: number): Lag {
    const seconds = this.behindSince === undefined ? 0 : Math.max(0, (now - this.behindSince) / 1000)
    return { consumer: this.name, partition: 'all', events: this.eventsBehind, seconds }
  }

  async close(): Promise<void> {
    this.abort.abort()
    await this.running
    await this.storing.end().catch(() => undefined) // where a failure ended the rest
    this.caughtUp.reject(new Error(`${this.name} is closed`))
  }

  private run(): void {
    const { clock, logger } = this.services
    const onFailure = (error: unknown, failures: number): void => {
      // Another owner stored something, or the store lost its data: continue from the stored checkpoint.
      if (error instanceof StaleCommit) {
        this.owned = undefined
        this.wasLost = true
      }
      logger.error('consumer failed', { consumer: this.name, at: this.at, error: String(error), failures })
    }
    this.running = forever((progressed) => this.follow(progressed), { clock, signal: this.abort.signal, onFailure })
  }

  private async follow(progressed: () => void): Promise<void> {
    const { signal } = this.abort
    const { source, batchEventsMax } = this.options
    if (this.wasLost && (await this.services.isOurs?.()) === false) throw new Error('another process follows by now')
    await this.storing.end().catch(() => undefined) // its failure led here, or is met again
    if (this.tables !== undefined) this.at = (await this.own(this.tables)).at?.all
    await this.options.begin?.()
    for await (const batch of this.services.log.follow(source, this.at, signal, batchEventsMax)) {
      await this.take(batch)
      progressed()
    }
    await this.storing.end()
    // Only the signal ends the following, or a log that was closed under it.
    await pause(this.services.clock, RETRY_MS[0], signal)
  }

  private async take(batch: FollowBatch): Promise<void> {
    const { events, checkpoint, caughtUp } = batch
    if (this.at === undefined || checkpoint > this.at || (caughtUp && this.isOwed)) {
      this.behindSince ??= events[0]?.loggedAt
      this.eventsBehind = Math.max(this.eventsBehind, events.length)
      const changes = await this.options.handle(batch, this.abort.signal, () => this.storing.isRunning)
      if (this.abort.signal.aborted) return // it may have ended half way
      const { tables } = this
      this.isOwed = changes === 'later'
      if (tables !== undefined && changes !== 'later')
        await this.storing.begin(() => this.store(tables, checkpoint, changes))
      if (caughtUp || events.length < OVERLAPPED_EVENTS) await this.storing.end()
      this.at = checkpoint
    }
    this.behindSince = caughtUp ? undefined : (events.at(-1)?.loggedAt ?? this.behindSince)
    this.eventsBehind = caughtUp ? 0 : 1
    if (caughtUp) this.caughtUp.resolve()
  }

  private async store(tables: CheckpointTables, all: number, changes: readonly RowChange[] | undefined): Promise<void> {
    const { versions } = this.options
    const nowMs = this.services.clock.monotonic()
    if (changes === undefined && nowMs - this.storedAtMs < CHECKPOINT_MS) return
    const owned = await this.own(tables)
    await owned.commit(changes ?? [], { all, ...versions })
    this.storedAtMs = nowMs
  }

  private async own(tables: CheckpointTables): Promise<OwnedCheckpoint> {
    this.owned ??= await OwnedCheckpoint.take(tables, this.name)
    return this.owned
  }
}

/** A handler that is called once with each event, also when a batch is handed over again. */
export const eachOnce = (
  handle: (event: RecordedEvent) => Promise<void> | void,
): ((batch: FollowBatch) => Promise<undefined>) => {
  let handledThrough: number | undefined
  return async ({ events }) => {
    for (const event of events) {
      if (handledThrough !== undefined && event.position <= handledThrough) continue
      const handling = handle(event)
      if (handling !== undefined) await handling
      handledThrough = event.position
    }
    return undefined
  }
}
