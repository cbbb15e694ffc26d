import type { PackedFrame } from './pack-points.ts'
import { type CountPoints, Receipt } from './receipt.ts'

/** The connection that a frame came by. */
export interface FrameOwner {
  readonly isOver: boolean
  /** Called when something is to be reported, before it can be durable. */
  frameIsJudged(ticket: FrameTicket): void
  frameIsDurable(ticket: FrameTicket): void
}

/** A frame under way. */
export class FrameTicket extends Receipt {
  isDurable = false
  readonly seq: number
  private readonly connection: FrameOwner

  constructor(connection: FrameOwner, seq: number, bytes: number, count: CountPoints) {
    super(bytes, count)
    this.connection = connection
    this.seq = seq
  }

  override judged(frame: PackedFrame, duplicates: number): void {
    super.judged(frame, duplicates)
    if (this.rejected.length > 0) this.connection.frameIsJudged(this)
  }

  isPatient(): boolean {
    return !this.connection.isOver
  }

  /** The acknowledgement is withheld; the batcher tries again. */
  refused(): void {}

  protected stored(): void {
    this.isDurable = true
    this.connection.frameIsDurable(this)
  }
}
