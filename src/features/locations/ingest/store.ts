import type { Caller } from '../../../kernel/caller.ts'
import type { Clock } from '../../../kernel/clock.ts'
import { Failure } from '../../../kernel/errors.ts'
import type { Logger } from '../../../kernel/logger.ts'
import { pause } from '../../../kit/consumers/retry.ts'
import type { TrackerResolver } from '../../trackers/views.ts'
import { ROW_BYTES } from '../point-columns.ts'
import { Answer, engineDown, RETRY_AFTER_SECONDS, type TripStart } from './answer.ts'
import type { Batcher } from './batcher.ts'
import type { BinaryFrame } from './binary-frame.ts'
import { countRepeats } from './build-batch.ts'
import { packBinaryFrame } from './pack-binary.ts'
import { packPoints, PackedFrame } from './pack-points.ts'
import { PointScanner } from './point-scanner.ts'
import { POINTS_MAX } from './point-schema.ts'
import type { CountPoints, Receipt } from './receipt.ts'
import type { StoredPoints } from './views.ts'

/** Points as received: a list of points as in JSON, or a binary frame. */
export type FrameContent = readonly unknown[] | BinaryFrame

export interface PointStoreOptions {
  batcher: Batcher
  resolver: TrackerResolver
  clock: Clock
  /** How long history is kept; older points are refused. */
  retentionMs: number
  logger: Logger
  count: CountPoints
}

/** Includes the trips that the points start. */
export interface Stored extends StoredPoints {
  tripStarts: readonly TripStart[]
}

const RESOLVE_AGAIN_MS = 500

/**
 * The only entrance for points: pack, find or create trackers, count repeats, submit to the batcher, answer once they
 * are durable. `store` does all of it, for one request or a device's frame; `pack` and `send` are its parts for a
 * sender that numbers its frames and continues meanwhile.
 */
export class PointStore {
  readonly batcher: Batcher
  readonly count: CountPoints
  private readonly options: PointStoreOptions
  private scratch = new PackedFrame(1024)
  private readonly scanner = new PointScanner()

  constructor(options: PointStoreOptions) {
    this.options = options
    this.batcher = options.batcher
    this.count = options.count
  }

  /**
   * Stores points for the owner of the credential: a tracker's device key, a user's token, an ingest key. A bad point
   * never affects the others. @throws Failure too_large, rate_limited, overloaded: nothing was stored; engine_down: may
   * still become durable. All may be sent again.
   */
  async store(caller: Caller, points: FrameContent): Promise<Stored> {
    const count = isList(points) ? points.length : points.count
    if (count > POINTS_MAX) throw new Failure('too_large', { message: `A request takes at most ${POINTS_MAX} points.` })
    if (this.batcher.isRefusing) throw engineDown()
    this.charge(caller, count)
    const frame = this.pack(caller, points)
    const bytes = frame.columns.count * ROW_BYTES + frame.attributesBytes
    const answer = new Answer(this.options.clock, bytes, this.count)
    if (!(await this.send(caller, frame, answer, true))) {
      answer.drop()
      const message = this.batcher.isClosed
        ? 'The service is stopping.'
        : "Your organization's queue of points is full."
      throw new Failure('overloaded', { message, retryAfterSeconds: RETRY_AFTER_SECONDS })
    }
    await answer.given()
    const { accepted, duplicates, rejected, tripStarts } = answer
    return { accepted, duplicates, rejected, tripStarts }
  }

  /** Packs a JSON frame directly from its bytes; undefined if it needs the full parser. Otherwise like `pack`. */
  scan(caller: Caller, bytes: Uint8Array): { seq: number; frame: PackedFrame } | undefined {
    const frame = this.scratch
    const { resolver, retentionMs, clock } = this.options
    const seq = this.scanner.scan(bytes, { caller, resolver, retentionMs, now: clock.now() }, frame)
    if (seq === undefined) return undefined
    this.renewScratch(frame)
    return { seq, frame }
  }

  /** Validates and packs. The result is valid until the next call; with unresolved trackers, the caller owns it. */
  pack(caller: Caller, content: FrameContent): PackedFrame {
    const frame = this.scratch
    const { resolver, retentionMs, clock } = this.options
    const context = { caller, resolver, retentionMs, now: clock.now() }
    if (isList(content)) packPoints(content, context, frame)
    else packBinaryFrame(content, context, frame)
    this.renewScratch(frame)
    return frame
  }

  /**
   * Submits packed points and reports to the receipt. Returns whether they were accepted: immediately, or in a promise
   * if trackers have to be looked up or created. False if the organization's queue is full, or the service stops.
   * `isPaid`: already charged. @throws Failure engine_down, in the promise, if the receipt is not patient.
   */
  send(caller: Caller, frame: PackedFrame, receipt: Receipt, isPaid: boolean): boolean | Promise<boolean> {
    if (frame.unresolved.length === 0) return this.submit(caller, frame, receipt, isPaid)
    // Meanwhile it counts like queued points.
    if (!this.batcher.hold(caller.organizationId, receipt.bytes)) return false
    return this.sendResolved(caller, frame, receipt, isPaid)
  }

  private async sendResolved(caller: Caller, frame: PackedFrame, receipt: Receipt, isPaid: boolean): Promise<boolean> {
    try {
      await this.resolvePatiently(caller, frame, receipt)
    } finally {
      this.batcher.release(caller.organizationId, receipt.bytes)
    }
    receipt.notBefore(this.options.resolver.listed())
    return this.submit(caller, frame, receipt, isPaid)
  }

  private async resolvePatiently(caller: Caller, frame: PackedFrame, receipt: Receipt): Promise<void> {
    for (;;) {
      try {
        return await this.resolve(caller, frame)
      } catch (error) {
        if (!receipt.isPatient()) throw error
        this.options.logger.warn('ingest has to try again', { what: 'trackers of a frame', error: String(error) })
        await pause(this.options.clock, RESOLVE_AGAIN_MS)
      }
    }
  }

  /** Finds or creates unknown trackers; removes points whose tracker is refused. @throws Failure engine_down. */
  private async resolve(caller: Caller, frame: PackedFrame): Promise<void> {
    const trackers = await this.options.resolver.resolve(
      caller,
      frame.unresolved.map(({ name }) => name),
    )
    const { columns } = frame
    const refused = new Set<number>()
    frame.unresolved.forEach(({ row, name }, i) => {
      const tracker = trackers[i]
      if (typeof tracker !== 'string') columns.tracker[row] = tracker
      else {
        refused.add(row)
        frame.rejectTracker(frame.index[row], tracker, name)
      }
    })
    frame.unresolved.length = 0
    if (refused.size > 0) frame.keep((row) => !refused.has(row))
    frame.rejected.sort((a, b) => a.index - b.index)
  }

  /** A frame without a good point is durable immediately. */
  private submit(caller: Caller, frame: PackedFrame, receipt: Receipt, isPaid: boolean): boolean {
    if (this.batcher.isClosed) return false
    receipt.judged(frame, countRepeats(frame.columns))
    if (frame.columns.count > 0)
      return this.batcher.submit(caller.organizationId, frame.columns, frame.attributesBytes, receipt, isPaid)
    receipt.durable()
    return true
  }

  private charge(caller: Caller, points: number): void {
    const retryAfterSeconds = this.batcher.charge(caller.organizationId, points)
    if (retryAfterSeconds > 0)
      throw new Failure('rate_limited', {
        message: 'Your organization sends more points than its rate allows.',
        retryAfterSeconds,
      })
  }

  private renewScratch(frame: PackedFrame): void {
    if (frame.unresolved.length > 0 || frame.columns.capacity > SCRATCH_ROWS_MAX) this.scratch = new PackedFrame(1024)
  }
}

/** Larger scratch frames are not kept. */
const SCRATCH_ROWS_MAX = 16_384

const isList = (content: FrameContent): content is readonly unknown[] => Array.isArray(content)
