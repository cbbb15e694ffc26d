import type { EventLog } from '../../../engines/event-log.ts'
import type { Clock } from '../../../kernel/clock.ts'
import type { NewEvent } from '../../../kernel/event.ts'
import type { Logger } from '../../../kernel/logger.ts'
import { idSource } from '../../../kit/commands/ids.ts'
import { locationStream, POINTS_RECORDED, type LocationEntry, type PointBatch } from '../events.ts'
import { Beat } from './beat.ts'
import { OrganizationLoad, type Ticket } from './queue.ts'
import { PartitionQueue, type BatchLimits, type Work } from './partition-queue.ts'
import { encodePointBatch } from '../point-batch-codec.ts'
import { ROW_BYTES, type PointColumns } from '../point-columns.ts'
import { TokenBucket } from '../../../kernel/token-bucket.ts'

export interface BatcherOptions {
  log: EventLog
  clock: Clock
  logger: Logger
  partitions: number
  limits: BatcherLimits
  /** Called after each append with its entry: for `PartitionFeed.offer`. */
  onAppended: (entry: LocationEntry) => void
  /** Starts a stopwatch for one append; the returned function stops it. */
  startAppendTimer: () => () => void
}

export interface BatcherLimits extends BatchLimits {
  /** Points and bytes of one organization that wait or are being appended. */
  organizationPointsMax: number
  organizationBytesMax: number
  /** Bytes of all organizations together. */
  bytesMax: number
  /** `--org-points-per-second`; absent: no rate. */
  organizationPointsPerSecond?: number
}

export const BATCHER_LIMITS: BatcherLimits = {
  batchPointsMax: 4_000,
  batchBytesMax: 256 * 1024,
  organizationPointsMax: 1_000_000,
  organizationBytesMax: 64 * 1024 * 1024,
  bytesMax: 512 * 1024 * 1024,
}

/** In points; after a smaller append its partition waits for the next beat. */
const SMALL_BATCH = 200
/** Gathering longer than this turns larger batches into small ones. */
const GATHER_MS = 10
const RETRY_MS = [50, 200, 1_000, 2_000, 5_000]
/** Idle organizations whose columns are kept. */
const IDLE_KEPT = 1_000

/**
 * Turns frames into appends. Points wait by organization and partition; each partition has one append in flight, the
 * next takes the points that came meanwhile, organizations in turn. A ticket is notified once all its points are
 * durable. A refused append is retried for ever: nothing is acknowledged meanwhile, and queues fill to their bounds.
 */
export class Batcher {
  readonly options: BatcherOptions
  private readonly queues: PartitionQueue[]
  private readonly loads = new Map<string, OrganizationLoad>()
  private readonly due = new Set<PartitionQueue>()
  private readonly beat: Beat
  private readonly ids
  private readonly running = new Set<Promise<void>>()
  private readonly pauses = new Set<() => void>()
  private bytes = 0
  isClosed = false
  private isStopped = false

  constructor(options: BatcherOptions) {
    this.options = options
    this.queues = Array.from(
      { length: options.partitions },
      (_, partition) => new PartitionQueue(partition, options.limits),
    )
    this.ids = idSource(options.clock.now())
    this.beat = new Beat(
      () => this.startDue(),
      () => options.log.gatherMs,
    )
  }

  private get smallBatch(): number {
    return (SMALL_BATCH * (this.options.log.gatherMs ?? GATHER_MS)) / GATHER_MS
  }

  /** Whether the log currently refuses: submitted points wait. */
  get isRefusing(): boolean {
    return this.queues.some((queue) => queue.failures > 0)
  }

  /** Seconds until the organization's rate allows another request; if 0, the points are taken from the rate. */
  charge(organizationId: string, points: number): number {
    const { bucket } = this.loadOf(organizationId)
    const now = this.options.clock.monotonic()
    return bucket === undefined || bucket.take(points, now) ? 0 : Math.ceil(bucket.waitMs(now) / 1000)
  }

  /** Takes all rows, copied, or none: false if the organization's queue is full. `paid`: already charged. */
  submit(
    organizationId: string,
    columns: PointColumns,
    attributesBytes: number,
    ticket: Ticket,
    paid: boolean,
  ): boolean {
    const load = this.loadOf(organizationId)
    const { limits } = this.options
    const bytes = columns.count * ROW_BYTES + attributesBytes
    if (this.isClosed || load.points + columns.count > limits.organizationPointsMax) return false
    if (load.bytes + bytes > limits.organizationBytesMax || this.bytes + bytes > limits.bytesMax) return false
    this.beat.note()
    for (const queue of load.distribute(columns)) {
      ticket.remaining++
      queue.push({
        queue,
        rows: queue.addedRows,
        bytes: queue.addedBytes,
        ticket,
        paid: paid || load.bucket === undefined,
      })
      load.points += queue.addedRows
      load.bytes += queue.addedBytes
      this.bytes += queue.addedBytes
      this.queues[queue.partition].add(queue)
      this.wake(this.queues[queue.partition])
    }
    return true
  }

  /** Counts a frame that waits for its trackers like queued points; false if the organization's queue is full. */
  hold(organizationId: string, bytes: number): boolean {
    const load = this.loadOf(organizationId)
    const { limits } = this.options
    if (load.bytes + bytes > limits.organizationBytesMax || this.bytes + bytes > limits.bytesMax) return false
    load.bytes += bytes
    this.bytes += bytes
    return true
  }

  /** Ends the count of a held frame. */
  release(organizationId: string, bytes: number): void {
    const load = this.loadOf(organizationId)
    load.bytes -= bytes
    this.bytes -= bytes
  }

  /** Stops accepting points; resolves when all are appended or the time is over. The rest was never acknowledged. */
  async close(deadlineMs: number): Promise<void> {
    this.isClosed = true
    await new Promise<void>((done) => {
      const stop = this.options.clock.after(deadlineMs, done)
      void this.drained().then(() => {
        stop()
        done()
      })
    })
    this.isStopped = true
    for (const resume of this.pauses) resume()
  }

  private async drained(): Promise<void> {
    while (this.running.size > 0 || this.due.size > 0) {
      await Promise.allSettled(this.running)
      await new Promise((next) => setImmediate(next))
    }
  }

  private wake(queue: PartitionQueue): void {
    if (queue.isRunning || this.due.has(queue)) return
    this.due.add(queue)
    this.beat.ask()
  }

  private startDue(): void {
    const queues = [...this.due]
    this.due.clear()
    for (const queue of queues) {
      if (queue.isRunning) continue
      const running = this.run(queue).finally(() => this.running.delete(running))
      this.running.add(running)
    }
  }

  private async run(queue: PartitionQueue): Promise<void> {
    queue.isRunning = true
    while (!this.isStopped) {
      const now = this.options.clock.monotonic()
      const work = queue.next(this.options.clock.now(), now, (load) => this.pauseFor(load, now))
      if (work === undefined) break
      await this.append(queue, work)
      if (work.batch.count >= this.smallBatch) continue
      queue.isRunning = false
      if (queue.hasWaiting) this.wake(queue) // few points: more will go together a moment later
      return
    }
    queue.isRunning = false
  }

  private async append(queue: PartitionQueue, { batch, segments }: Work): Promise<void> {
    const event: NewEvent = {
      id: this.ids.next(),
      type: POINTS_RECORDED,
      data: encodePointBatch(batch),
      isJson: false,
      metadata: {},
    }
    for (;;) {
      const stopTimer = this.options.startAppendTimer()
      try {
        const appended = await this.options.log.append(locationStream(queue.partition), [event], 'any')
        stopTimer()
        queue.failures = 0
        this.settle(queue, batch, segments, appended)
        return
      } catch (error) {
        this.refuse(queue, segments, error)
        await this.pause(RETRY_MS[Math.min(queue.failures++, RETRY_MS.length - 1)])
        if (this.isStopped) return
      }
    }
  }

  private settle(
    own: PartitionQueue,
    batch: PointBatch,
    segments: Work['segments'],
    appended: { revision: number; position: number },
  ): void {
    for (const { queue, rows, bytes, ticket } of segments) {
      const { load } = queue
      load.points -= rows
      load.bytes -= bytes
      this.bytes -= bytes
      if (--ticket.remaining === 0) ticket.durable()
      if (load.points === 0 && load.bytes === 0 && this.loads.size > IDLE_KEPT) this.forget(load)
    }
    this.options.onAppended({
      partition: own.partition,
      revision: appended.revision,
      position: appended.position,
      kind: 'points',
      batch,
    })
  }

  private refuse(queue: PartitionQueue, segments: Work['segments'], error: unknown): void {
    this.options.logger.warn('the log refuses points', {
      partition: queue.partition,
      failures: queue.failures + 1,
      error: String(error),
    })
    for (const { ticket } of segments) ticket.refused(error)
    queue.forEachWaiting(({ ticket }) => ticket.refused(error))
  }

  private pause(delayMs: number): Promise<void> {
    return new Promise((done) => {
      const resume = () => {
        stop()
        this.pauses.delete(resume)
        done()
      }
      const stop = this.options.clock.after(delayMs, resume)
      this.pauses.add(resume)
    })
  }

  /** Wakes the organization's partitions when its rate allows more points. */
  private pauseFor(load: OrganizationLoad, now: number): void {
    if (load.isPaused || load.bucket === undefined) return
    load.isPaused = true
    this.options.clock.after(load.bucket.waitMs(now), () => {
      load.isPaused = false
      for (const queue of load.queues)
        if (queue !== undefined && !queue.isEmpty) this.wake(this.queues[queue.partition])
    })
  }

  private loadOf(organizationId: string): OrganizationLoad {
    const load = this.loads.get(organizationId)
    if (load !== undefined) return load
    const perSecond = this.options.limits.organizationPointsPerSecond
    const made = new OrganizationLoad(
      organizationId,
      perSecond === undefined ? undefined : new TokenBucket(perSecond, this.options.clock.monotonic()),
    )
    this.loads.set(organizationId, made)
    return made
  }

  private forget(load: OrganizationLoad): void {
    if (load.bucket === undefined || load.bucket.isFull(this.options.clock.monotonic()))
      this.loads.delete(load.organizationId)
  }
}
