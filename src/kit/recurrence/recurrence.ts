import { invalid } from '../../kernel/errors.ts'
import { TIME_MS_MAX } from '../../kernel/schema.ts'
import { ZonedTime } from '../../kernel/zoned-time.ts'
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

const LOOKED_AT = 10
/** No zone's clock is set back or forward by more. */
const SHIFT_MS_MAX = 3 * 3_600_000

/** A recurrence has one of both forms. @throws invalid */
export const assertOneForm = ({ rrule, repeat }: { rrule?: unknown; repeat?: unknown }, path = ''): void => {
  if (rrule === undefined && repeat === undefined) throw invalid(`${path}/rrule`, 'is required, or repeat in its place')
  if (rrule !== undefined && repeat !== undefined)
    throw invalid(`${path}/rrule`, 'must not stand beside repeat: either says when it is due')
}

/** Reason why such a schedule cannot be kept; undefined when it can. `gapMinutes`: the least between two due times. */
export const recurrenceFault = (recurrence: Recurrence, gapMinutes: number): string | undefined => {
  const { rrule } = recurrence
  const tooOften = `be due at most every ${gapMinutes === 1 ? 'minute' : `${gapMinutes} minutes`}`
  const fault = rrule === undefined ? undefined : ruleFault(rrule, tooOften)
  if (fault !== undefined) return `must ${fault}`
  const beforeMs = Date.parse(recurrence.startTime) - 1_000
  try {
    ruleOf(recurrence, new ZonedTime(recurrence.timeZone), true)
    const dues = duesAfter(recurrence, beforeMs, LOOKED_AT)
    if (dues.length === 0) return 'is never due'
    const isOften = dues.some((at, i) => i > 0 && at - dues[i - 1] < gapMinutes * 60_000)
    return isOften ? `must ${tooOften}` : undefined
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
  const zone = new ZonedTime(timeZone)
  let last = Math.max(afterMs, startMs - 1)
  // The rule runs in wall-clock time; a little earlier, since the clock may have been set.
  for (const wallMs of ruleOf(recurrence, zone).after(last + zone.offsetAt(last) - SHIFT_MS_MAX)) {
    const at = zone.momentOf(wallMs)
    if (at > endMs) return
    if (at <= last) continue
    last = at
    yield at
  }
}

const ruleOf = ({ rrule, repeat, startTime }: Recurrence, zone: ZonedTime, strict = false): Rule => {
  const wall = wallText(zone, Date.parse(startTime))
  const start = repeat === undefined ? wall : `${wall.slice(0, 8)}T${repeat.at.replace(':', '')}00`
  const untilOf = (utc: string): string => wallText(zone, Date.parse(utc.replace(UTC_FORM, '$1-$2-$3T$4:$5:$6Z')))
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

/** As `20261122T073000`. */
const wallText = (zone: ZonedTime, atMs: number): string =>
  new Date(Math.min(atMs + zone.offsetAt(atMs), TIME_MS_MAX)).toISOString().slice(0, 19).replace(/[-:]/g, '')
