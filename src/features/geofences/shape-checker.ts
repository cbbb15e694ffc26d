import { Worker } from 'node:worker_threads'
import type { ShapeInput } from '../../geo/shape.ts'
import type { Clock } from '../../kernel/clock.ts'
import { Failure, invalid } from '../../kernel/errors.ts'
import { FairQueue } from '../../kernel/fair-queue.ts'
import type { ShapeAnswer, ShapeJob } from './shape-worker.ts'

export interface ShapeCheckerOptions {
  /** Jobs that may wait for the worker; beyond, the answer is 503. */
  waitingMax?: number
  /** Shapes whose check takes longer are refused. */
  deadlineMs?: number
}

/** A deadline passes in steps: a pause of the machine uses up one of them, not the worker's time. */
const DEADLINE_STEPS = 10
/** Most files in the worker's memory, one per organization. */
const IMPORTS_MAX = 3

interface Waiting {
  job: ShapeJob
  deadlineMs: number
  resolve(answer: ShapeAnswer): void
  reject(error: unknown): void
}

/** The check exceeded its deadline; the worker was ended, and its state is lost. */
export class DeadlinePassed extends Error {}

/**
 * Checks shapes in a worker thread, so that a slow check blocks nobody and can be aborted. One job at a time, with
 * organizations taking turns; a worker that exceeds a deadline, or dies, is replaced.
 */
export class ShapeChecker {
  private readonly clock: Clock
  private readonly deadlineMs: number
  private readonly queue: FairQueue<Waiting>
  private worker: Worker | undefined
  /** The worker has loaded: deadlines run only from then on. */
  private isReady = false
  private current: { waiting: Waiting; cancelDeadline: () => void } | undefined
  private isClosed = false
  private importsBegun = 0
  /** Never refused, and first in line: a file left open would take memory for ever. */
  private readonly closings: Waiting[] = []
  /** Organizations with open files. */
  private readonly importing = new Set<string>()

  constructor(clock: Clock, { waitingMax = 256, deadlineMs = 2_000 }: ShapeCheckerOptions = {}) {
    this.clock = clock
    this.deadlineMs = deadlineMs
    this.queue = new FairQueue(waitingMax)
  }

  /** @throws Failure invalid with the reason and the path in the body, or if checking takes too long; overloaded. */
  async assertValid(organizationId: string, shape: ShapeInput): Promise<void> {
    const answer = await this.run(organizationId, { kind: 'validate', shape }).catch((error: unknown) => {
      if (error instanceof DeadlinePassed) throw invalid('/geometry', 'takes too long to check; make it simpler')
      throw error
    })
    if (!('error' in answer) || answer.error === undefined) return
    throw invalid(`${'type' in shape ? '/geometry' : ''}${answer.error.path}`, answer.error.message)
  }

  /** Lends the worker to an import, under a unique number. @throws Failure overloaded */
  async withImport<Result>(organizationId: string, run: (number: number) => Promise<Result>): Promise<Result> {
    if (this.importing.has(organizationId)) throw busy('An import of this organization is under way; try again later.')
    if (this.importing.size >= IMPORTS_MAX)
      throw busy(`${IMPORTS_MAX} organizations import geofences; try again later.`)
    this.importing.add(organizationId)
    const number = ++this.importsBegun
    try {
      return await run(number)
    } finally {
      this.importing.delete(organizationId)
      const ignored = (): void => undefined
      const job = { kind: 'close', import: number } as const
      this.closings.push({ job, deadlineMs: this.deadlineMs, resolve: ignored, reject: ignored })
      this.startNext()
    }
  }

  /** @throws DeadlinePassed, Failure overloaded. */
  run(organizationId: string, job: ShapeJob, deadlineMs = this.deadlineMs): Promise<ShapeAnswer> {
    return new Promise((resolve, reject) => {
      if (this.isClosed) return reject(tooMany())
      this.queue.push(organizationId, { job, deadlineMs, resolve, reject })?.reject(tooMany())
      this.startNext()
    })
  }

  async close(): Promise<void> {
    this.isClosed = true
    for (let waiting = this.queue.shift(); waiting !== undefined; waiting = this.queue.shift())
      waiting.reject(new Failure('overloaded'))
    this.current?.cancelDeadline()
    this.current?.waiting.reject(new Failure('overloaded'))
    this.current = undefined
    await this.worker?.terminate()
    this.worker = undefined
  }

  private startNext(): void {
    if (this.current !== undefined || this.isClosed) return
    const waiting = this.closings.shift() ?? this.queue.shift()
    if (waiting === undefined) return
    const worker = (this.worker ??= this.startWorker())
    this.current = { waiting, cancelDeadline: () => undefined }
    // An idle worker does not keep the process alive.
    worker.ref()
    if (this.isReady) this.startDeadline(worker)
    try {
      worker.postMessage(waiting.job)
    } catch (error) {
      this.finish((current) => current.reject(error))
    }
  }

  private startDeadline(worker: Worker): void {
    if (this.current === undefined) return
    const { current } = this
    const stepMs = current.waiting.deadlineMs / DEADLINE_STEPS
    const pass = (left: number): void => {
      if (left === 0) return this.replaceWorker(worker, new DeadlinePassed('the check took too long'))
      current.cancelDeadline = this.clock.after(stepMs, () => pass(left - 1))
    }
    pass(DEADLINE_STEPS)
  }

  private startWorker(): Worker {
    this.isReady = false
    const worker = new Worker(new URL('./shape-worker.js', import.meta.url), {
      resourceLimits: { maxOldGenerationSizeMb: 512 },
    })
    worker.on('message', (answer: ShapeAnswer | 'ready') => {
      if (this.worker !== worker) return
      if (answer !== 'ready') return this.finish((waiting) => waiting.resolve(answer))
      this.isReady = true
      this.startDeadline(worker)
    })
    worker.on('error', (error) => this.replaceWorker(worker, error))
    worker.on('exit', () => this.replaceWorker(worker, new Error('the worker that checks shapes has ended')))
    return worker
  }

  private replaceWorker(worker: Worker, error: Error): void {
    if (this.worker !== worker) return
    this.worker = undefined
    void worker.terminate()
    this.finish((waiting) => waiting.reject(error))
  }

  private finish(settle: (waiting: Waiting) => void): void {
    const current = this.current
    if (current === undefined) return
    current.cancelDeadline()
    this.current = undefined
    this.worker?.unref()
    settle(current.waiting)
    this.startNext()
  }
}

const tooMany = (): Failure =>
  new Failure('overloaded', {
    message: 'Too many geometries wait to be checked; try again later.',
    retryAfterSeconds: 2,
  })

const busy = (message: string): Failure => new Failure('overloaded', { message, retryAfterSeconds: 10 })
