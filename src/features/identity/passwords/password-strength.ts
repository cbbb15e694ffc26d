import { Worker } from 'node:worker_threads'
import type { Clock } from '../../../kernel/clock.ts'
import { Failure, invalid } from '../../../kernel/errors.ts'
import { FairQueue } from '../../../kernel/fair-queue.ts'
import type { StrengthAnswer, StrengthJob } from './password-worker.ts'

/** Passwords that may wait: at about 40 ms each, the last one waits three seconds. */
const WAITING_MAX = 64
/** Idle time after which a worker ends, releasing its dictionaries. */
const IDLE_MS = 60_000

interface Waiting {
  job: StrengthJob
  resolve(weakness: string | undefined): void
  reject(error: Failure): void
}

/**
 * Rates new passwords, one at a time with sources taking turns, in a thread that is started for the first one: loading
 * the dictionaries takes some 300 ms.
 */
export class PasswordStrength {
  private readonly clock: Clock
  private readonly queue = new FairQueue<Waiting>(WAITING_MAX)
  private current: Waiting | undefined
  private worker: Worker | undefined
  private cancelIdle = (): void => undefined

  constructor(clock: Clock) {
    this.clock = clock
  }

  /**
   * @param about names and addresses that are no secret of this person
   * @param source network or organization of the request
   * @throws Failure invalid for a password that is easy to guess, overloaded
   */
  async assertStrong(password: string, about: readonly string[], source: string): Promise<void> {
    const weakness = await this.weaknessOf({ password, about }, source)
    if (weakness !== undefined)
      throw invalid('/password', `is easy to guess: ${weakness} Take several words that do not belong together.`)
  }

  /** Ends the thread; waiting callers are refused. */
  async close(): Promise<void> {
    for (let waiting = this.queue.shift(); waiting !== undefined; waiting = this.queue.shift())
      waiting.reject(overloaded())
    await this.end()
  }

  private weaknessOf(job: StrengthJob, source: string): Promise<string | undefined> {
    return new Promise((resolve, reject) => {
      this.queue.push(source, { job, resolve, reject })?.reject(overloaded())
      this.startNext()
    })
  }

  private startNext(): void {
    if (this.current !== undefined) return
    this.current = this.queue.shift()
    if (this.current === undefined) return
    const worker = (this.worker ??= this.start())
    // Pending work keeps the process alive.
    worker.ref()
    this.cancelIdle()
    worker.postMessage(this.current.job)
  }

  private start(): Worker {
    const worker = new Worker(new URL('./password-worker.js', import.meta.url))
    worker.on('message', ({ weakness }: StrengthAnswer) => {
      if (this.worker !== worker) return
      worker.unref()
      this.cancelIdle = this.clock.after(IDLE_MS, () => void this.end(worker))
      this.finish((waiting) => waiting.resolve(weakness))
    })
    worker.on('error', () => void this.end(worker))
    worker.on('exit', () => void this.end(worker))
    return worker
  }

  private finish(settle: (waiting: Waiting) => void): void {
    const { current } = this
    this.current = undefined
    if (current !== undefined) settle(current)
    this.startNext()
  }

  private async end(worker = this.worker): Promise<void> {
    if (worker === undefined || worker !== this.worker) return
    this.worker = undefined
    this.cancelIdle()
    this.finish((waiting) => waiting.reject(overloaded()))
    await worker.terminate()
  }
}

const overloaded = (): Failure => new Failure('overloaded', { retryAfterSeconds: 2 })
