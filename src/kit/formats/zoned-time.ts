import { zoneOffsetAt } from '../../kernel/zone-offset.ts'

const QUARTER_MS = 900_000
const CACHED_MAX = 100_000

/** A time zone for frequent questions: the offset is kept for a quarter of an hour, within which no zone changes. */
export class ZonedTime {
  private readonly timeZone: string
  private readonly offsets = new Map<number, number>()

  /** @throws RangeError for a name that is none */
  constructor(timeZone: string) {
    this.timeZone = timeZone
    zoneOffsetAt(0, timeZone)
  }

  /** How many ms local time is ahead of UTC at a moment. */
  offsetAt(atMs: number): number {
    if (this.timeZone === 'UTC') return 0
    const quarter = Math.floor(atMs / QUARTER_MS)
    const known = this.offsets.get(quarter)
    if (known !== undefined) return known
    if (this.offsets.size >= CACHED_MAX) this.offsets.clear()
    const offset = zoneOffsetAt(quarter * QUARTER_MS, this.timeZone)
    this.offsets.set(quarter, offset)
    return offset
  }

  /** The moment of a local time, given as if it were UTC: the first if it comes twice, the end of the gap in one. */
  momentOf(localMs: number): number {
    const [before, after] = [this.offsetAt(localMs - 86_400_000), this.offsetAt(localMs + 86_400_000)]
    const early = localMs - Math.max(before, after)
    const late = localMs - Math.min(before, after)
    if (early + this.offsetAt(early) === localMs) return early
    if (late + this.offsetAt(late) === localMs) return late
    return this.afterGap(early, late)
  }

  /** RFC 3339 in local time. */
  text(atMs: number): string {
    const offset = this.offsetAt(atMs)
    if (offset === 0) return new Date(atMs).toISOString()
    const minutes = Math.round(Math.abs(offset) / 60_000)
    const zone = `${offset < 0 ? '-' : '+'}${pad(Math.floor(minutes / 60))}:${pad(minutes % 60)}`
    return new Date(atMs + offset).toISOString().replace('Z', zone)
  }

  /** The offset changes once between the two. */
  private afterGap(from: number, to: number): number {
    const before = this.offsetAt(from)
    let [low, high] = [from, to]
    while (high - low > 1_000) {
      const middle = Math.floor((low + high) / 2)
      if (this.offsetAt(middle) === before) low = middle
      else high = middle
    }
    return Math.ceil(low / 1_000) * 1_000
  }
}

const pad = (value: number): string => String(value).padStart(2, '0')
