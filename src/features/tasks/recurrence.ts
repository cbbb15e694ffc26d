import { RRuleTemporal } from 'rrule-temporal'

/** When a schedule is due. */
export interface Recurrence {
  /** RFC 5545, without DTSTART. */
  rrule?: string
  repeat?: Repeat
  /** IANA. */
  timeZone: string
  /** RFC 3339; nothing is due before or after them. */
  startTime: string
  endTime?: string
}

export interface Repeat {
  period: 'daily' | 'weekly' | 'monthly' | 'yearly'
  /** Default 1. */
  every?: number
  weekdays?: string[]
  monthDay?: number
  /** `HH:MM`. */
  at: string
}

/** Two due times of one schedule lie apart by at least so much. */
const GAP_MS_MIN = 5 * 60_000
const LOOKED_AT = 10
/** No zone's clock is set back or forward by more. */
const SHIFT_MS_MAX = 3 * 3_600_000
const DAY_MS = 86_400_000
/** Steps of a rule that are taken to find the next time. */
const ITERATIONS_MAX = 20_000
/** All times of a rule that counts are walked over, from its first. */
const COUNT_MAX = 10_000

/** Why nobody could keep such a schedule; undefined when they can. */
export const recurrenceFault = (recurrence: Recurrence): string | undefined => {
  if (/\b(SECONDLY|MINUTELY)\b|[\r\n]|DTSTART/i.test(recurrence.rrule ?? ''))
    return 'must be due at most every five minutes, and have no DTSTART'
  if (Number(/COUNT=(\d+)/i.exec(recurrence.rrule ?? '')?.[1] ?? 0) > COUNT_MAX)
    return `must have a COUNT of at most ${COUNT_MAX}, or an end`
  try {
    const dues = duesAfter(recurrence, Date.parse(recurrence.startTime) - 1_000, LOOKED_AT)
    if (dues.length === 0) return 'is never due'
    const isOften = dues.some((at, i) => i > 0 && at - dues[i - 1] < GAP_MS_MIN)
    return isOften ? 'must be due at most every five minutes' : undefined
  } catch (error) {
    return `must be a rule of RFC 5545 (${(error as Error).message.slice(0, 100)})`
  }
}

/** The first due times after a moment, ms since the epoch. @throws Error for a rule that is none */
export const duesAfter = (recurrence: Recurrence, afterMs: number, count: number): number[] => {
  const { timeZone, startTime, endTime } = recurrence
  // Rules know no milliseconds.
  const startMs = Math.floor(Date.parse(startTime) / 1000) * 1000
  const endMs = endTime === undefined ? Number.POSITIVE_INFINITY : Date.parse(endTime)
  const rule = ruleOf(recurrence)
  const dues: number[] = []
  let last = Math.max(afterMs, startMs - 1)
  // The rule runs on the clock on the wall; a little earlier, since that clock may have been set.
  let local = new Date(last + offsetOf(last, timeZone) - SHIFT_MS_MAX)
  while (dues.length < count) {
    const next = rule.next(local)
    if (next === null) break
    local = new Date(next.epochMilliseconds)
    const at = instantOf(next.epochMilliseconds, timeZone)
    if (at > endMs) break
    if (at <= last) continue
    dues.push(at)
    last = at
  }
  return dues
}

/** In wall-clock time, as if it were UTC. */
const ruleOf = ({ rrule, repeat, timeZone, startTime }: Recurrence): RRuleTemporal => {
  const startMs = Date.parse(startTime)
  const wall = new Date(startMs + offsetOf(startMs, timeZone)).toISOString()
  const start = repeat === undefined ? wall.slice(0, 19) : `${wall.slice(0, 10)}T${repeat.at}:00`
  const text = (repeat === undefined ? (rrule ?? '') : textOf(repeat)).replace(/^RRULE:/i, '')
  const dtstart = `${start.replace(/[-:]/g, '')}Z`
  return new RRuleTemporal({
    rruleString: `DTSTART:${dtstart}\nRRULE:${untilInWallTime(text, timeZone)}`,
    maxIterations: ITERATIONS_MAX,
  })
}

const textOf = ({ period, every, weekdays, monthDay }: Repeat): string =>
  [
    `FREQ=${period.toUpperCase()}`,
    `INTERVAL=${every ?? 1}`,
    ...(weekdays === undefined || weekdays.length === 0
      ? []
      : [`BYDAY=${weekdays.map((day) => day.slice(0, 2).toUpperCase()).join()}`]),
    ...(monthDay === undefined ? [] : [`BYMONTHDAY=${monthDay}`]),
  ].join(';')

/** UNTIL is a moment in UTC; the rule runs on the clock on the wall. */
const untilInWallTime = (text: string, timeZone: string): string =>
  text.replace(/UNTIL=(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z/i, (_, y, m, d, h, min, s) => {
    const at = Date.UTC(Number(y), Number(m) - 1, Number(d), Number(h), Number(min), Number(s))
    return `UNTIL=${new Date(at + offsetOf(at, timeZone)).toISOString().slice(0, 19).replace(/[-:]/g, '')}Z`
  })

/**
 * The moment at which the clock on the wall shows a time: where it comes twice the first, where it is left out the first
 * moment after the gap.
 */
const instantOf = (wallMs: number, timeZone: string): number => {
  const before = offsetOf(wallMs - DAY_MS, timeZone)
  const after = offsetOf(wallMs + DAY_MS, timeZone)
  const found = [wallMs - before, wallMs - after].filter((at) => at + offsetOf(at, timeZone) === wallMs)
  if (found.length > 0) return Math.min(...found)
  let [low, high] = [wallMs - Math.max(before, after), wallMs - Math.min(before, after)]
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2)
    if (offsetOf(middle, timeZone) === after) high = middle
    else low = middle
  }
  return high
}

const formats = new Map<string, Intl.DateTimeFormat>()
const FORMATS_MAX = 500

/** ms by which the clocks of a zone are ahead of UTC. */
const offsetOf = (atMs: number, timeZone: string): number => {
  let format = formats.get(timeZone)
  if (format === undefined) {
    if (formats.size >= FORMATS_MAX) formats.clear()
    format = new Intl.DateTimeFormat('en-US', {
      timeZone,
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    })
    formats.set(timeZone, format)
  }
  const parts: { [type: string]: number } = {}
  for (const { type, value } of format.formatToParts(atMs)) parts[type] = Number(value)
  const wall = Date.UTC(parts.year, parts.month - 1, parts.day, parts.hour, parts.minute, parts.second)
  return wall - Math.floor(atMs / 1000) * 1000
}
