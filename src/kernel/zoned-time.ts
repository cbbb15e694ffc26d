const MINUTE_MS = 60_000
const DAY_MS = 86_400_000
const CACHED_MAX = 100_000
/** Years before 0 and after 9999 have a sign and six digits. */
const LOCAL_CHARS = '2026-11-20T08:00:00.000Z'.length

/**
 * A time zone for frequent questions. An offset is kept for a day that begins and ends with it, as no zone changes twice
 * in one (the two closest changes of all zones are four days apart), else for a minute, within which none changes.
 */
export class ZonedTime {
  private readonly timeZone: string
  private readonly minutes = new Map<number, number>()
  /** Null for a day on which the offset changes. */
  private readonly days = new Map<number, number | null>()
  private shown = { offset: 0, text: 'Z' }

  /** @throws RangeError for a name that is none */
  constructor(timeZone: string) {
    this.timeZone = timeZone
    zoneOffsetAt(0, timeZone)
  }

  /** How many ms local time is ahead of UTC at a moment. */
  offsetAt(atMs: number): number {
    if (this.timeZone === 'UTC') return 0
    return this.offsetOfDay(Math.floor(atMs / DAY_MS)) ?? this.offsetOfMinute(Math.floor(atMs / MINUTE_MS))
  }

  /** The moment of a local time, given as if it were UTC: the first if it comes twice, the end of the gap in one. */
  momentOf(localMs: number): number {
    const [before, after] = [this.offsetAt(localMs - DAY_MS), this.offsetAt(localMs + DAY_MS)]
    const early = localMs - Math.max(before, after)
    const late = localMs - Math.min(before, after)
    if (early + this.offsetAt(early) === localMs) return early
    if (late + this.offsetAt(late) === localMs) return late
    return this.afterGap(early, late)
  }

  /** RFC 3339 in local time, in UTC where the local year would not have four digits. */
  text(atMs: number): string {
    const offset = this.offsetAt(atMs)
    if (offset !== this.shown.offset) this.shown = { offset, text: offsetText(offset) }
    const local = new Date(atMs + offset).toISOString()
    return local.length > LOCAL_CHARS ? new Date(atMs).toISOString() : local.slice(0, -1) + this.shown.text
  }

  private offsetOfDay(day: number): number | null {
    const known = this.days.get(day)
    if (known !== undefined) return known
    const [start, end] = [day, day + 1].map((one) => zoneOffsetAt(one * DAY_MS, this.timeZone))
    return kept(this.days, day, start === end ? start : null)
  }

  private offsetOfMinute(minute: number): number {
    const known = this.minutes.get(minute)
    return known ?? kept(this.minutes, minute, zoneOffsetAt(minute * MINUTE_MS, this.timeZone))
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

const kept = <Value>(values: Map<number, Value>, key: number, value: Value): Value => {
  if (values.size >= CACHED_MAX) values.clear()
  values.set(key, value)
  return value
}

const offsetText = (offset: number): string => {
  if (offset === 0) return 'Z'
  const minutes = Math.round(Math.abs(offset) / 60_000)
  return `${offset < 0 ? '-' : '+'}${pad(Math.floor(minutes / 60))}:${pad(minutes % 60)}`
}

const pad = (value: number): string => String(value).padStart(2, '0')

const formats = new Map<string, Intl.DateTimeFormat>()
/** A format takes some kilobytes; there are some 600 names of zones. */
const FORMATS_MAX = 500

/** ms by which a zone's clocks are ahead of UTC at a moment, in ms since the epoch. @throws RangeError for no zone */
const zoneOffsetAt = (atMs: number, timeZone: string): number => {
  const parts: { [type: string]: string } = {}
  for (const { type, value } of formatOf(timeZone).formatToParts(atMs)) parts[type] = value
  const year = parts.era === 'BC' ? 1 - Number(parts.year) : Number(parts.year)
  const local = new Date(0)
  local.setUTCFullYear(year, Number(parts.month) - 1, Number(parts.day))
  local.setUTCHours(Number(parts.hour), Number(parts.minute), Number(parts.second))
  return local.getTime() - Math.floor(atMs / 1_000) * 1_000
}

const formatOf = (timeZone: string): Intl.DateTimeFormat => {
  const known = formats.get(timeZone)
  if (known !== undefined) return known
  if (formats.size >= FORMATS_MAX) formats.clear()
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone,
    hourCycle: 'h23',
    era: 'short',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  })
  formats.set(timeZone, format)
  return format
}
