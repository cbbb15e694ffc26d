import { PointColumns } from '../point-columns.ts'
import type { PackedFrame } from './pack-points.ts'

/** The connection whose frames are gathered. */
export interface GatheringOwner {
  /** Called once for all its frames; the memory of the columns is reused afterwards. */
  submitGathered(columns: PointColumns): void
}

/** Larger frames gain nothing. */
const FRAME_POINTS_MAX = 32

/**
 * Small frames that one read of a socket brings, on their way to the batcher together: its cost for each frame is that
 * of many points. Sockets are read one after the other, so the columns hold one connection's frames at a time.
 */
export class GatheredFrames {
  private readonly columns: PointColumns
  private readonly framePointsMax: number
  private owner: GatheringOwner | undefined
  private isFlushDue = false

  constructor(pointsMax: number) {
    this.columns = new PointColumns(pointsMax)
    this.framePointsMax = Math.min(FRAME_POINTS_MAX, pointsMax)
  }

  /** Whether a frame can wait for others: it is small, and nothing about it has to be answered or looked up. */
  takes({ columns, attributesBytes, rejected, unresolved }: PackedFrame): boolean {
    if (columns.count === 0 || columns.count > this.framePointsMax || attributesBytes > 0) return false
    return rejected.length === 0 && unresolved.length === 0
  }

  /** Submits what another connection has sent, and what leaves no room for these points. */
  makeRoom(owner: GatheringOwner, points: number): void {
    if (this.owner !== owner || this.columns.count + points > this.columns.capacity) this.flush()
  }

  /** Adds a frame; room for it was made. */
  add(owner: GatheringOwner, { columns }: PackedFrame): void {
    this.owner = owner
    this.columns.append(columns, 0, columns.count)
    if (this.isFlushDue) return
    this.isFlushDue = true
    // Runs when all sockets that had something to read have been read.
    setImmediate(() => {
      this.isFlushDue = false
      this.flush()
    })
  }

  /** Submits the frames of this connection, so that its next one can follow them by itself. */
  flushOf(owner: GatheringOwner): void {
    if (this.owner === owner) this.flush()
  }

  private flush(): void {
    const { owner } = this
    if (owner === undefined) return
    this.owner = undefined
    try {
      owner.submitGathered(this.columns)
    } finally {
      this.columns.rewind() // in any case: the next points are another's
    }
  }
}
