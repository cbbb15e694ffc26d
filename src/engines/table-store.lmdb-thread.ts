import { Worker } from 'node:worker_threads'
import { Failure } from '../kernel/errors.ts'
import type { Answer, Job, JobMessage, JobResult, WriterSettings } from './table-store.lmdb-jobs.ts'

interface Pending {
  bytes: number
  resolve(result: JobResult): void
  reject(error: unknown): void
}

const PENDING_JOBS_MAX = 100_000
const PENDING_BYTES_MAX = 256 * 1024 * 1024

/** The store's end of its writer thread. */
export class WriterThread {
  private readonly worker: Worker
  private readonly pending = new Map<number, Pending>()
  private readonly answered: () => void
  private pendingBytes = 0
  private lastNo = 0
  private down: Failure | undefined

  private constructor(settings: WriterSettings, answered: () => void) {
    this.answered = answered
    this.worker = new Worker(new URL('./table-store.lmdb-worker.js', import.meta.url), { workerData: settings })
    this.worker.on('message', (answer: Answer) => this.take(answer))
    this.worker.on('error', (error) => this.fail(error))
    this.worker.on('exit', () => this.fail(new Error('The writer thread of the tables has ended.')))
  }

  static open(settings: WriterSettings, answered: () => void): Promise<WriterThread> {
    return new Promise((resolve, reject) => {
      const thread = new WriterThread(settings, answered)
      thread.pending.set(0, { bytes: 0, resolve: () => resolve(thread), reject })
    })
  }

  run(job: Job, now: number, transfer: ArrayBuffer[] = []): Promise<JobResult> {
    const bytes = transfer.reduce((sum, buffer) => sum + buffer.byteLength, 0)
    return new Promise((resolve, reject) => {
      if (this.down !== undefined) return reject(this.down)
      if (this.pending.size >= PENDING_JOBS_MAX || this.pendingBytes + bytes > PENDING_BYTES_MAX) return reject(new Failure('overloaded'))
      this.lastNo += 1
      this.pendingBytes += bytes
      this.pending.set(this.lastNo, { bytes, resolve, reject })
      this.worker.postMessage({ no: this.lastNo, now, job } satisfies JobMessage, transfer)
    })
  }

  async close(now: number): Promise<void> {
    if (this.down !== undefined) return
    const ended = new Promise((resolve) => this.worker.once('exit', resolve))
    await this.run({ kind: 'close' }, now)
    await ended
  }

  private take(answer: Answer): void {
    const pending = this.pending.get(answer.no)
    if (pending === undefined) return
    this.pending.delete(answer.no)
    this.pendingBytes -= pending.bytes
    this.answered()
    if (!('error' in answer)) pending.resolve(answer.result)
    else if (answer.isFault) pending.reject(new Error(answer.error))
    else pending.reject(new Failure('engine_down', { message: 'The tables cannot be written.', cause: new Error(answer.error) }))
  }

  private fail(cause: unknown): void {
    this.down ??= new Failure('engine_down', { message: 'The tables are closed.', cause })
    for (const pending of this.pending.values()) pending.reject(this.down)
    this.pending.clear()
    this.pendingBytes = 0
  }
}
