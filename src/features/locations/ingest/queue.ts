import { PointColumns, ROW_BYTES } from '../point-columns.ts'
import type { TokenBucket } from '../../../kernel/token-bucket.ts'

/** Notified when every point of one frame or request is durable. */
export interface Ticket {
  /** Partitions that still hold points of it; maintained by the batcher. */
  remaining: number
  durable(): void
  /** The log has refused one append; the points stay and are retried. */
  refused(error: unknown): void
}

/** Points of one frame or request in one partition. They reach the log together, or in consecutive parts. */
export interface Segment {
  queue: OrganizationQueue
  rows: number
  bytes: number
  ticket: Ticket
  /** Its points are already taken from the organization's rate. */
  paid: boolean
}

/** Points of an organization in progress, across all partitions, and its rate. */
export class OrganizationLoad {
  readonly organizationId: string
  readonly bucket: TokenBucket | undefined
  /** By partition. */
  readonly queues: (OrganizationQueue | undefined)[] = []
  points = 0
  bytes = 0
  /** A timer runs until the rate allows more. */
  isPaused = false
  private marks = 0

  constructor(organizationId: string, bucket: TokenBucket | undefined) {
    this.organizationId = organizationId
    this.bucket = bucket
  }

  /** Copies the rows into the queue of each partition; returns the queues that received some. */
  distribute(columns: PointColumns): OrganizationQueue[] {
    const mark = ++this.marks
    const touched: OrganizationQueue[] = []
    for (let from = 0; from < columns.count; ) {
      const { partition } = columns.tracker[from]
      let to = from + 1
      let textBytes = columns.attributes[from].length
      for (; to < columns.count && columns.tracker[to].partition === partition; to++)
        textBytes += columns.attributes[to].length
      const queue = (this.queues[partition] ??= new OrganizationQueue(this, partition))
      if (queue.mark !== mark) {
        queue.mark = mark
        queue.addedRows = 0
        queue.addedBytes = 0
        touched.push(queue)
      }
      queue.columns.reserve(to - from)
      queue.columns.append(columns, from, to)
      queue.addedRows += to - from
      queue.addedBytes += (to - from) * ROW_BYTES + textBytes
      from = to
    }
    return touched
  }
}

const ROWS_KEPT = 4096
const ROWS_AT_FIRST = 16

/** Points of one organization that wait for one partition, first in first out, a segment for each frame. */
export class OrganizationQueue {
  readonly load: OrganizationLoad
  readonly partition: number
  columns = new PointColumns(ROWS_AT_FIRST)
  /** Whether its partition takes from it. */
  isInRing = false
  /** Scratch variables of `distribute`. */
  mark = 0
  addedRows = 0
  addedBytes = 0
  private segments: Segment[] = []
  private taken = 0

  constructor(load: OrganizationLoad, partition: number) {
    this.load = load
    this.partition = partition
  }

  get isEmpty(): boolean {
    return this.taken === this.segments.length
  }

  first(): Segment | undefined {
    return this.segments[this.taken]
  }

  push(segment: Segment): void {
    this.segments.push(segment)
  }

  /** Removes the first segment; its rows stay in the columns until `release`. */
  shift(): void {
    this.taken++
  }

  /** Releases the rows of the segments that were taken. */
  release(row: number): void {
    this.columns.dropTo(row)
    if (this.isEmpty) {
      this.segments = []
      this.taken = 0
      if (this.columns.capacity > ROWS_KEPT) this.columns = new PointColumns(ROWS_AT_FIRST)
    } else if (this.taken > 256) {
      this.segments = this.segments.slice(this.taken)
      this.taken = 0
    }
  }

  forEach(visit: (segment: Segment) => void): void {
    for (let i = this.taken; i < this.segments.length; i++) visit(this.segments[i])
  }
}
