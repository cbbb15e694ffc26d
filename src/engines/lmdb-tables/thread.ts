import { Worker } from 'node:worker_threads'
import type { Clock } from '../../kernel/clock.ts'
import { Failure } from '../../kernel/errors.ts'
import { endProcess } from '../write-errors.ts'
import type { Answer, Job, JobMessage, JobResult, WriterSettings } from './jobs.ts'
import type { TableRecord } from './layout.ts'

/** What writes: a worker thread, in whose place tests have one that writes in theirs. */
export interface WriterEnd {
  on(event: 'message', listener: (answer: Answer) => void): unknown
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'exit', listener: () => void): unknown
  once(event: 'exit', listener: () => void): unknown
  postMessage(message: JobMessage, transfer?: readonly ArrayBuffer[]): void
}

export type StartWriter = (settings: WriterSettings) => WriterEnd

const startWorker: StartWriter = (settings) =>
  new Worker(new URL('./worker.js', import.meta.url), { workerData: settings })

interface Pending {
  bytes: number
  resolve(result: JobResult): void
  reject(error: unknown): void
}

const PENDING_JOBS_MAX = 100_000
const PENDING_BYTES_MAX = 256 * 1024 * 1024
const RESTART_AFTER_MS = 100
const RESTART_AFTER_MS_MAX = 30_000

/** The store's end of its writer thread. A dead thread is replaced; its unanswered requests are rejected. */
export class WriterThread {
  /** Called with the stored tables when a thread has replaced a dead one. */
  restarted: (records: readonly [string, TableRecord][]) => void = () => undefined
  private readonly settings: WriterSettings
  private readonly clock: Clock
  private readonly answered: () => void
  private readonly pending = new Map<number, Pending>()
  private readonly startWriter: StartWriter
  private worker: WriterEnd | undefined
  private pendingBytes = 0
  private lastNo = 0
  private down: Failure | undefined
  private deaths = 0
  private cancelRestart: (() => void) | undefined
  private isClosing = false

  private constructor(settings: WriterSettings, clock: Clock, answered: () => void, startWriter: StartWriter) {
    this.startWriter = startWriter
    this.settings = settings
    this.clock = clock
    this.answered = answered
    this.worker = this.start()
  }

  static open(
    settings: WriterSettings,
    clock: Clock,
    answered: () => void,
    startWriter = startWorker,
  ): Promise<WriterThread> {
    return new Promise((resolve, reject) => {
      const thread = new WriterThread(settings, clock, answered, startWriter)
      const failed = (error: unknown): void => {
        thread.isClosing = true
        reject(error)
      }
      thread.pending.set(0, { bytes: 0, resolve: () => resolve(thread), reject: failed })
    })
  }

  run(job: Job, now: number, transfer: ArrayBuffer[] = []): Promise<JobResult> {
    const bytes = transfer.reduce((sum, buffer) => sum + buffer.byteLength, 0)
    return new Promise((resolve, reject) => {
      if (this.down !== undefined || this.isClosing) return reject(this.down ?? closed())
      if (this.pending.size >= PENDING_JOBS_MAX || this.pendingBytes + bytes > PENDING_BYTES_MAX)
        return reject(new Failure('overloaded'))
      this.lastNo += 1
      this.pendingBytes += bytes
      this.pending.set(this.lastNo, { bytes, resolve, reject })
      this.worker?.postMessage({ no: this.lastNo, now, job } satisfies JobMessage, transfer)
    })
  }

  /** Resolves when every request is answered and the thread has ended. */
  async close(now: number): Promise<void> {
    this.isClosing = true
    this.cancelRestart?.()
    const { worker } = this
    if (worker === undefined) return
    const ended = new Promise<void>((resolve) => worker.once('exit', resolve))
    worker.postMessage({ no: -1, now, job: { kind: 'close' } } satisfies JobMessage)
    await ended
  }

  // Requests during its start wait for it.
  private start(): WriterEnd {
    this.down = undefined
    const worker = this.startWriter(this.settings)
    let cause: unknown = new Error('The writer thread of the tables has ended.')
    worker.on('message', (answer: Answer) => this.take(answer))
    worker.on('error', (error: Error) => {
      cause = error
      this.fail(cause)
    })
    worker.on('exit', () => {
      this.worker = undefined
      this.fail(cause)
      this.startAgain()
    })
    return worker
  }

  private take(answer: Answer): void {
    if ('broken' in answer) return endProcess('tables', this.settings.path, answer.broken)
    if (answer.no === 0 && 'result' in answer) this.ready(answer.result as { records: [string, TableRecord][] })
    const pending = this.pending.get(answer.no)
    if (pending === undefined) return
    this.pending.delete(answer.no)
    this.pendingBytes -= pending.bytes
    this.answered()
    if (!('error' in answer)) {
      this.deaths = 0
      pending.resolve(answer.result)
    } else if (answer.isFault) pending.reject(new Error(answer.error))
    else pending.reject(cannotWrite(new Error(answer.error)))
  }

  private ready({ records }: { records: [string, TableRecord][] }): void {
    this.answered()
    this.restarted(records)
  }

  private fail(cause: unknown): void {
    this.down = cannotWrite(cause)
    for (const pending of this.pending.values()) pending.reject(this.down)
    this.pending.clear()
    this.pendingBytes = 0
  }

  // At once after the first death; a thread that answers nothing before it dies again is restarted ever more rarely.
  private startAgain(): void {
    if (this.isClosing) return
    const restart = (): void => {
      this.worker = this.start()
    }
    const delayMs = Math.min(RESTART_AFTER_MS_MAX, RESTART_AFTER_MS * 2 ** Math.min(this.deaths, 20))
    this.deaths += 1
    if (this.deaths === 1) restart()
    else this.cancelRestart = this.clock.after(delayMs, restart)
  }
}

const cannotWrite = (cause: unknown): Failure =>
  new Failure('engine_down', { message: 'The tables cannot be written.', retryAfterSeconds: 1, cause })

const closed = (): Failure => new Failure('engine_down', { message: 'The tables are closed.' })
