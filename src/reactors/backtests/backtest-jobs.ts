import type { FollowBatch } from '../../engines/event-log.ts'
import type { TableStore } from '../../engines/table-store.ts'
import { backtestDecider } from '../../features/backtests/backtest.ts'
import {
  BACKTEST_DELETED,
  BACKTEST_REQUESTED,
  BACKTEST_STREAMS,
  backtestStream,
  resultStream,
} from '../../features/backtests/events.ts'
import { BACKTESTS, hasEnded, type BacktestRow } from '../../features/backtests/views.ts'
import { Failure } from '../../kernel/errors.ts'
import type { RecordedEvent } from '../../kernel/event.ts'
import type { Logger } from '../../kernel/logger.ts'
import { idOfStream } from '../../kit/commands/declared-event.ts'
import { loadState } from '../../kit/commands/handle-command.ts'
import { Follower } from '../../kit/consumers/follower.ts'
import { pause, untilDone } from '../../kit/consumers/retry.ts'
import { runBacktest, teller, type RunServices } from './run-backtest.ts'
import { WaitingBacktests } from './waiting-backtests.ts'

export interface BacktestJobsServices extends RunServices {
  tables: TableStore
  logger: Logger
  /** How long a back-test is kept after it was asked for. */
  keepMs: number
  onFailure(error: unknown): void
}

const BACKTEST_JOBS = 'backtest-jobs'
/** Over all organizations; each reads the history in a stream of its own. */
const AT_ONCE_MAX = 2
/** Begun so often without an end, it fails. */
const ATTEMPTS_MAX = 8
const GIVEN_UP = `It was begun ${ATTEMPTS_MAX} times and never came to its end; ask for less time or fewer trackers.`
const RETRY_MS = [1_000, 5_000, 30_000, 120_000]
const SWEEP_MS = 3_600_000

/**
 * Does the back-tests that are jobs: follows their streams, runs what is asked for, one of an organization at a time, and
 * picks up after a restart what had not ended, anew. Lets go of what was deleted, and deletes what has been kept its time.
 */
export class BacktestJobs {
  readonly waiting = new WaitingBacktests()
  private readonly services: BacktestJobsServices
  private readonly abort = new AbortController()
  private readonly running = new Map<string, { abort: AbortController; ended: Promise<void> }>()
  private follower: Follower | undefined
  private sweeping: Promise<void> = Promise.resolve()
  private cancelTimer: () => void = () => undefined

  constructor(services: BacktestJobsServices) {
    this.services = services
  }

  get runningCount(): number {
    return this.running.size
  }

  /** The projection of back-tests must have applied what is in the log. */
  async start(): Promise<void> {
    const { tables } = this.services
    const unfinished: BacktestRow[] = []
    for await (const { row } of tables.scanAll<BacktestRow>(BACKTESTS.name)) if (!hasEnded(row)) unfinished.push(row)
    unfinished.sort((a, b) => a.createdAt - b.createdAt)
    for (const { organizationId, _id } of unfinished) this.waiting.logged(organizationId, _id)
    this.follower = new Follower(this.services, {
      name: BACKTEST_JOBS,
      source: { prefixes: [BACKTEST_STREAMS] },
      handle: async (batch) => {
        await this.take(batch)
        return batch.events.length > 0 ? [] : undefined
      },
    }).start(tables)
    this.sweepLater()
    this.runNext()
  }

  /** What runs is left as it is: the next start does it anew. */
  async close(): Promise<void> {
    this.abort.abort()
    this.cancelTimer()
    for (const { abort } of this.running.values()) abort.abort()
    await Promise.all([this.follower?.close(), this.sweeping, ...[...this.running.values()].map(({ ended }) => ended)])
  }

  /** Deletes what was asked for too long ago. */
  async sweep(): Promise<void> {
    const { tables, clock, keepMs } = this.services
    const before = clock.now() - keepMs
    for await (const { row } of tables.scanAll<BacktestRow>(BACKTESTS.name)) {
      if (this.abort.signal.aborted) return
      if (row.createdAt >= before) continue
      const tell = teller(this.services, row._id, -1)
      await tell({ kind: 'delete', organizationId: row.organizationId, at: clock.now() }).catch((error: unknown) => {
        if (!(error instanceof Failure && error.code === 'not_found')) throw error
      })
    }
  }

  private async take({ events }: FollowBatch): Promise<void> {
    for (const event of events) {
      if (event.type === BACKTEST_DELETED) await this.letGo(event)
      else if (event.type === BACKTEST_REQUESTED)
        this.waiting.logged(event.metadata.organizationId as string, idOfStream(event.stream))
    }
    this.runNext()
  }

  private async letGo({ stream, revision }: RecordedEvent): Promise<void> {
    const { log } = this.services
    const backtestId = idOfStream(stream)
    const run = this.running.get(backtestId)
    run?.abort.abort()
    await run?.ended
    this.waiting.ended(backtestId)
    await log.erase(resultStream(backtestId))
    await log.truncateBefore(stream, revision)
  }

  private runNext(): void {
    while (this.running.size < AT_ONCE_MAX && !this.abort.signal.aborted) {
      const backtestId = this.waiting.next()
      if (backtestId === undefined) return
      const abort = new AbortController()
      const ended = this.run(backtestId, abort.signal).finally(() => {
        this.running.delete(backtestId)
        if (!this.abort.signal.aborted) this.waiting.ended(backtestId)
        this.runNext()
      })
      this.running.set(backtestId, { abort, ended })
    }
  }

  /** Attempts until it has ended, or its signal aborts. */
  private async run(backtestId: string, signal: AbortSignal): Promise<void> {
    const { log, clock, onFailure } = this.services
    for (let failures = 0; !signal.aborted; failures++) {
      try {
        const { state } = await loadState(log, backtestStream(backtestId), backtestDecider(backtestId))
        if (state.row === undefined || hasEnded(state.row)) return
        if (state.row.attempt >= ATTEMPTS_MAX)
          return await this.fail(backtestId, new Failure('internal', { message: GIVEN_UP }))
        return await runBacktest(this.services, backtestId, state.row.attempt + 1, signal)
      } catch (error) {
        if (signal.aborted) return
        onFailure(error)
        if (isFinal(error)) return this.untilDone(() => this.fail(backtestId, error))
        await pause(clock, RETRY_MS[Math.min(failures, RETRY_MS.length - 1)], signal)
      }
    }
  }

  private async fail(backtestId: string, { code, message }: Failure): Promise<void> {
    const { log, clock } = this.services
    await log.erase(resultStream(backtestId))
    await teller(this.services, backtestId, 0)({ kind: 'fail', code, message, at: clock.now() })
  }

  private sweepLater(): void {
    const { clock, onFailure } = this.services
    this.cancelTimer = clock.after(SWEEP_MS, () => {
      this.sweeping = this.sweep()
        .catch(onFailure)
        .finally(() => !this.abort.signal.aborted && this.sweepLater())
    })
  }

  private untilDone(run: () => Promise<void>): Promise<void> {
    const { clock, onFailure } = this.services
    return untilDone(run, { clock, signal: this.abort.signal, retryMs: RETRY_MS, onFailure })
  }
}

/** Another attempt would end in the same way. */
const isFinal = (error: unknown): error is Failure =>
  error instanceof Failure && (error.code === 'too_large' || error.code === 'not_found')
