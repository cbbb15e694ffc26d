import type { MessagePort } from 'node:worker_threads'
import { systemClock } from '../../kernel/system-clock.ts'
import { DiskRoom } from '../disk-room.ts'
import { numberOf } from '../write-errors.ts'
import type { Answer, Job, JobMessage, WriterSettings } from './jobs.ts'
import { bytesOfNumbers } from './number-rows.ts'
import { openTableEnvironment, type TableEnvironment } from './layout.ts'
import { Misuse, TableWriter } from './writer.ts'

const GROUP_JOBS_MAX = 2_000
const GROUP_BYTES_MAX = 8 * 1024 * 1024

/** Writes tables as a port tells it. Jobs that arrive during a transaction go with the next one. */
export class WriterLoop {
  private readonly port: MessagePort
  private readonly env: TableEnvironment
  private readonly writer: TableWriter
  private readonly room: DiskRoom
  private readonly waiting: JobMessage[] = []
  private isScheduled = false
  private lastNow = 0
  /** Whether the store has sent a message, and the number of jobs that replace tables that it has yet to confirm. */
  private hasSaid = false
  private replacing = 0
  private isBroken = false

  constructor(port: MessagePort, { path, bytesMax }: WriterSettings) {
    this.port = port
    this.env = openTableEnvironment(path)
    this.writer = new TableWriter(this.env, bytesMax)
    this.room = new DiskRoom({
      message: 'The tables cannot be written.',
      path,
      clock: systemClock,
      tryBytes: async (bytes) => {
        this.writer.tryBytes(bytes)
      },
      broken: (error) => {
        this.isBroken = true
        this.answer({ no: 0, broken: { code: numberOf(error), message: (error as Error).message } })
      },
    })
    port.on('message', (message: JobMessage) => this.take(message))
    this.answer({ no: 0, result: { records: this.writer.declared() } })
  }

  private answer(message: Answer): void {
    this.port.postMessage(message)
  }

  private take(message: JobMessage): void {
    this.waiting.push(message)
    this.lastNow = Math.max(this.lastNow, message.now)
    if (replacesTables(message)) this.replacing += 1
    if (message.job.kind === 'clear') {
      this.hasSaid = true
      this.replacing = Math.max(0, this.replacing - 1)
    }
    this.schedule()
  }

  private schedule(): void {
    if (this.isScheduled) return
    this.isScheduled = true
    setImmediate(() => this.turn())
  }

  private turn(): void {
    this.isScheduled = false
    if (this.isBroken) return
    this.takeGroup(this.nextGroup())
    const [next] = this.waiting
    if (next?.job.kind === 'close') return this.close(next.no)
    if (this.waiting.length > 0 || (!this.room.isShort && this.sweepStep())) this.schedule()
  }

  private close(no: number): void {
    this.room.close()
    void this.env.root.close().then(() => {
      this.answer({ no, result: undefined })
      this.port.close()
    })
  }

  private nextGroup(): JobMessage[] {
    let bytes = 0
    let jobs = 0
    for (const { job } of this.waiting) {
      if (jobs >= GROUP_JOBS_MAX || bytes >= GROUP_BYTES_MAX || job.kind === 'close') break
      bytes += bytesOf(job)
      jobs += 1
    }
    return this.waiting.splice(0, jobs)
  }

  /** Jobs for which the disk has no room are refused at once; a ping finds out whether it has room again. */
  private takeGroup(group: readonly JobMessage[]): void {
    if (group.length === 0) return
    if (this.room.takes(group.reduce((sum, { job }) => sum + bytesOf(job), 0))) return this.runGroup(group)
    const others = group.filter(({ job }) => job.kind !== 'ping')
    this.refuse(others, this.room.failure())
    for (const ping of group.filter((message) => !others.includes(message)))
      void this.room.check().then(
        () => this.runGroup([ping]),
        (error: unknown) => this.refuse([ping], error),
      )
  }

  private runGroup(group: readonly JobMessage[]): void {
    const bytes = group.reduce((sum, { job }) => sum + bytesOf(job), 0)
    try {
      const results = this.writer.runAll(group)
      for (const [index, { no }] of group.entries()) this.answer({ no, result: results[index] })
    } catch (error) {
      if (isOfDisk(error)) {
        this.room.refused(error, bytes)
        this.refuse(group, error)
      } else if (group.length > 1) for (const message of group) this.runGroup([message])
      else this.refuse(group, error)
    }
  }

  private refuse(messages: readonly JobMessage[], error: unknown): void {
    for (const message of messages) {
      if (replacesTables(message)) this.replacing -= 1
      this.answer({ no: message.no, error: String(error), isFault: error instanceof Misuse })
    }
  }

  // A full disk must not stop the loop: the rest is swept after a later commit.
  private sweepStep(): boolean {
    const { writer, lastNow } = this
    // Tables are cleared only once the store has confirmed that it reads their successors, each of them.
    const mayClear = this.hasSaid && this.replacing === 0
    try {
      return writer.hasSweep(lastNow, mayClear) && writer.sweep(lastNow, mayClear)
    } catch (error) {
      if (isOfDisk(error)) this.room.refused(error, 0)
      this.answer({ no: 0, error: String(error), isFault: false })
      return false
    }
  }
}

const bytesOf = (job: Job): number => {
  if (job.kind === 'putIfAbsent') return job.part.byteLength
  if (job.kind !== 'commit') return 0
  const numbers = job.numbers === undefined ? 0 : bytesOfNumbers(job.numbers)
  return job.parts.reduce((sum, { byteLength }) => sum + byteLength, numbers)
}

/** The driver gives its errors a number, those of this code have none. */
const isOfDisk = (error: unknown): boolean =>
  error instanceof Error && typeof (error as { code?: unknown }).code === 'number'

const replacesTables = ({ job }: JobMessage): boolean =>
  job.kind === 'declare' || job.kind === 'promote' || job.kind === 'reset'
