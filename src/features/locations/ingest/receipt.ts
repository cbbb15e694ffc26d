import type { PackedFrame } from './pack-points.ts'
import type { Ticket } from './queue.ts'
import type { Rejected } from './views.ts'

/** Counts points: accepted points are those acknowledged. */
export type CountPoints = (result: 'accepted' | 'duplicate' | 'rejected', points: number) => void

const NONE: readonly Rejected[] = []

/** Outcome of a frame's or request's points, for the sender: first how many are good, then that they are durable. */
export abstract class Receipt implements Ticket {
  remaining = 0
  accepted = 0
  /** Points that the frame repeats within itself. */
  duplicates = 0
  rejected: readonly Rejected[] = NONE
  /** Bytes counted while its trackers are looked up. */
  bytes: number
  private readonly count: CountPoints
  /** Outstanding conditions: the log, and the promises of `notBefore`. */
  private awaited = 1

  constructor(bytes: number, count: CountPoints) {
    this.bytes = bytes
    this.count = count
  }

  /** Called before the points are submitted; the memory of the frame is reused afterwards. */
  judged(frame: PackedFrame, duplicates: number): void {
    if (frame.rejected.length > 0) this.rejected = frame.rejected.slice()
    this.accepted = frame.columns.count - duplicates
    this.duplicates = duplicates
  }

  /** Delays the acknowledgement until this resolves. */
  notBefore(done: Promise<void>): void {
    this.awaited++
    void done.then(() => this.durable())
  }

  durable(): void {
    if (--this.awaited > 0) return
    if (this.accepted > 0) this.count('accepted', this.accepted)
    if (this.duplicates > 0) this.count('duplicate', this.duplicates)
    if (this.rejected.length > 0) this.count('rejected', this.rejected.length)
    this.stored()
  }

  /** Whether trackers are looked up again after an engine has refused; otherwise the sender gets the failure. */
  abstract isPatient(): boolean
  /** The log has refused one append; the points stay and are retried. */
  abstract refused(): void
  /** All good points are durable. */
  protected abstract stored(): void
}
