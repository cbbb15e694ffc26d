import type { PackedFrame } from './pack-points.ts'
import { type CountPoints, Receipt } from './receipt.ts'

/** The connection that delivered a frame. */
export interface FrameOwner {
  readonly isOver: boolean
  /** Called if there is something to report, before the frame can be durable. */
  frameIsJudged(ticket: FrameTicket): void
  frameIsDurable(ticket: FrameTicket): void
}

/** A frame in progress, or several that came together. */
export class FrameTicket extends Receipt {
  isDurable = false
  frames = 1
  /** Of its last frame. */
  seq: number
  private readonly connection: FrameOwner

  constructor(connection: FrameOwner, seq: number, bytes: number, count: CountPoints) {
    super(bytes, count)
    this.connection = connection
    this.seq = seq
  }

  /** Adds the next frame; only before its points are submitted. */
  include(seq: number, bytes: number): void {
    this.frames++
    this.seq = seq
    this.bytes += bytes
  }

  /** Adds points of a frame that are all good. */
  judgedGood(points: number, duplicates: number): void {
    this.accepted += points - duplicates
    this.duplicates += duplicates
  }

  override judged(frame: PackedFrame, duplicates: number): void {
    super.judged(frame, duplicates)
    if (this.rejected.length > 0) this.connection.frameIsJudged(this)
  }

  isPatient(): boolean {
    return !this.connection.isOver
  }

  /** The acknowledgement is withheld; the batcher retries. */
  refused(): void {}

  protected stored(): void {
    this.isDurable = true
    this.connection.frameIsDurable(this)
  }
}
