import { buildBatch, splitBatch, type RowRange } from './build-batch.ts'
import type { PointBatch } from '../events.ts'
import type { OrganizationLoad, OrganizationQueue, Segment } from './queue.ts'

export interface BatchLimits {
  batchPointsMax: number
  /** Encoded bytes of one append. */
  batchBytesMax: number
}

/** One append, and the frames that become durable with it. */
export interface Work {
  batch: PointBatch
  segments: Segment[]
}

/** Points too many for one append: consecutive parts, with no other point of these organizations between. */
interface Split {
  parts: PointBatch[]
  segments: Segment[]
  loads: Set<OrganizationLoad>
}

/** Points that wait for one partition, and the selection for its next append. */
export class PartitionQueue {
  readonly partition: number
  isRunning = false
  /** Consecutive refused appends. */
  failures = 0
  private readonly limits: BatchLimits
  /** Non-empty queues, in turn. */
  private ring: OrganizationQueue[] = []
  private splits: Split[] = []
  private wasPart = false

  constructor(partition: number, limits: BatchLimits) {
    this.partition = partition
    this.limits = limits
  }

  get hasWaiting(): boolean {
    return this.ring.length > 0 || this.splits.length > 0
  }

  add(queue: OrganizationQueue): void {
    if (queue.isInRing) return
    queue.isInRing = true
    this.ring.push(queue)
  }

  /**
   * The next append, stamped `loggedAt`, or undefined if nothing waits, or only points held back by their
   * organization's rate: then `onPaused` is called. `now` is monotonic, for the rate.
   */
  next(loggedAt: number, now: number, onPaused: (load: OrganizationLoad) => void): Work | undefined {
    // Other organizations alternate with the parts of a large request.
    if (this.splits.length > 0 && !this.wasPart) return this.nextPart()
    this.wasPart = false
    const { segments, taken } = this.select(now, onPaused)
    if (segments.length === 0) return this.splits.length === 0 ? undefined : this.nextPart()
    const batch = buildBatch([...taken.values()], loggedAt)
    for (const [queue, { to }] of taken) queue.release(to)
    // Served queues move behind unserved ones.
    const unserved = this.ring.filter((queue) => !taken.has(queue))
    this.ring = [...unserved, ...taken.keys()].filter((queue) => (queue.isInRing = !queue.isEmpty))
    const parts = splitBatch(batch, this.limits.batchPointsMax, this.limits.batchBytesMax)
    if (parts.length === 1) return { batch: parts[0], segments }
    this.splits.push({ parts, segments, loads: new Set(segments.map(({ queue }) => queue.load)) })
    return this.nextPart()
  }

  forEachWaiting(visit: (segment: Segment) => void): void {
    for (const queue of this.ring) queue.forEach(visit)
    for (const { segments } of this.splits) segments.forEach(visit)
  }

  private nextPart(): Work {
    const split = this.splits.shift() as Split
    const batch = split.parts.shift() as PointBatch
    this.wasPart = true
    if (split.parts.length === 0) return { batch, segments: split.segments }
    this.splits.push(split)
    return { batch, segments: [] }
  }

  /** Whole segments, first a fair share of each organization, then any that still fit. */
  private select(now: number, onPaused: (load: OrganizationLoad) => void): Selection {
    const selection: Selection = {
      segments: [],
      taken: new Map(),
      points: this.limits.batchPointsMax,
      bytes: this.limits.batchBytesMax,
    }
    const share = Math.ceil(this.limits.batchPointsMax / Math.max(1, this.ring.length))
    for (const pointsMax of this.ring.length > 1 ? [share, this.limits.batchPointsMax] : [this.limits.batchPointsMax]) {
      for (const queue of this.ring) {
        if (this.splits.some(({ loads }) => loads.has(queue.load))) continue
        if (!take(queue, pointsMax, selection, now)) onPaused(queue.load)
      }
    }
    return selection
  }
}

/** Content of the next append, and the points and bytes that still fit. */
interface Selection {
  segments: Segment[]
  taken: Map<OrganizationQueue, RowRange>
  points: number
  bytes: number
}

/** Moves whole segments from a queue to the selection; false if the organization's rate holds the next one back. */
const take = (queue: OrganizationQueue, pointsMax: number, selection: Selection, now: number): boolean => {
  const range = selection.taken.get(queue) ?? {
    columns: queue.columns,
    from: queue.columns.head,
    to: queue.columns.head,
  }
  for (let segment = queue.first(); segment !== undefined; segment = queue.first()) {
    const fits = segment.rows <= selection.points && encodedGuess(segment) <= selection.bytes
    // A segment too large for any append is taken alone, and split.
    if (selection.segments.length > 0 && (!fits || range.to - range.from >= pointsMax)) return true
    if (!segment.paid && !(queue.load.bucket?.take(segment.rows, now) ?? true)) return false
    queue.shift()
    range.to += segment.rows
    selection.taken.set(queue, range)
    selection.segments.push(segment)
    selection.points -= segment.rows
    selection.bytes -= encodedGuess(segment)
  }
  return true
}

/** Rows in memory exceed encoded ones by about this factor; a batch that turns out larger is split anyway. */
const MEMORY_TO_ENCODED = 30

const encodedGuess = ({ rows, bytes }: Segment): number => bytes - rows * MEMORY_TO_ENCODED
