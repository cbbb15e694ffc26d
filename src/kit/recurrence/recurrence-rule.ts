import { RRuleTemporal } from 'rrule-temporal'

/** The times of a rule with COUNT are counted from its first, whenever the next is asked for. */
const COUNT_MAX = 10_000
/** A week, month or year of a rule is computed whole, with all times of each of its days. */
const TIMES_OF_DAY_MAX = 24
/** Steps to a next time: about a year of hours, eight of days, a century of years; minutes until days and hours repeat. */
const STEPS_MAX: { [freq: string]: number } = {
  MINUTELY: 10_080,
  HOURLY: 9_000,
  DAILY: 3_000,
  WEEKLY: 500,
  MONTHLY: 500,
  YEARLY: 100,
}
/** Parts that a rule of minutes may have. */
const OF_MINUTES = ['FREQ', 'INTERVAL', 'COUNT', 'UNTIL', 'WKST', 'BYDAY', 'BYHOUR']

const HOUR_MS = 3_600_000
const STEP_MS: { [freq: string]: number } = {
  MINUTELY: 60_000,
  HOURLY: HOUR_MS,
  DAILY: 24 * HOUR_MS,
  WEEKLY: 7 * 24 * HOUR_MS,
  MONTHLY: 31 * 24 * HOUR_MS,
  YEARLY: 366 * 24 * HOUR_MS,
}

/** The library heeds only one of each pair, so that it yields days that the rule excludes. */
const APART_IN_A_YEAR = [
  ['BYWEEKNO', 'BYMONTHDAY'],
  ['BYWEEKNO', 'BYYEARDAY'],
  ['BYYEARDAY', 'BYMONTHDAY'],
  ['BYYEARDAY', 'BYDAY'],
]

type Parts = ReadonlyMap<string, string>

const numbers = (from: number, to: number) => (value: string) =>
  value.split(',').every((one) => /^[+-]?\d{1,5}$/.test(one) && Number(one) >= from && Number(one) <= to)
const fromEitherEnd = (max: number) => (value: string) =>
  numbers(-max, max)(value) && value.split(',').every((one) => Number(one) !== 0)
const number = (from: number, to: number) => (value: string) => /^\d{1,5}$/.test(value) && numbers(from, to)(value)

const DAY = '(MO|TU|WE|TH|FR|SA|SU)'
const matching = (pattern: string) => (value: string) => new RegExp(`^${pattern}$`).test(value)

/** The parts of a rule (RFC 5545, 3.3.10) and the valid values of each. */
const PARTS: { [name: string]: (value: string) => boolean } = {
  FREQ: (value) => Object.hasOwn(STEPS_MAX, value),
  INTERVAL: number(1, 1_000),
  COUNT: number(1, COUNT_MAX),
  UNTIL: matching('\\d{8}(T\\d{6}Z?)?'),
  BYSECOND: numbers(0, 59),
  BYMINUTE: numbers(0, 59),
  BYHOUR: numbers(0, 23),
  BYDAY: matching(`([+-]?[1-5]?\\d)?${DAY}(,([+-]?[1-5]?\\d)?${DAY})*`),
  BYMONTHDAY: fromEitherEnd(31),
  BYYEARDAY: fromEitherEnd(366),
  BYWEEKNO: fromEitherEnd(53),
  BYMONTH: numbers(1, 12),
  BYSETPOS: fromEitherEnd(366),
  WKST: matching(DAY),
}

const partsOf = (text: string): [name: string, value: string][] =>
  text
    .replace(/^RRULE:/i, '')
    .toUpperCase()
    .split(';')
    .map((part) => {
      const [name, ...value] = part.split('=')
      return [name, value.join('=')]
    })

/** Fault of a rule's text, as it follows "must"; undefined for none. `tooOften` is that of a rule of seconds. */
export const ruleFault = (text: string, tooOften: string): string | undefined => {
  const parts = partsOf(text)
  const read = new Map(parts)
  const freq = read.get('FREQ')
  if (freq === 'SECONDLY') return tooOften
  if (Number(read.get('COUNT')) > COUNT_MAX) return `have a COUNT of at most ${COUNT_MAX}, or an end`
  const wrong = parts.find(([name, value]) => !Object.hasOwn(PARTS, name) || !PARTS[name](value))
  if (wrong !== undefined) return `be a rule of RFC 5545 (${wrong.join('=').slice(0, 60)} is no part of one here)`
  if (read.size < parts.length) return 'be a rule of RFC 5545 (a part of it stands there twice)'
  if (freq === undefined) return 'be a rule of RFC 5545 (FREQ is missing)'
  const apart = [['COUNT', 'UNTIL'], ...(freq === 'YEARLY' ? APART_IN_A_YEAR : [])]
  const both = apart.find((names) => names.every((name) => read.has(name)))
  if (both !== undefined) return `have ${both.join(' or ')}, not both`
  const beside = freq === 'MINUTELY' ? [...read.keys()].find((name) => !OF_MINUTES.includes(name)) : undefined
  if (beside !== undefined) return `have another FREQ than MINUTELY with ${beside}`
  if (!/^(MINUTELY|HOURLY|DAILY)$/.test(freq) && timesOfDay(read) > TIMES_OF_DAY_MAX)
    return `name at most ${TIMES_OF_DAY_MAX} times of a day, or be daily`
  return undefined
}

const timesOfDay = (parts: Parts): number =>
  ['BYHOUR', 'BYMINUTE', 'BYSECOND'].reduce((times, name) => times * (parts.get(name)?.split(',').length ?? 1), 1)

/** The times of a rule, in wall-clock time as if that were UTC. */
export class Rule {
  private readonly rule: RRuleTemporal
  private readonly stepMs: number
  private readonly stepsMax: number
  private readonly countMax: number
  private readonly isNever: boolean

  /**
   * `text` without DTSTART, `start` as `20261122T073000`; `untilOf` converts an UNTIL in UTC to wall-clock time. With
   * `strict`, anything that the RFC forbids is an error.
   * @throws Error for an invalid rule
   */
  constructor(text: string, start: string, untilOf: (utc: string) => string, strict = false) {
    const parts = new Map(partsOf(text))
    const until = parts.get('UNTIL')
    if (until !== undefined) parts.set('UNTIL', wallUntil(until, untilOf))
    // The library counts from the first time again at each look.
    this.countMax = Number(parts.get('COUNT') ?? Number.POSITIVE_INFINITY)
    parts.delete('COUNT')
    const sent = libraryRule(parts, start, 1, strict)
    const hours = hoursOfDay(parts, start)
    const taken = hours === undefined ? parts : daily(parts, hours)
    const freq = taken.get('FREQ') ?? ''
    const interval = Number(taken.get('INTERVAL') ?? 1)
    const steps = freq === 'HOURLY' ? Math.ceil(STEPS_MAX.HOURLY / interval) : (STEPS_MAX[freq] ?? 1)
    this.stepMs = (STEP_MS[freq] ?? HOUR_MS) * interval
    this.stepsMax = Math.ceil(steps / 3)
    this.isNever = hours?.length === 0
    this.rule = hours?.length === 0 ? sent : libraryRule(taken, start, steps)
  }

  /** Its times after a moment, in order. */
  *after(wallMs: number): Generator<number, void> {
    if (this.countMax === Number.POSITIVE_INFINITY) return yield* this.endless(wallMs)
    let counted = 0
    for (const time of this.endless(this.rule.options().dtstart.epochMilliseconds - 1)) {
      if (++counted > this.countMax) return
      if (time > wallMs) yield time
    }
  }

  /** Ends where no time comes within the allowed steps. */
  private *endless(wallMs: number): Generator<number, void> {
    if (this.isNever) return
    let from = wallMs
    for (let steps = 1; ; steps = Math.min(2 * steps, this.stepsMax)) {
      const first = unlessTooFar(() => this.rule.next(new Date(from)))
      if (first == null) return
      from = first.epochMilliseconds
      yield from
      // Many at once cost a fraction of as many single searches for the next.
      const end = new Date(from + steps * this.stepMs)
      for (const { epochMilliseconds } of unlessTooFar(() => this.rule.between(new Date(from), end)) ?? []) {
        from = epochMilliseconds
        yield from
      }
    }
  }
}

const libraryRule = (parts: Parts, start: string, maxIterations: number, strict = false): RRuleTemporal =>
  new RRuleTemporal({
    rruleString: `DTSTART:${start}Z\nRRULE:${[...parts].map((part) => part.join('=')).join(';')}`,
    maxIterations,
    strict,
  })

/** The hours of a day when an hourly rule is due, where they are the same each day: days are fewer steps than hours. */
const hoursOfDay = (parts: Parts, start: string): number[] | undefined => {
  const interval = Number(parts.get('INTERVAL') ?? 1)
  if (parts.get('FREQ') !== 'HOURLY' || 24 % interval !== 0 || parts.has('BYSETPOS') || parts.has('BYYEARDAY'))
    return undefined
  const asked = parts.get('BYHOUR')?.split(',').map(Number)
  const first = Number(start.slice(9, 11)) % interval
  const hours = Array.from({ length: 24 / interval }, (_, i) => first + i * interval)
  return hours.filter((hour) => asked === undefined || asked.includes(hour))
}

const daily = (parts: Parts, hours: readonly number[]): Map<string, string> => {
  const { INTERVAL: _interval, ...others } = Object.fromEntries(parts)
  return new Map(Object.entries({ ...others, FREQ: 'DAILY', BYHOUR: hours.join() }))
}

const unlessTooFar = <Answer>(look: () => Answer): Answer | undefined => {
  try {
    return look()
  } catch (error) {
    if (/Maximum iterations/.test((error as Error).message)) return undefined
    throw error
  }
}

/** A day alone means the whole day, a time without Z is wall-clock time. */
const wallUntil = (until: string, untilOf: (utc: string) => string): string => {
  if (until.length === 8) return `${until}T235959Z`
  return until.endsWith('Z') ? `${untilOf(until)}Z` : `${until}Z`
}
