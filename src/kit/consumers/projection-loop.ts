import type { EventLog, FollowBatch } from '../../engines/event-log.ts'
import { StaleCommit, type TableStore } from '../../engines/table-store.ts'
import type { Clock } from '../../kernel/clock.ts'
import type { Logger } from '../../kernel/logger.ts'
import { breathe } from '../../kernel/breath.ts'
import type { RowChange } from '../../kernel/table.ts'
import { OwnedCheckpoint } from './checkpoint.ts'
import { defer } from './deferred.ts'
import { RowsOverlay } from './projection-overlay.ts'
import { pause } from './pause.ts'
import type { Projection } from './projection.ts'

export interface ProjectionServices {
  log: EventLog
  tables: TableStore
  clock: Clock
  logger: Logger
}

/** Tells of a commit; `changes` may be empty where only the place in the log moved. */
export type Advanced = (projection: string, position: number, changes: readonly RowChange[]) => void

export const NEXT = '@next'

const BATCH_EVENTS_MAX = 512
const RETRY_MS = [100, 500, 2_000, 5_000]
/** A place that moved over foreign events alone is stored so often at most. */
const CHECKPOINT_MS = 1_000

/** Follows the log for one projection: each batch of rows is committed together with the place in the log. */
export class ProjectionLoop {
  readonly projection: Projection
  /** Position up to which everything is applied; undefined before the first event. */
  at: number | undefined
  /** Logged time of the oldest event that is read and not committed. */
  behindSince: number | undefined
  private readonly services: ProjectionServices
  private readonly advanced: Advanced
  private readonly abort = new AbortController()
  private readonly inputs: ReadonlySet<string>
  private readonly caughtUp = defer<void>()
  private turn: Promise<unknown> = Promise.resolve()
  private running: Promise<void> | undefined
  private checkpointAt = Number.NEGATIVE_INFINITY
  private owned: OwnedCheckpoint | undefined

  constructor(projection: Projection, services: ProjectionServices, advanced: Advanced) {
    this.projection = projection
    this.services = services
    this.advanced = advanced
    this.inputs = new Set(projection.inputs)
    this.caughtUp.promise.catch(() => undefined)
  }

  /** Begins after the position. */
  start(at: number | undefined): void {
    this.at = at
    this.running = this.run()
  }

  /** Resolves when all that was in the log is applied for the first time. */
  ready(): Promise<void> {
    return this.caughtUp.promise
  }

  /** Runs something while no batch is being applied. */
  exclusively<Result>(run: () => Promise<Result>): Promise<Result> {
    const result = this.turn.then(run)
    this.turn = result.catch(() => undefined)
    return result
  }

  /** What is stored was replaced by tables that were built up to where this loop stands. */
  replaced(): void {
    this.owned = undefined
  }

  async close(): Promise<void> {
    this.abort.abort()
    await this.running
    await this.turn
    this.caughtUp.reject(new Error(`projection ${this.projection.name} is closed`))
  }

  private async run(): Promise<void> {
    const { log, logger } = this.services
    let failures = 0
    while (!this.abort.signal.aborted) {
      try {
        for await (const batch of log.follow(
          { prefixes: this.projection.prefixes },
          this.at,
          this.abort.signal,
          BATCH_EVENTS_MAX,
        )) {
          await this.exclusively(() => this.take(batch))
          failures = 0
        }
        // Only its signal ends a follower, or a log that was closed under it.
        await pause(this.services.clock, RETRY_MS[0], this.abort.signal)
      } catch (error) {
        if (error instanceof StaleCommit) this.goBack(error)
        logger.error('projection failed', {
          projection: this.projection.name,
          position: this.at,
          error: String(error),
          failures: failures + 1,
        })
        await pause(this.services.clock, RETRY_MS[Math.min(failures++, RETRY_MS.length - 1)], this.abort.signal)
      }
    }
  }

  private async take(batch: FollowBatch): Promise<void> {
    if (this.at !== undefined && batch.checkpoint <= this.at) return this.noteCaughtUp(batch)
    this.behindSince ??= batch.events[0]?.loggedAt
    const changes = await applyBatch(this.projection, this.inputs, batch.events, this.services.tables)
    if (changes.length > 0 || this.isCheckpointDue()) await this.commit(changes, batch.checkpoint)
    this.at = batch.checkpoint
    this.noteCaughtUp(batch)
    this.advanced(this.projection.name, batch.checkpoint, changes)
  }

  /** The store has lost what it had, or somebody else built the tables: goes on from what is stored. */
  private goBack({ stored }: StaleCommit): void {
    this.owned = undefined
    this.at = stored.at?.all
  }

  private noteCaughtUp(batch: FollowBatch): void {
    this.behindSince = batch.caughtUp ? undefined : (batch.events.at(-1)?.loggedAt ?? this.behindSince)
    if (batch.caughtUp) this.caughtUp.resolve()
  }

  private isCheckpointDue(): boolean {
    return this.services.clock.monotonic() - this.checkpointAt >= CHECKPOINT_MS
  }

  private async commit(changes: readonly RowChange[], position: number): Promise<void> {
    this.owned ??= await OwnedCheckpoint.take(this.services.tables, this.projection.name)
    await this.owned.commit(changes, { all: position, version: this.projection.version })
    this.checkpointAt = this.services.clock.monotonic()
  }
}

/** Applies events in order on top of the stored rows and answers what is to be committed. */
export const applyBatch = async (
  projection: Projection,
  inputs: ReadonlySet<string>,
  events: FollowBatch['events'],
  tables: TableStore,
  suffix = '',
): Promise<RowChange[]> => {
  const rows = new RowsOverlay(tables, suffix)
  for (const event of events) {
    if (!inputs.has(event.type)) continue
    const pause = breathe()
    if (pause !== undefined) await pause
    const applying = projection.apply(event, rows)
    if (applying !== undefined) await applying
  }
  return rows.take()
}
