import { invalid } from '../../kernel/errors.ts'
import { TIME_MS_MAX } from '../../kernel/schema.ts'
import { zoneOffsetAt } from '../../kernel/zone-offset.ts'
import { Rule, ruleFault } from './recurrence-rule.ts'

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

/** Shortest time between two due times of one schedule. */
const GAP_MS_MIN = 5 * 60_000
const LOOKED_AT = 10
/** No zone's clock is set back or forward by more. */
const SHIFT_MS_MAX = 3 * 3_600_000
const DAY_MS = 86_400_000

/** A recurrence has one of both forms. @throws invalid */
export const assertOneForm = ({ rrule, repeat }: { rrule?: unknown; repeat?: unknown }, path = ''): void => {
  if (rrule === undefined && repeat === undefined) throw invalid(`${path}/rrule`, 'is required, or repeat in its place')
  if (rrule !== undefined && repeat !== undefined)
    throw invalid(`${path}/rrule`, 'must not stand beside repeat: either says when it is due')
}

/** Reason why such a schedule cannot be kept; undefined when it can. */
export const recurrenceFault = (recurrence: Recurrence): string | undefined => {
  const { rrule } = recurrence
  const fault = rrule === undefined ? undefined : ruleFault(rrule)
  if (fault !== undefined) return `must ${fault}`
  const beforeMs = Date.parse(recurrence.startTime) - 1_000
  try {
    ruleOf(recurrence, new WallClock(recurrence.timeZone), true)
    const dues = duesAfter(recurrence, beforeMs, LOOKED_AT)
    if (dues.length === 0) return 'is never due'
    const isOften = dues.some((at, i) => i > 0 && at - dues[i - 1] < GAP_MS_MIN)
    return isOften ? 'must be due at most every five minutes' : undefined
  } catch (error) {
    return `must be a rule of RFC 5545 (${(error as Error).message.slice(0, 100)})`
  }
}

/** The first due times after a moment, ms since the epoch. @throws Error for an invalid rule */
export const duesAfter = (recurrence: Recurrence, afterMs: number, count: number): number[] => {
  const dues: number[] = []
  for (const at of eachDueAfter(recurrence, afterMs)) if (dues.push(at) === count) break
  return dues
}

/** The next due time after a moment, RFC 3339; undefined when there is none. @throws Error for an invalid rule */
export const nextAfter = (recurrence: Recurrence, afterMs: number): string | undefined => {
  const [at] = duesAfter(recurrence, afterMs, 1)
  return at === undefined ? undefined : new Date(at).toISOString()
}

/** The due times after a moment, each computed on demand: a thousand of a rare rule take a second. */
export function* eachDueAfter(recurrence: Recurrence, afterMs: number): Generator<number, void> {
  const { timeZone, startTime, endTime } = recurrence
  // Rules have no milliseconds.
  const startMs = Math.floor(Date.parse(startTime) / 1000) * 1000
  const endMs = endTime === undefined ? TIME_MS_MAX : Date.parse(endTime)
  const clock = new WallClock(timeZone)
  let last = Math.max(afterMs, startMs - 1)
  // The rule runs in wall-clock time; a little earlier, since the clock may have been set.
  for (const wallMs of ruleOf(recurrence, clock).after(clock.wallOf(last) - SHIFT_MS_MAX)) {
    const at = clock.instantOf(wallMs)
    if (at > endMs) return
    if (at <= last) continue
    last = at
    yield at
  }
}

const ruleOf = ({ rrule, repeat, startTime }: Recurrence, clock: WallClock, strict = false): Rule => {
  const wall = clock.wallTextOf(Date.parse(startTime))
  const start = repeat === undefined ? wall : `${wall.slice(0, 8)}T${repeat.at.replace(':', '')}00`
  const untilOf = (utc: string): string => clock.wallTextOf(Date.parse(utc.replace(UTC_FORM, '$1-$2-$3T$4:$5:$6Z')))
  return new Rule(repeat === undefined ? (rrule ?? '') : textOf(repeat, wall.slice(4, 6)), start, untilOf, strict)
}

const UTC_FORM = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/

/** In a yearly rule, the day of the month belongs to the month in which the schedule begins. */
const textOf = ({ period, every, weekdays, monthDay }: Repeat, startMonth: string): string =>
  [
    `FREQ=${period.toUpperCase()}`,
    `INTERVAL=${every ?? 1}`,
    ...(weekdays === undefined || weekdays.length === 0
      ? []
      : [`BYDAY=${weekdays.map((day) => day.slice(0, 2).toUpperCase()).join()}`]),
    ...(monthDay === undefined ? [] : [`BYMONTHDAY=${monthDay}`]),
    ...(monthDay === undefined || period !== 'yearly' ? [] : [`BYMONTH=${Number(startMonth)}`]),
  ].join(';')

/** The wall clock of a zone; its times are ms as if it showed UTC. */
class WallClock {
  private readonly timeZone: string
  /** Offset of the clock at the beginning of a day (UTC), by day since the epoch. */
  private readonly offsetsMs = new Map<number, number>()

  constructor(timeZone: string) {
    this.timeZone = timeZone
  }

  wallOf(atMs: number): number {
    return atMs + this.offsetOf(atMs)
  }

  /** As `20261122T073000`. */
  wallTextOf(atMs: number): string {
    return new Date(Math.min(this.wallOf(atMs), TIME_MS_MAX)).toISOString().slice(0, 19).replace(/[-:]/g, '')
  }

  /** The moment when the clock shows a time: the first of two, or in a gap the first moment after it. */
  instantOf(wallMs: number): number {
    const before = this.offsetOf(wallMs - DAY_MS)
    const after = this.offsetOf(wallMs + DAY_MS)
    const found = [wallMs - before, wallMs - after].filter((at) => this.wallOf(at) === wallMs)
    if (found.length > 0) return Math.min(...found)
    let [low, high] = [wallMs - Math.max(before, after), wallMs - Math.min(before, after)]
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2)
      if (this.offsetOf(middle) === after) high = middle
      else low = middle
    }
    return high
  }

  /** No zone changes twice in a day, so a day with equal offsets at both ends takes two lookups in all. */
  private offsetOf(atMs: number): number {
    const day = Math.floor(atMs / DAY_MS)
    const offsetMs = this.offsetAtStartOf(day)
    return offsetMs === this.offsetAtStartOf(day + 1) ? offsetMs : zoneOffsetAt(atMs, this.timeZone)
  }

  private offsetAtStartOf(day: number): number {
    let offsetMs = this.offsetsMs.get(day)
    if (offsetMs === undefined) {
      offsetMs = zoneOffsetAt(day * DAY_MS, this.timeZone)
      this.offsetsMs.set(day, offsetMs)
    }
    return offsetMs
  }
}
