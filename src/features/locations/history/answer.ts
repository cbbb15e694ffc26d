import type { PointCursor, PointOrder } from '../../../engines/clickhouse-sql/points.ts'
import { writeUuid } from '../../../engines/clickhouse-sql/native-block.ts'
import { Failure } from '../../../kernel/errors.ts'
import { type AnswerFormat, formatterOf, SHOWS_NAMES } from './formats.ts'
import { cursorOf } from './point-cursor.ts'
import type { PointFormatter } from './point-formatter.ts'
import { type PointMember, takeOff } from './point-json.ts'
import {
  compareTrackers,
  pick,
  PointBuffer,
  PointRowsReader,
  type PointRows,
  sameTracker,
  trackerIdAt,
} from './point-rows.ts'
import { continues, continuesSimplified, TrackSimplifier } from './simplify-track.ts'

/** Processing of the engine's answer on its way to the client. Plain values: it is sent to a worker. */
export interface AnswerSpec {
  format: AnswerFormat
  /** Members of a row to answer; default: all. */
  members?: ReadonlySet<PointMember>
  order: PointOrder
  /** Question that a cursor of the next page belongs to. */
  fingerprint?: string
  /** The page is selected in the order of the walk, and written by tracker and time. */
  byTracker?: boolean
  /** Rows of the page; the engine is asked for one more, which shows whether a page follows. */
  limit?: number
  /** Tolerance of simplification in metres: the engine's answer is then complete, by tracker and time. */
  simplifyMeters?: number
  /** Held points are sorted into the order of the walk; only those after this place count. */
  after?: PointCursor
}

/** Most points held for sorting, where no small limit bounds them. */
const HELD_MAX = 4_000_000

/** Result of a name lookup; null for a tracker that is gone. */
export type TrackerName = [trackerId: string, name: string | null]

/** Turns chunks of the engine's answer into chunks for the client, each in two steps: read, then write. */
export class AnswerMaker {
  private readonly spec: AnswerSpec
  private readonly reader = new PointRowsReader()
  private readonly formatter: PointFormatter
  private readonly simplifier: TrackSimplifier | undefined
  private readonly held: HeldPoints | undefined
  private readonly out = new Output()
  private readonly names = new Map<string, string | null>()
  private read: PointRows[] = []
  private started = false
  private written = 0
  private last: PointCursor | undefined
  private more = false

  constructor(spec: AnswerSpec) {
    this.spec = spec
    this.formatter = formatterOf(spec.format, {
      members: spec.members,
      nameOf: (trackerId) => this.names.get(trackerId) ?? undefined,
      continues: spec.simplifyMeters === undefined ? continues : continuesSimplified,
    })
    if (spec.simplifyMeters !== undefined) this.simplifier = new TrackSimplifier(spec.simplifyMeters)
    if (spec.byTracker === true || (spec.simplifyMeters !== undefined && spec.order !== 'tracker'))
      this.held = new HeldPoints(spec)
  }

  /** Returns the trackers whose names `write` needs. */
  push(chunk: Uint8Array): string[] {
    this.read = this.reader.push(chunk)
    if (!SHOWS_NAMES.has(this.spec.format)) return []
    const unknown = new Set<string>()
    for (const rows of this.read) {
      for (let row = 0; row < rows.count; row++) {
        if (row > 0 && sameTracker(rows, row - 1, rows, row)) continue
        const trackerId = trackerIdAt(rows, row)
        if (!this.names.has(trackerId)) unknown.add(trackerId)
      }
    }
    return [...unknown]
  }

  /** The pushed rows in the client's format. */
  write(names: readonly TrackerName[] = []): Uint8Array {
    for (const [trackerId, name] of names) this.names.set(trackerId, name)
    this.begin()
    for (const rows of this.read.splice(0)) {
      for (const left of this.simplifier?.push(rows) ?? [rows]) this.take(left)
    }
    return this.out.take()
  }

  /** The last bytes, and the cursor of the next page; null if nothing follows. */
  end(): { bytes: Uint8Array; nextCursor: string | null } {
    this.reader.end()
    this.begin()
    for (const left of this.simplifier?.end() ?? []) this.take(left)
    if (this.held !== undefined) this.writeHeld(this.held)
    const { order, limit, fingerprint = '' } = this.spec
    const nextCursor =
      this.more && this.last !== undefined && order !== 'tracker' ? cursorOf(this.last, fingerprint) : null
    this.out.add(this.formatter.end(nextCursor, limit ?? null))
    return { bytes: this.out.take(), nextCursor }
  }

  private begin(): void {
    if (!this.started) this.out.add(this.formatter.start())
    this.started = true
  }

  private take(rows: PointRows): void {
    if (this.held === undefined) this.writeRows(rows)
    else this.held.add(rows)
  }

  private writeRows(rows: PointRows): void {
    const to = Math.min(rows.count, (this.spec.limit ?? Number.POSITIVE_INFINITY) - this.written)
    if (to < rows.count) this.more = true
    if (to <= 0) return
    this.written += to
    if (this.spec.members !== undefined) takeOff(rows, this.spec.members)
    this.last = { trackerId: trackerIdAt(rows, to - 1), recordedAt: rows.recordedAt[to - 1] }
    for (let from = 0; from < to; from += TEXT_ROWS)
      this.out.add(this.formatter.rows(rows, from, Math.min(to, from + TEXT_ROWS)))
  }

  private writeHeld(held: HeldPoints): void {
    const page = held.sorted()
    if (this.spec.byTracker !== true) return this.writeRows(page)
    const count = Math.min(page.count, this.spec.limit ?? page.count)
    if (count === 0) return
    const last = { trackerId: trackerIdAt(page, count - 1), recordedAt: page.recordedAt[count - 1] }
    this.writeRows(byTracker(page, count))
    this.last = last
    this.more = count < page.count
  }
}

const byTracker = (rows: PointRows, count: number): PointRows =>
  pick(
    rows,
    places(count).sort((i, j) => compareTrackers(rows, i, rows, j) || rows.recordedAt[i] - rows.recordedAt[j]),
  )

/** The first points of the walk among all added ones, one more than the limit. */
class HeldPoints {
  private readonly spec: AnswerSpec
  private buffer = new PointBuffer(4_096)
  private readonly after: PointRows | undefined

  constructor(spec: AnswerSpec) {
    this.spec = spec
    if (spec.after === undefined) return
    this.after = new PointBuffer(1).rows
    writeUuid(spec.after.trackerId, this.after.tracker, 0)
    this.after.recordedAt[0] = spec.after.recordedAt
  }

  add(rows: PointRows): void {
    let from = 0
    for (let row = 0; row <= rows.count; row++) {
      if (row < rows.count && this.isWanted(rows, row)) continue
      this.buffer.append(rows, from, row)
      from = row + 1
    }
    const { count } = this.buffer.rows
    const { limit } = this.spec
    if (count > HELD_MAX && (limit === undefined || limit > HELD_MAX / 4)) {
      throw new Failure('too_large', {
        message:
          'Too many points are left to bring them into order; leave `order` and `limit` out, or narrow the question.',
      })
    }
    if (limit !== undefined && count > Math.max(4 * (limit + 1), 65_536)) this.keepFirst()
  }

  /** In the order of the walk; one more than the limit if there are enough. */
  sorted(): PointRows {
    this.keepFirst()
    return this.buffer.rows
  }

  private isWanted(rows: PointRows, row: number): boolean {
    return this.after === undefined || this.compare(this.after, 0, rows, row) < 0
  }

  private keepFirst(): void {
    const { rows } = this.buffer
    const order = places(rows.count).sort((i, j) => this.compare(rows, i, rows, j))
    const kept = pick(rows, order.subarray(0, this.spec.limit === undefined ? order.length : this.spec.limit + 1))
    this.buffer = new PointBuffer(kept.count)
    this.buffer.append(kept, 0, kept.count)
  }

  private compare(a: PointRows, i: number, b: PointRows, j: number): number {
    const ascending = a.recordedAt[i] - b.recordedAt[j] || compareTrackers(a, i, b, j)
    return this.spec.order === 'desc' ? -ascending : ascending
  }
}

const encoder = new TextEncoder()

/** Rows per piece of text: a long one is a tree of strings that is expensive to flatten. */
const TEXT_ROWS = 64

/** Text and bytes appended piece by piece; text as UTF-8. */
class Output {
  private bytes = new Uint8Array(4_096)
  private used = 0

  add(part: string | Uint8Array): void {
    const needed = this.used + (typeof part === 'string' ? part.length * 3 : part.length)
    if (needed > this.bytes.length) {
      const larger = new Uint8Array(Math.max(needed, this.bytes.length * 2))
      larger.set(this.bytes.subarray(0, this.used))
      this.bytes = larger
    }
    if (typeof part === 'string') this.used += encoder.encodeInto(part, this.bytes.subarray(this.used)).written
    else {
      this.bytes.set(part, this.used)
      this.used += part.length
    }
  }

  /** Hands its memory over; the next piece is likely to be about as long. */
  take(): Uint8Array {
    const taken = this.bytes.subarray(0, this.used)
    if (this.used > 0) this.bytes = new Uint8Array(this.used + (this.used >> 3))
    this.used = 0
    return taken
  }
}

const places = (count: number): Uint32Array => Uint32Array.from({ length: count }, (_, i) => i)
