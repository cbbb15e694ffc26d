import { createHash } from 'node:crypto'
import { pagesOf } from '../engines/table-store.ts'
import { ERRORS, Failure } from '../kernel/errors.ts'
import { decodeJson, encodeJson, type Fact, type RecordedEvent } from '../kernel/event.ts'
import { NO_ORGANIZATION } from '../kernel/table.ts'
import { appendFacts } from '../kit/commands/handle-command.ts'
import { idFrom, idSource } from '../kit/commands/ids.ts'
import {
  PROCESS,
  processStream,
  type OriginOf,
  type Process,
  type Processes,
  type ProcessFinished,
  type ProcessKey,
  type ProcessRefused,
  type ProcessStarted,
  type StepOrigin,
} from '../kit/commands/process.ts'
import { severalAtOnce } from '../kit/commands/several-at-once.ts'
import { allWrote } from '../kit/commands/wrote.ts'
import type { Wrote } from '../kit/http/route.ts'
import type { Services } from '../kit/services.ts'
import { OPEN_PROCESSES, type OpenProcessRow } from './views.ts'

/** Work of one node: it continues processes that others left. */
export const CARRY_ON = 'carry-on-processes'

/** Each lost try means that another process has ended, so that many concurrent ones all succeed. */
const TRIES = 50
/** A process open for this long was left by a node that crashed. */
const LEFT_AFTER_MS = 5_000
const POLL_MS = 5_000
const AT_ONCE = 8
const PAGE_ROWS = 100
/** Delays after failures; the last one repeats. */
const RETRY_MS = [1_000, 5_000, 30_000, 120_000, 600_000]
/** Consecutive failures after which a process is reported: a person has to look. */
const STUCK_FAILURES = 5

type Start = Pick<RecordedEvent, 'id' | 'stream' | 'revision' | 'metadata' | 'data'>

interface Open {
  start: Start
  refused?: ProcessRefused
}

/** Runs processes, and continues open ones. Several nodes may do so at once: steps read before they write. */
export class ProcessRunner implements Processes {
  private readonly services: Pick<Services, 'log' | 'tables' | 'clock' | 'logger'>
  // biome-ignore lint/suspicious/noExplicitAny: each kind has its own data, which only its steps read
  private readonly kinds = new Map<string, Process<any>>()
  /** Processes running here, by the id of their start. */
  private readonly running = new Map<string, Promise<Wrote | undefined>>()
  /** Failed processes, by stream, until they end. */
  private readonly failed = new Map<string, { failures: number; notBefore: number }>()
  private round: Promise<void> = Promise.resolve()
  private cancelPoll = (): void => undefined
  /** Whether this node looks for left processes. */
  private isLooking = false

  constructor(services: Pick<Services, 'log' | 'tables' | 'clock' | 'logger'>) {
    this.services = services
  }

  /** Call it before any process is run. */
  // biome-ignore lint/suspicious/noExplicitAny: see `kinds`
  know(processes: readonly Process<any>[]): void {
    for (const process of processes) this.kinds.set(process.key.name, process)
  }

  /** Continues left processes in the background, once the projection of open ones has caught up. */
  startCarryingOn(): void {
    this.isLooking = true
    this.poll(0)
  }

  /** Resolves when continued processes have ended or failed. */
  async stopCarryingOn(): Promise<void> {
    this.isLooking = false
    this.cancelPoll()
    await this.idle()
    this.failed.clear()
  }

  /** Processes that failed several times in a row. */
  get stuck(): number {
    return [...this.failed.values()].filter(({ failures }) => failures >= STUCK_FAILURES).length
  }

  async run<Data extends object>(
    key: ProcessKey<Data>,
    subject: string,
    origin: StepOrigin,
    plan: () => Promise<Data | undefined>,
  ): Promise<Wrote | undefined> {
    const stream = processStream(subject)
    for (let tries = 0; tries < TRIES; tries++) {
      const { open, events } = await this.readOpen(stream)
      if (open !== undefined) {
        await this.carryOn(open).catch(unlessRefused)
        continue
      }
      const data = await plan()
      if (data === undefined) return undefined
      const start = await this.append(key, stream, events, origin, data)
      if (start !== undefined) return this.carryOn({ start })
    }
    throw new Failure('conflict', {
      message: 'Others are changing this at the same time; try again.',
      retryAfterSeconds: 1,
    })
  }

  async settle(subject: string): Promise<void> {
    const { open } = await this.readOpen(processStream(subject))
    if (open !== undefined) await this.carryOn(open).catch(unlessRefused)
  }

  /** Resolves when open processes found at the start, or by the last look, have been tried. */
  async idle(): Promise<void> {
    await this.round
    await Promise.allSettled(this.running.values())
  }

  private async append<Data extends object>(
    { name }: ProcessKey<Data>,
    stream: string,
    revision: number,
    { organizationId, now, ids, metadata }: StepOrigin,
    data: Data,
  ): Promise<Start | undefined> {
    const started: ProcessStarted = { process: name, organizationId, data, at: now }
    const id = ids.next()
    const fact = { type: PROCESS.started, data: started }
    const wrote = await appendFacts(this.services.log, stream, [fact], [id], revision, metadata)
    return wrote && { id, stream, revision, metadata, data: encodeJson(started) }
  }

  /** Runs the steps from the first one on, unless they run here already. */
  private carryOn(open: Open): Promise<Wrote | undefined> {
    const { id, stream } = open.start
    const running = this.running.get(id)
    if (running !== undefined) return running
    const work = this.runSteps(open).then(
      (wrote) => {
        this.failed.delete(stream)
        return wrote
      },
      (error: unknown) => {
        if (isRefusal(error)) this.failed.delete(stream)
        else this.noteFailure(stream, error)
        throw error
      },
    )
    this.running.set(id, work)
    const forget = (): boolean => this.running.delete(id)
    work.then(forget, forget)
    return work
  }

  private async runSteps({ start, refused }: Open): Promise<Wrote | undefined> {
    const started = decodeJson<ProcessStarted>(start.data)
    const kind = this.kinds.get(started.process)
    if (kind === undefined) throw new Error(`there is no process ${started.process}`)
    if (refused !== undefined) return void (await this.undo(kind, start, started, refused.step))
    const wrotes: (Wrote | undefined)[] = []
    for (const [i, { name, run }] of kind.steps.entries()) {
      try {
        wrotes.push(await run(started.data, originOf(start, started, name)))
      } catch (error) {
        if (!isRefusal(error)) throw error
        if (kind.steps.slice(0, i).some(({ undo }) => undo !== undefined)) await this.refuse(start, name, error)
        await this.undo(kind, start, started, name)
        throw error
      }
    }
    await this.finish(start, { process: started.process, outcome: 'done' }, 1)
    return allWrote(...wrotes)
  }

  /** After this fact a repeated run rolls back, even if nothing would refuse it any more. */
  private async refuse(start: Start, step: string, { code }: Failure): Promise<void> {
    const fact = { type: PROCESS.refused, data: { step, code } satisfies ProcessRefused }
    await this.appendAfter(start, fact, 1)
  }

  // biome-ignore lint/suspicious/noExplicitAny: see `kinds`
  private async undo(kind: Process<any>, start: Start, started: ProcessStarted, refused: string): Promise<void> {
    const before = kind.steps.slice(
      0,
      kind.steps.findIndex(({ name }) => name === refused),
    )
    for (const { name, undo } of before.reverse()) await undo?.(started.data, originOf(start, started, `undo ${name}`))
    const isFact = before.some(({ undo }) => undo !== undefined)
    await this.finish(start, { process: started.process, outcome: 'refused' }, isFact ? 2 : 1)
  }

  /** The start's data is no longer needed, and may name people. */
  private async finish(start: Start, data: ProcessFinished, eventsAfterStart: number): Promise<void> {
    const { log, logger } = this.services
    const { stream, revision } = start
    await this.appendAfter(start, { type: PROCESS.finished, data }, eventsAfterStart)
    await log
      .truncateBefore(stream, revision + eventsAfterStart)
      .catch((error: unknown) => logger.warn('a finished process keeps its data', { stream, error: String(error) }))
  }

  /** Another node that continues it meanwhile appends the same. */
  private async appendAfter({ id, stream, revision, metadata }: Start, fact: Fact, events: number): Promise<void> {
    await appendFacts(this.services.log, stream, [fact], [idFrom(fact.type, id)], revision + events, metadata)
  }

  private async readOpen(stream: string): Promise<{ open?: Open; events: number }> {
    const [last, before] = await this.services.log.read(stream, 'end', 2, 'backwards')
    const events = last === undefined ? 0 : last.revision + 1
    if (last?.type === PROCESS.started) return { open: { start: last }, events }
    if (last?.type !== PROCESS.refused) return { events }
    return { open: { start: before, refused: decodeJson<ProcessRefused>(last.data) }, events }
  }

  private noteFailure(stream: string, error: unknown): void {
    const { clock, logger } = this.services
    if (!this.isLooking) return logger.warn('a process failed', { stream, error: String(error) })
    const failures = (this.failed.get(stream)?.failures ?? 0) + 1
    const retryMs = RETRY_MS[Math.min(failures, RETRY_MS.length) - 1]
    this.failed.set(stream, { failures, notBefore: clock.now() + retryMs })
    const level = failures < STUCK_FAILURES ? 'warn' : 'error'
    logger[level](failures < STUCK_FAILURES ? 'a process failed' : 'a process is stuck', {
      stream,
      failures,
      retryMs,
      error: String(error),
    })
  }

  private poll(leftAfterMs: number): void {
    this.round = this.carryOnLeft(leftAfterMs).catch((error: unknown) =>
      this.services.logger.warn('open processes could not be listed', { error: String(error) }),
    )
    void this.round.then(() => {
      if (this.isLooking) this.cancelPoll = this.services.clock.after(POLL_MS, () => this.poll(LEFT_AFTER_MS))
    })
  }

  private async carryOnLeft(leftAfterMs: number): Promise<void> {
    const { tables, clock } = this.services
    const range = { field: 'startedAt', to: clock.now() - leftAfterMs }
    const question = { range, sort: { field: 'startedAt', order: 'asc' } as const, limit: PAGE_ROWS }
    await severalAtOnce([...this.failed.keys()], AT_ONCE, (stream) => this.carryOnStream(stream))
    for await (const page of pagesOf<OpenProcessRow>(tables, OPEN_PROCESSES.name, NO_ORGANIZATION, question)) {
      await severalAtOnce(page, AT_ONCE, ({ id }) => this.carryOnStream(processStream(id)))
      if (!this.isLooking) return
    }
  }

  private async carryOnStream(stream: string): Promise<void> {
    if (!this.isLooking) return
    const { open } = await this.readOpen(stream)
    if (open === undefined) return void this.failed.delete(stream)
    if ((this.failed.get(stream)?.notBefore ?? 0) > this.services.clock.now()) return
    this.services.logger.info('a process is carried on', { stream })
    // Failures are recorded where they occur.
    await this.carryOn(open).catch(() => undefined)
  }
}

const originOf =
  (start: Start, { organizationId, at }: ProcessStarted, step: string): OriginOf =>
  (part = '') => ({
    organizationId,
    now: at,
    ids: idSource(at, createHash('sha256').update([start.id, step, part].join('\u0000')).digest()),
    metadata: start.metadata,
  })

/** Refusals for the client; other errors pass through, or are faults for an operator to fix. */
const isRefusal = (error: unknown): error is Failure =>
  error instanceof Failure &&
  error.status < 500 &&
  !ERRORS[error.code].retryable &&
  error.details.retryAfterSeconds === undefined

const unlessRefused = (error: unknown): undefined => {
  if (!isRefusal(error)) throw error
}
