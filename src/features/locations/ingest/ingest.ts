import type { Caller } from '../../../kernel/caller.ts'
import type { Clock } from '../../../kernel/clock.ts'
import type { Logger } from '../../../kernel/logger.ts'
import type { Batcher } from './batcher.ts'
import type { BinaryFrame } from './binary-frame.ts'
import { countRepeats } from './build-batch.ts'
import type { Ticket } from './queue.ts'
import { packBinaryFrame } from './pack-binary.ts'
import { packPoints, PackedFrame } from './pack-points.ts'
import { PointScanner } from './point-scanner.ts'
import type { TrackerResolver } from '../../trackers/views.ts'

/** Points as they came: the parsed list of a JSON frame, or a binary frame. */
export type FrameContent = readonly unknown[] | BinaryFrame

export interface IngestOptions {
  batcher: Batcher
  resolver: TrackerResolver
  clock: Clock
  /** How long history is kept; older points are refused. */
  retentionMs: number
  logger: Logger
  /** Counts points: accepted are those acknowledged. */
  count: (result: 'accepted' | 'duplicate' | 'rejected', points: number) => void
}

/** Frames and requests on their way to the batcher, in three steps: pack, resolve where a tracker is not known yet, submit. */
export class Ingest {
  readonly batcher: Batcher
  readonly clock: Clock
  private readonly options: IngestOptions
  private scratch = new PackedFrame(1024)
  private readonly scanner = new PointScanner()

  constructor(options: IngestOptions) {
    this.options = options
    this.batcher = options.batcher
    this.clock = options.clock
  }

  /** Packs a JSON frame from its bytes where that can be done the short way; undefined where it cannot. As `pack` otherwise. */
  scan(caller: Caller, bytes: Uint8Array): { seq: number; frame: PackedFrame } | undefined {
    const frame = this.scratch
    const { resolver, retentionMs, clock } = this.options
    const seq = this.scanner.scan(bytes, { caller, resolver, retentionMs, now: clock.now() }, frame)
    if (seq === undefined) return undefined
    this.renewScratch(frame)
    return { seq, frame }
  }

  /** Checks and packs. The answer is valid until the next call, unless it has unresolved trackers: then it is the caller's. */
  pack(caller: Caller, content: FrameContent): PackedFrame {
    const frame = this.scratch
    const { resolver, retentionMs, clock } = this.options
    const context = { caller, resolver, retentionMs, now: clock.now() }
    if (isList(content)) packPoints(content, context, frame)
    else packBinaryFrame(content, context, frame)
    this.renewScratch(frame)
    return frame
  }

  /** Finds or makes the trackers that were not known, and takes out the points whose tracker is refused. @throws Failure engine_down. */
  async resolve(caller: Caller, frame: PackedFrame): Promise<void> {
    const trackers = await this.options.resolver.resolve(
      caller,
      frame.unresolved.map(({ name }) => name),
    )
    const { columns } = frame
    const refused = new Set<number>()
    frame.unresolved.forEach(({ row }, i) => {
      const tracker = trackers[i]
      if (typeof tracker !== 'string') columns.tracker[row] = tracker
      else {
        refused.add(row)
        frame.rejectTracker(frame.index[row], tracker)
      }
    })
    frame.unresolved.length = 0
    if (refused.size > 0) frame.keep((row) => !refused.has(row))
    frame.rejected.sort((a, b) => a.index - b.index)
  }

  /** Resolves when lists have the trackers that were made for resolved frames. */
  listed(): Promise<void> {
    return this.options.resolver.listed()
  }

  /** False when the organization's queue is full: nothing was taken. A frame without a good point is durable at once. */
  submit(caller: Caller, frame: PackedFrame, ticket: Ticket, paid: boolean): boolean {
    if (frame.columns.count === 0) {
      this.count(frame, 0, 0)
      ticket.durable()
      return true
    }
    return this.batcher.submit(caller.organizationId, frame.columns, frame.attributesBytes, ticket, paid)
  }

  failed(what: string, error: unknown): void {
    this.options.logger.warn('ingest has to try again', { what, error: String(error) })
  }

  repeats(frame: PackedFrame): number {
    return countRepeats(frame.columns)
  }

  private renewScratch(frame: PackedFrame): void {
    if (frame.unresolved.length > 0 || frame.columns.capacity > SCRATCH_ROWS_MAX) this.scratch = new PackedFrame(1024)
  }

  /** Counts a frame for the metrics, once it is durable (or had nothing to store). */
  count(frame: { rejected: readonly unknown[] }, accepted: number, duplicates: number): void {
    if (accepted > 0) this.options.count('accepted', accepted)
    if (duplicates > 0) this.options.count('duplicate', duplicates)
    if (frame.rejected.length > 0) this.options.count('rejected', frame.rejected.length)
  }
}

/** The scratch of a frame larger than this is not kept. */
const SCRATCH_ROWS_MAX = 16_384

const isList = (content: FrameContent): content is readonly unknown[] => Array.isArray(content)
