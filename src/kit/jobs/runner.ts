import type { EventLog } from '../../engines/event-log.ts'
import { type Find, pagesOf, type StoredRow, type TableStore } from '../../engines/table-store.ts'
import type { Clock } from '../../kernel/clock.ts'
import { Failure, unlessGone } from '../../kernel/errors.ts'
import { decodeJson, type RecordedEvent } from '../../kernel/event.ts'
import type { Logger } from '../../kernel/logger.ts'
import { NO_ORGANIZATION, type RowChange } from '../../kernel/table.ts'
import { idOfStream } from '../commands/declared-event.ts'
import { loadState } from '../commands/load-state.ts'
import { Follower, type FollowerServices, type Lag } from '../consumers/follower.ts'
import { RowsOverlay } from '../consumers/projection-overlay.ts'
import { pause, untilDone } from '../consumers/retry.ts'
import { isOver, runAttempt, type JobWork } from './attempt.ts'
import { hasEnded, type JobAsked, type JobRow, vainAttempts } from './job.ts'
import { jobDecider, teller } from './life.ts'
import { JOB_RUNS, type JobRunRow } from './rows.ts'
import { JobTurns } from './turns.ts'

export interface JobRunnerServices extends Pick<FollowerServices, 'isOurs'> {
  log: EventLog
  tables: TableStore
  clock: Clock
  logger: Logger
}

export interface JobRunnerOptions {
  name: string
  works: readonly JobWork[]
  /** Jobs that run at a time over all organizations. */
  atOnceMax: number
  /** Time for which a job is kept after its request. */
  keepMs: number
}

const PAGE_ROWS = 500
const RETRY_MS = [1_000, 5_000, 30_000, 120_000]
const SWEEP_MS = 3_600_000

/**
 * Runs jobs, in the process that owns it: follows their streams, runs requested jobs, organizations in turn, and
 * resumes unfinished ones after a restart. Aborts cancelled jobs, cleans up after deleted ones, and deletes expired
 * ones.
 */
export class JobRunner {
  private readonly services: JobRunnerServices
  private readonly options: JobRunnerOptions
  private readonly turns = new JobTurns()
  private readonly abort = new AbortController()
  private readonly works = new Map<string, JobWork>()
  /** Works of jobs that wait or run, by stream: jobs of two kinds may have one id. */
  private readonly open = new Map<string, JobWork>()
  private readonly running = new Map<string, { abort: AbortController; ended: Promise<void> }>()
  private follower: Follower | undefined
  private sweeping: Promise<void> = Promise.resolve()
  private cancelTimer: () => void = () => undefined

  constructor(services: JobRunnerServices, options: JobRunnerOptions) {
    this.services = services
    this.options = options
    for (const work of options.works) this.works.set(work.kind.prefix, work)
  }

  get runningCount(): number {
    return this.running.size
  }

  async start(): Promise<this> {
    const { tables } = this.services
    await tables.declare(JOB_RUNS)
    this.follower = new Follower(this.services, {
      name: this.options.name,
      source: { prefixes: [...this.works.keys()] },
      begin: () => this.recall(),
      handle: ({ events }) => this.take(events),
    }).start(tables)
    this.sweepLater()
    return this
  }

  lag(now: number): Lag[] {
    return this.follower === undefined ? [] : [this.follower.lag(now)]
  }

  /** Running jobs are left as they are: the next start resumes them. */
  async close(): Promise<void> {
    this.abort.abort()
    this.cancelTimer()
    for (const { abort } of this.running.values()) abort.abort()
    await Promise.all([this.follower?.close(), this.sweeping, ...[...this.running.values()].map(({ ended }) => ended)])
  }

  /** Deletes expired jobs. */
  async sweep(): Promise<void> {
    const { log, clock } = this.services
    const to = clock.now() - this.options.keepMs
    const question = { range: { field: 'askedAt', to }, sort: { field: 'askedAt', order: 'asc' } as const }
    for await (const { id, row } of this.rows(question)) {
      if (this.abort.signal.aborted) return
      const work = this.works.get(row.prefix)
      if (work === undefined) continue
      const tell = teller(log, work.kind, idOf(id, row))
      await unlessGone(tell({ kind: 'delete', organizationId: row.organizationId, at: clock.now() }))
    }
  }

  private async recall(): Promise<void> {
    const question = { where: { hasEnded: false }, sort: { field: 'askedAt', order: 'asc' } as const }
    for await (const { id, row } of this.rows(question))
      this.add(this.works.get(row.prefix), row.organizationId, row.prefix + idOf(id, row))
    this.runNext()
  }

  private async *rows(question: Omit<Find, 'limit'>): AsyncGenerator<StoredRow<JobRunRow>> {
    const scope = this.options.name
    const paged = { ...question, limit: PAGE_ROWS }
    for await (const page of pagesOf<JobRunRow>(this.services.tables, JOB_RUNS.name, scope, paged)) yield* page
  }

  private add(work: JobWork | undefined, organizationId: string, stream: string): void {
    if (work === undefined) return
    this.open.set(stream, work)
    this.turns.add(organizationId, stream)
  }

  private remove(stream: string): void {
    this.open.delete(stream)
    this.turns.remove(stream)
  }

  private async take(events: readonly RecordedEvent[]): Promise<readonly RowChange[] | undefined> {
    const { name } = this.options
    const rows = new RowsOverlay(this.services.tables)
    for (const event of events) {
      const { stream } = event
      const id = idOfStream(stream)
      const prefix = stream.slice(0, stream.length - id.length)
      const work = this.works.get(prefix) as JobWork
      const { requested, finished, failed, cancelled, deleted } = work.kind.types
      if (event.type === requested) {
        const { organizationId = NO_ORGANIZATION, at = event.loggedAt } = decodeJson<Partial<JobAsked>>(event.data)
        const row: JobRunRow = { prefix, organizationId, askedAt: at, hasEnded: false }
        rows.put(JOB_RUNS.name, name, stream, row)
        this.add(work, organizationId, stream)
      } else if (event.type === deleted) {
        await this.letGo(work, event)
        rows.delete(JOB_RUNS.name, name, stream)
        rows.delete(JOB_RUNS.name, name, id) // the name of rows that versions before this have made
      } else if ([finished, failed, cancelled].includes(event.type)) {
        const row = await rows.get<JobRunRow>(JOB_RUNS.name, name, stream)
        if (row !== undefined) rows.put(JOB_RUNS.name, name, stream, { ...row, hasEnded: true })
        if (event.type === cancelled) this.running.get(stream)?.abort.abort()
        if (!this.running.has(stream)) this.remove(stream)
      }
    }
    this.runNext()
    const changes = rows.take()
    return changes.length > 0 ? changes : undefined
  }

  private async letGo(work: JobWork, { stream, revision }: RecordedEvent): Promise<void> {
    const run = this.running.get(stream)
    run?.abort.abort()
    await run?.ended
    this.remove(stream)
    await work.release?.(idOfStream(stream), work.kind.attemptsMax)
    await this.services.log.truncateBefore(stream, revision)
  }

  private runNext(): void {
    while (this.running.size < this.options.atOnceMax && !this.abort.signal.aborted) {
      const stream = this.turns.next()
      if (stream === undefined) return
      const abort = new AbortController()
      const ended = this.run(this.open.get(stream) as JobWork, idOfStream(stream), abort.signal).finally(() => {
        this.running.delete(stream)
        if (!this.abort.signal.aborted) this.remove(stream)
        this.runNext()
      })
      this.running.set(stream, { abort, ended })
    }
  }

  /** Attempts until it has ended, or its signal aborts. */
  private async run(work: JobWork, id: string, signal: AbortSignal): Promise<void> {
    const { log, clock } = this.services
    const { kind } = work
    let last: unknown
    for (let failures = 0; !signal.aborted; failures++) {
      let attempt = 0
      try {
        const row = await this.rowOf(work, id)
        if (row === undefined || hasEnded(row)) return
        if (failures > 0 && (await this.services.isOurs?.()) === false) return
        attempt = row.attempt
        if (vainAttempts(row) >= kind.attemptsMax) {
          if (await this.fail(work, id, attempt, givenUp(kind.attemptsMax, last))) return
        } else {
          attempt++
          if (await runAttempt({ log, clock, closing: this.abort.signal }, work, row, signal)) return
        }
      } catch (error) {
        if (signal.aborted) return
        this.failed(error)
        last = error
        const isEnd = kind.isFinal(error) && (await this.untilDone(() => this.fail(work, id, attempt, error)))
        if (isEnd !== false) return
      }
      await pause(clock, RETRY_MS[Math.min(failures, RETRY_MS.length - 1)], signal)
    }
  }

  /** Ends a job by the failure of an attempt; false where another one is under way, whose work is left as it is. */
  private async fail(work: JobWork, id: string, attempt: number, error: unknown): Promise<boolean> {
    const { log, clock } = this.services
    const row = await this.rowOf(work, id)
    if (row === undefined || row.attempt !== attempt || hasEnded(row)) return isOver(row)
    const code = error instanceof Failure ? error.code : 'internal'
    const { message } = error as Error
    await work.release?.(id, attempt)
    const { state } = await teller(log, work.kind, id)({ kind: 'fail', attempt, code, message, at: clock.now() })
    return isOver(state.row)
  }

  private async rowOf({ kind }: JobWork, id: string): Promise<JobRow | undefined> {
    return (await loadState(this.services.log, kind.stream(id), jobDecider(kind, id))).state.row
  }

  private sweepLater(): void {
    this.cancelTimer = this.services.clock.after(SWEEP_MS, () => {
      this.sweeping = this.sweep()
        .catch((error: unknown) => this.failed(error))
        .finally(() => !this.abort.signal.aborted && this.sweepLater())
    })
  }

  private untilDone<Result>(run: () => Promise<Result>): Promise<Result | undefined> {
    const onFailure = (error: unknown): void => this.failed(error)
    return untilDone(run, { clock: this.services.clock, signal: this.abort.signal, retryMs: RETRY_MS, onFailure })
  }

  private failed(error: unknown): void {
    this.services.logger.error('a job failed', { consumer: this.options.name, error: String(error) })
  }
}

/** Id of a job, by its row: earlier versions named rows by the id alone. */
const idOf = (name: string, { prefix }: JobRunRow): string =>
  name.startsWith(prefix) ? name.slice(prefix.length) : name

/** By the failure of the last attempt, where this process saw it and it is meant for people. */
const givenUp = (attempts: number, last: unknown): Failure => {
  const begun = `It was begun ${attempts} times and never came to its end`
  if (last instanceof Failure && last.code !== 'internal')
    return new Failure(last.code, { message: `${begun}. ${last.message}` })
  return new Failure('internal', { message: `${begun}; ask for less.` })
}
