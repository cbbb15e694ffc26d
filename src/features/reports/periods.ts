import { invalid } from '../../kernel/errors.ts'

export type Per = 'day' | 'week' | 'month' | 'total'

/** Periods that overlap a time: start of each, ms since the epoch, and its name. */
export interface Periods {
  starts: number[]
  names: string[]
  /** Each period begins at a multiple of this many ms since the epoch. */
  stepMs: number
}

const DAY_MS = 86_400_000
/** Offsets of zones are multiples of it, except historical ones. */
const QUARTER_MS = 900_000
/** Largest offset of any clock from UTC. */
const OFFSET_MS_MAX = 16 * 3_600_000

/** Periods of a time zone from `from` to `to` (inclusive): days of 23 and 25 hours, weeks from Monday on. */
export const periodsOf = (per: Per, from: number, to: number, timeZone: string): Periods => {
  if (per === 'total') return { starts: [from - mod(from, QUARTER_MS)], names: ['total'], stepMs: QUARTER_MS }
  const dateAt = localDates(timeZone)
  const starts: number[] = []
  const names: string[] = []
  for (let day = firstDay(per, dateAt(from)); ; day = nextDay(per, day)) {
    const start = startOf(day, dateAt)
    if (start > to) break
    starts.push(start)
    names.push(nameOf(per, day))
  }
  const stepMs = starts.reduce(divisor, QUARTER_MS)
  return { starts, names, stepMs }
}

/** Days since the epoch in the calendar of a zone, at a moment. @throws Failure invalid for an unknown zone. */
export const localDates = (timeZone: string): ((atMs: number) => number) => {
  const format = formatOf(timeZone)
  return (atMs) => {
    const parts: { [type: string]: number } = {}
    for (const { type, value } of format.formatToParts(atMs)) parts[type] = Number(value)
    return Date.UTC(parts.year, parts.month - 1, parts.day) / DAY_MS
  }
}

const formatOf = (timeZone: string): Intl.DateTimeFormat => {
  try {
    return new Intl.DateTimeFormat('en-US', { timeZone, year: 'numeric', month: 'numeric', day: 'numeric' })
  } catch (error) {
    if (error instanceof RangeError) throw invalid('/timeZone', 'must be an IANA time zone')
    throw error
  }
}

/** First moment of a day: midnight, or the first later one if the clock skips midnight. */
const startOf = (day: number, dateAt: (atMs: number) => number): number => {
  let [before, since] = [day * DAY_MS - OFFSET_MS_MAX, day * DAY_MS + OFFSET_MS_MAX]
  while (since - before > 1_000) {
    const middle = Math.floor((before + since) / 2_000) * 1_000
    if (dateAt(middle) < day) before = middle
    else since = middle
  }
  return since
}

/** ISO 8601 name: `2026-03-29`, `2026-W13`, `2026-03`. */
const nameOf = (per: Per, day: number): string => {
  const text = new Date(day * DAY_MS).toISOString()
  if (per === 'day') return text.slice(0, 10)
  if (per === 'month') return text.slice(0, 7)
  // A week belongs to the year of its Thursday.
  const thursday = new Date((day + 3) * DAY_MS)
  const year = thursday.getUTCFullYear()
  const week = Math.floor((day + 3 - Date.UTC(year, 0, 1) / DAY_MS) / 7) + 1
  return `${year}-W${String(week).padStart(2, '0')}`
}

const firstDay = (per: Per, day: number): number => {
  const date = new Date(day * DAY_MS)
  if (per === 'month') return Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1) / DAY_MS
  return per === 'week' ? day - mod(date.getUTCDay() - 1, 7) : day
}

const nextDay = (per: Per, day: number): number => {
  const date = new Date(day * DAY_MS)
  if (per === 'month') return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1) / DAY_MS
  return day + (per === 'week' ? 7 : 1)
}

const divisor = (a: number, b: number): number => (b === 0 ? a : divisor(b, mod(a, b)))
const mod = (a: number, b: number): number => ((a % b) + b) % b
