import { type Find, pagesOf, type StoredRow, type TableStore } from '../../engines/table-store.ts'
import { backtestDecider } from '../../features/backtests/backtest.ts'
import {
  BACKTEST_DELETED,
  BACKTEST_FAILED,
  BACKTEST_FINISHED,
  BACKTEST_REQUESTED,
  BACKTEST_STREAMS,
  backtestStream,
  type BacktestRequested,
  resultStream,
} from '../../features/backtests/events.ts'
import { hasEnded } from '../../features/backtests/views.ts'
import { Failure } from '../../kernel/errors.ts'
import { decodeJson, type RecordedEvent } from '../../kernel/event.ts'
import type { Logger } from '../../kernel/logger.ts'
import type { Row, RowChange, TableDeclaration } from '../../kernel/table.ts'
import { idOfStream } from '../../kit/commands/declared-event.ts'
import { loadState } from '../../kit/commands/handle-command.ts'
import { Follower, type FollowerServices, type Lag } from '../../kit/consumers/follower.ts'
import { RowsOverlay } from '../../kit/consumers/projection-overlay.ts'
import { pause, untilDone } from '../../kit/consumers/retry.ts'
import { runBacktest, teller, type RunServices } from './run-backtest.ts'
import { WaitingBacktests } from './waiting-backtests.ts'

export interface BacktestJobsServices extends RunServices, Pick<FollowerServices, 'isOurs'> {
  tables: TableStore
  logger: Logger
  /** How long a back-test is kept after it was asked for. */
  keepMs: number
}

/** The consumer that runs them. */
export const BACKTEST_RUNS = 'backtest-runs'

/** Its own rows: every back-test that is not deleted, with what it needs to know of it after a restart. */
const RUNS_TABLE: TableDeclaration = {
  name: 'backtest_runs',
  version: 1,
  lives: 'partition',
  equality: ['hasEnded'],
  range: ['askedAt'],
}

interface RunRow extends Row {
  organizationId: string
  /** ms since the epoch. */
  askedAt: number
  hasEnded: boolean
}

const PAGE_ROWS = 500
/** Over all organizations; each reads the history in a stream of its own. */
const AT_ONCE_MAX = 2
/** Begun so often without an end, it fails. */
const ATTEMPTS_MAX = 8
const GIVEN_UP = `It was begun ${ATTEMPTS_MAX} times and never came to its end; ask for less time or fewer trackers.`
const TOO_MANY = 'Too many back-tests wait; try again later.'
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

  async start(): Promise<this> {
    const { tables } = this.services
    await tables.declare(RUNS_TABLE)
    this.follower = new Follower(this.services, {
      name: BACKTEST_RUNS,
      source: { prefixes: [BACKTEST_STREAMS] },
      begin: () => this.recall(),
      handle: ({ events }) => this.take(events),
    }).start(tables)
    this.sweepLater()
    return this
  }

  lag(now: number): Lag[] {
    return this.follower === undefined ? [] : [this.follower.lag(now)]
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
    const { clock, keepMs } = this.services
    const question = {
      range: { field: 'askedAt', to: clock.now() - keepMs },
      sort: { field: 'askedAt', order: 'asc' } as const,
    }
    for await (const { id, row } of this.rows(question)) {
      if (this.abort.signal.aborted) return
      const tell = teller(this.services, id, -1)
      await tell({ kind: 'delete', organizationId: row.organizationId, at: clock.now() }).catch((error: unknown) => {
        if (!(error instanceof Failure && error.code === 'not_found')) throw error
      })
    }
  }

  /** What had not ended is picked up again. */
  private async recall(): Promise<void> {
    const question = { where: { hasEnded: false }, sort: { field: 'askedAt', order: 'asc' } as const }
    for await (const { id, row } of this.rows(question)) this.waiting.logged(row.organizationId, id)
    this.runNext()
  }

  private async *rows(question: Omit<Find, 'limit'>): AsyncGenerator<StoredRow<RunRow>> {
    const { tables } = this.services
    for await (const page of pagesOf<RunRow>(tables, RUNS_TABLE.name, BACKTEST_RUNS, { ...question, limit: PAGE_ROWS }))
      yield* page
  }

  private async take(events: readonly RecordedEvent[]): Promise<readonly RowChange[] | undefined> {
    const rows = new RowsOverlay(this.services.tables)
    for (const event of events) {
      const id = idOfStream(event.stream)
      if (event.type === BACKTEST_DELETED) {
        await this.letGo(event)
        rows.delete(RUNS_TABLE.name, BACKTEST_RUNS, id)
      } else if (event.type === BACKTEST_REQUESTED) {
        const { organizationId, at } = decodeJson<BacktestRequested>(event.data)
        rows.put(RUNS_TABLE.name, BACKTEST_RUNS, id, { organizationId, askedAt: at, hasEnded: false } satisfies RunRow)
        if (!this.waiting.logged(organizationId, id))
          await this.fail(id, new Failure('overloaded', { message: TOO_MANY }))
      } else if (event.type === BACKTEST_FINISHED || event.type === BACKTEST_FAILED) {
        const row = await rows.get<RunRow>(RUNS_TABLE.name, BACKTEST_RUNS, id)
        if (row !== undefined) rows.put(RUNS_TABLE.name, BACKTEST_RUNS, id, { ...row, hasEnded: true })
        if (!this.running.has(id)) this.waiting.ended(id)
      }
    }
    this.runNext()
    const changes = rows.take()
    return changes.length > 0 ? changes : undefined
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
    const { log, clock } = this.services
    for (let failures = 0; !signal.aborted; failures++) {
      try {
        const { state } = await loadState(log, backtestStream(backtestId), backtestDecider(backtestId))
        if (state.row === undefined || hasEnded(state.row)) return
        if (state.row.attempt >= ATTEMPTS_MAX)
          return await this.fail(backtestId, new Failure('internal', { message: GIVEN_UP }))
        return await runBacktest(this.services, backtestId, state.row.attempt + 1, signal)
      } catch (error) {
        if (signal.aborted) return
        this.failed(error)
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
    this.cancelTimer = this.services.clock.after(SWEEP_MS, () => {
      this.sweeping = this.sweep()
        .catch((error: unknown) => this.failed(error))
        .finally(() => !this.abort.signal.aborted && this.sweepLater())
    })
  }

  private untilDone(run: () => Promise<void>): Promise<void> {
    const onFailure = (error: unknown): void => this.failed(error)
    return untilDone(run, { clock: this.services.clock, signal: this.abort.signal, retryMs: RETRY_MS, onFailure })
  }

  private failed(error: unknown): void {
    this.services.logger.error('a back-test failed', { error: String(error) })
  }
}

/** Another attempt would end in the same way. */
const isFinal = (error: unknown): error is Failure =>
  error instanceof Failure && (error.code === 'too_large' || error.code === 'not_found')
