import type { Ticket } from './queue.ts'
import type { Rejected } from './pack-points.ts'

/** The connection that a frame came by. */
export interface FrameOwner {
  frameIsDurable(ticket: FrameTicket): void
}

/** A frame under way. */
export class FrameTicket implements Ticket {
  remaining = 0
  isDurable = false
  readonly seq: number
  readonly bytes: number
  accepted = 0
  duplicates = 0
  rejected: Rejected[] = []
  private readonly connection: FrameOwner
  /** What it still waits for: the log, and what `notBefore` named. */
  private awaited = 1

  constructor(connection: FrameOwner, seq: number, bytes: number) {
    this.connection = connection
    this.seq = seq
    this.bytes = bytes
  }

  /** Acknowledged no sooner than this. */
  notBefore(done: Promise<void>): void {
    this.awaited++
    void done.then(() => this.durable())
  }

  durable(): void {
    if (--this.awaited > 0) return
    this.isDurable = true
    this.connection.frameIsDurable(this)
  }

  /** The acknowledgement is withheld; the batcher tries again. */
  refused(): void {}
}
