import { BoundedQueue } from '../../kernel/bounded-queue.ts'
import type { Clock } from '../../kernel/clock.ts'
import { Failure } from '../../kernel/errors.ts'
import type { NewEvent } from '../../kernel/event.ts'
import { DiskRoom } from '../disk-room.ts'
import { endProcess } from '../write-errors.ts'
import { APPEND_BYTES_MAX, type Appended, type ExpectedRevision, WrongRevision } from '../event-log.ts'
import { LogBatch } from './batch.ts'
import { idOfFrame, type PreparedEvent, positionOfFrame, prepareEvent } from './frame.ts'
import { lastRevision, type LogStore, type StreamInfo } from './store.ts'

export interface WriterOptions {
  path: string
  store: LogStore
  clock: Clock
  bytesMax: number
  /** Called after each commit, with its changes. */
  committed(streams: Iterable<StreamInfo>): void
}

interface Waiting<Answer> {
  stream: string
  resolve(answer: Answer): void
  reject(error: unknown): void
}

interface WaitingAppend extends Waiting<Appended> {
  kind: 'append'
  events: PreparedEvent[]
  expected: ExpectedRevision
  bytes: number
}

interface WaitingTruncation extends Waiting<void> {
  kind: 'truncate'
  /** The first remaining revision; `all` erases the stream. */
  before: number | 'all'
}

interface WaitingProbe extends Waiting<void> {
  kind: 'probe'
  bytes: number
}

/** Work that waits for the next commit. */
type Job = WaitingAppend | WaitingTruncation | WaitingProbe

const QUEUED_JOBS_MAX = 200_000
const QUEUED_BYTES_MAX = 256 * 1024 * 1024
// One commit prepares in a few milliseconds, so the event loop is free again soon.
const BATCH_EVENTS_MAX = 1_000
const BATCH_BYTES_MAX = 4 * 1024 * 1024
const SWEEP_EVENTS_MAX = 200
const SWEEP_RETRY_MS = 1_000

/**
 * Group commit: one transaction is on its way to the disk, and jobs that arrive meanwhile go with the next one.
 * Revisions are decided when a transaction is made, from durable heads, so a failed commit has nothing to take back.
 */
export class LogWriter {
  private readonly store: LogStore
  private readonly options: WriterOptions
  private readonly jobs = new BoundedQueue<Job>(QUEUED_JOBS_MAX, QUEUED_BYTES_MAX)
  private readonly sweeps = new Set<string>()
  private running: Promise<void> | undefined
  private closed = false
  private cancelRetry: (() => void) | undefined
  private readonly room: DiskRoom

  constructor(options: WriterOptions) {
    this.options = options
    this.store = options.store
    const { path, clock } = options
    this.room = new DiskRoom({
      message: 'The event log cannot write.',
      path,
      clock,
      tryBytes: (bytes) => this.probe(bytes),
      broken: (error) => endProcess('event log', path, error),
    })
    for (const key of this.store.sweeps.getKeys({})) this.sweeps.add(Buffer.from(key).toString('utf8'))
    if (this.sweeps.size > 0) this.start()
  }

  append(stream: string, events: readonly NewEvent[], expected: ExpectedRevision): Promise<Appended> {
    return new Promise((resolve, reject) => {
      const prepared = preparedEvents(stream, events) // what it throws rejects the promise
      let bytes = 0
      for (const event of prepared) bytes += event.frameBytes
      this.add({ kind: 'append', stream, events: prepared, expected, bytes, resolve, reject }, bytes)
    })
  }

  truncate(stream: string, before: number | 'all'): Promise<void> {
    return new Promise((resolve, reject) => {
      this.add({ kind: 'truncate', stream, before, resolve, reject }, 0)
    })
  }

  /** @throws Failure engine_down from a failed commit until the disk has room again. */
  checkRoom(): Promise<void> {
    return this.room.check()
  }

  /** Resolves when every request is answered. */
  async close(): Promise<void> {
    this.closed = true
    this.cancelRetry?.()
    this.room.close()
    await this.running
  }

  private probe(bytes: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.add({ kind: 'probe', stream: '', bytes, resolve, reject }, 0)
    })
  }

  private add(job: Job, bytes: number): void {
    if (this.closed) job.reject(new Failure('engine_down', { message: 'The event log is closed.' }))
    else if (!this.jobs.push(job, bytes)) job.reject(new Failure('overloaded'))
    else this.start()
  }

  private start(): void {
    this.running ??= this.run()
  }

  private async run(): Promise<void> {
    // Appends of other sockets in this turn of the event loop go with the first commit: they would wait for it.
    await new Promise((resume) => setImmediate(resume))
    while (this.jobs.length > 0 || (this.sweeps.size > 0 && !this.closed)) {
      const went = await this.commitNext()
      if (!went && this.jobs.length === 0) {
        this.retryLater()
        break
      }
    }
    // In the same turn as the last look at the queue, so that no job comes between.
    this.running = undefined
  }

  private retryLater(): void {
    if (this.closed || this.sweeps.size === 0) return
    this.cancelRetry?.()
    this.cancelRetry = this.options.clock.after(SWEEP_RETRY_MS, () => this.start())
  }

  private commitNext(): Promise<boolean> {
    const first = this.jobs.peek()
    if (first?.kind !== 'probe') return this.commitJobs()
    this.jobs.shift()
    const written = this.store.tryBytes(first.bytes).then(fenceOff)
    return written.then(first.resolve, first.reject).then(() => !this.room.isShort)
  }

  private async commitJobs(): Promise<boolean> {
    const batch = new LogBatch(this.store)
    const answers: (() => void)[] = []
    const jobs: Job[] = []
    const loggedAt = this.options.clock.now()
    while (batch.eventCount < BATCH_EVENTS_MAX && batch.frameBytes < BATCH_BYTES_MAX) {
      const job = this.jobs.peek()
      if (job === undefined) break
      const answer = this.stage(job, batch)
      if (answer === 'after this commit') break
      this.jobs.shift()
      if (answer === 'answered') continue
      answers.push(answer)
      jobs.push(job)
    }
    try {
      if (!this.room.isShort) this.stageSweep(batch)
      if (batch.isEmpty) return this.answer(answers)
      if (!this.room.takes(batch.frameBytes)) throw this.room.failure()
      await this.commit(batch, loggedAt)
    } catch (error) {
      if (!this.room.isShort) this.room.refused(error, batch.frameBytes)
      for (const job of jobs) job.reject(this.room.failure())
      return false
    }
    return this.answer(answers)
  }

  private answer(answers: readonly (() => void)[]): boolean {
    for (const answer of answers) answer()
    return !this.room.isShort
  }

  private async commit(batch: LogBatch, loggedAt: number): Promise<void> {
    fenceOff(await batch.commit(loggedAt))
    for (const info of batch.streams.values()) {
      this.store.remember(info)
      if (info.swept < info.first) this.sweeps.add(info.name)
      else this.sweeps.delete(info.name)
    }
    this.options.committed(batch.streams.values())
  }

  private stage(job: Job, batch: LogBatch): (() => void) | 'answered' | 'after this commit' {
    if (job.kind === 'probe') return 'after this commit'
    try {
      if (job.kind === 'truncate') {
        batch.truncate(job.stream, job.before)
        return job.resolve
      }
      return this.stageAppend(job, batch)
    } catch (error) {
      job.reject(error)
      return 'answered'
    }
  }

  private stageAppend(job: WaitingAppend, batch: LogBatch): (() => void) | 'answered' | 'after this commit' {
    const info = batch.stream(job.stream)
    const head = lastRevision(info)
    const wanted = job.expected === 'any' ? head : job.expected === 'none' ? -1 : job.expected
    if (wanted !== head) {
      // The head, or the events to compare with, may only be staged: decide when they are durable.
      if (batch.streams.has(job.stream)) return 'after this commit'
      const from = wanted < 0 ? info?.first : wanted + 1 // an erased stream begins late
      const repeated = info === undefined ? undefined : this.findRepeated(info, job.events, from as number)
      if (repeated === undefined) job.reject(new WrongRevision(job.stream, head))
      else job.resolve(repeated)
      return 'answered'
    }
    if (batch.bytesHeldAfter(job.events) > this.options.bytesMax) {
      job.reject(
        new Failure('engine_down', {
          message: `The event log holds all of the ${this.options.bytesMax} bytes that it may.`,
        }),
      )
      return 'answered'
    }
    if (this.room.isShort) {
      job.reject(this.room.failure())
      return 'answered'
    }
    const appended = batch.append(job.stream, job.events)
    return () => job.resolve(appended)
  }

  /** The result of the first append when exactly these events stand from `revision` on. */
  private findRepeated(info: StreamInfo, events: readonly PreparedEvent[], revision: number): Appended | undefined {
    if (revision < info.first || revision + events.length - 1 > info.head) return undefined
    let position = -1
    for (const [index, { event }] of events.entries()) {
      const frame = this.store.frame(info.no, revision + index)
      if (frame === undefined || idOfFrame(frame) !== event.id) return undefined
      position = positionOfFrame(frame)
    }
    return { revision: revision + events.length - 1, position }
  }

  private stageSweep(batch: LogBatch): void {
    for (const stream of this.sweeps) {
      if (this.store.stream(stream) === undefined) this.sweeps.delete(stream)
      else if (batch.sweep(stream, SWEEP_EVENTS_MAX)) return
    }
  }
}

/** @throws Error for no events, Failure too_large. */
const preparedEvents = (stream: string, events: readonly NewEvent[]): PreparedEvent[] => {
  let dataBytes = 0
  for (const event of events) dataBytes += event.data.byteLength
  if (dataBytes > APPEND_BYTES_MAX) {
    throw new Failure('too_large', {
      message: `One append takes at most ${APPEND_BYTES_MAX} bytes of event data, not ${dataBytes}.`,
    })
  }
  if (events.length === 0) throw new Error(`An append to ${stream} needs an event.`)
  return events.map(prepareEvent)
}

const fenceOff = (written: boolean): void => {
  if (!written) throw new Error('Another process writes to the folder of the event log.')
}
