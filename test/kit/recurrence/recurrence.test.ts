import { test } from 'tap'
import { duesAfter, recurrenceFault, type Recurrence } from '../../../src/kit/recurrence/recurrence.ts'

const DAY_MS = 86_400_000
const DAYS = 730

const faultOf = (rule: Recurrence, gapMinutes = 5): string | undefined => recurrenceFault(rule, gapMinutes)

const wall = (at: number, timeZone: string): string =>
  new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short', timeStyle: 'short' }).format(at)

/** Rules of RFC 5545, 3.8.5.3, that begin on 2 September 1997 at 9:00 in New York, and the first dates that it lists. */
const OF_THE_RFC: { [rrule: string]: string } = {
  'FREQ=DAILY;COUNT=10': '1997-09-02 09-03 09-04 09-05 09-06 09-07 09-08 09-09 09-10 09-11 end',
  'FREQ=DAILY;INTERVAL=2': '1997-09-02 09-04 09-06 09-08 09-10 09-12 09-14 09-16 09-18 09-20',
  'FREQ=DAILY;INTERVAL=10;COUNT=5': '1997-09-02 09-12 09-22 10-02 10-12 end',
  'FREQ=WEEKLY;COUNT=10': '1997-09-02 09-09 09-16 09-23 09-30 10-07 10-14 10-21 10-28 11-04 end',
  'FREQ=WEEKLY;INTERVAL=2;WKST=SU': '1997-09-02 09-16 09-30 10-14 10-28 11-11 11-25 12-09 12-23 1998-01-06',
  'FREQ=WEEKLY;COUNT=10;WKST=SU;BYDAY=TU,TH': '1997-09-02 09-04 09-09 09-11 09-16 09-18 09-23 09-25 09-30 10-02 end',
  'FREQ=WEEKLY;INTERVAL=2;COUNT=8;WKST=SU;BYDAY=TU,TH': '1997-09-02 09-04 09-16 09-18 09-30 10-02 10-14 10-16 end',
  'FREQ=MONTHLY;BYMONTHDAY=2,15;COUNT=10': '1997-09-02 09-15 10-02 10-15 11-02 11-15 12-02 12-15 1998-01-02 01-15 end',
  'FREQ=MONTHLY;BYMONTHDAY=1,-1;COUNT=10': '1997-09-30 10-01 10-31 11-01 11-30 12-01 12-31 1998-01-01 01-31 02-01 end',
  'FREQ=MONTHLY;INTERVAL=2;BYDAY=TU': '1997-09-02 09-09 09-16 09-23 09-30 11-04 11-11 11-18 11-25 1998-01-06',
  'FREQ=YEARLY;INTERVAL=4;BYMONTH=11;BYDAY=TU;BYMONTHDAY=2,3,4,5,6,7,8': '1997-11-04 2001-11-06 2005-11-08',
  'FREQ=MONTHLY;COUNT=3;BYDAY=TU,WE,TH;BYSETPOS=3': '1997-09-04 10-07 11-06 end',
  'FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-2': '1997-09-29 10-30 11-27 12-30 1998-01-29 02-26 03-30',
  'FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13': '1998-02-13 03-13 11-13 1999-08-13 2000-10-13',
  'FREQ=MONTHLY;BYDAY=SA;BYMONTHDAY=7,8,9,10,11,12,13': '1997-09-13 10-11 11-08 12-13 1998-01-10 02-07 03-07',
  'FREQ=YEARLY;BYDAY=20MO': '1998-05-18 1999-05-17 2000-05-15',
  'FREQ=YEARLY;BYMONTH=6,7;COUNT=4': '1998-06-02 07-02 1999-06-02 07-02 end',
  'FREQ=YEARLY;INTERVAL=3;COUNT=4;BYYEARDAY=1,100,200': '2000-01-01 04-09 07-18 2003-01-01 end',
  'FREQ=MONTHLY;COUNT=6;BYDAY=-2MO': '1997-09-22 10-20 11-17 12-22 1998-01-19 02-16 end',
  'FREQ=MONTHLY;BYMONTHDAY=-3': '1997-09-28 10-29 11-28 12-29 1998-01-29 02-26',
}

const datesOf = (text: string): { dates: string[]; ends: boolean } => {
  let year = ''
  const parts = text.split(' ')
  const dates = parts
    .filter((part) => part !== 'end')
    .map((part) => {
      if (part.length === 10) year = part.slice(0, 4)
      return part.length === 10 ? part : `${year}-${part}`
    })
  return { dates, ends: parts.at(-1) === 'end' }
}

test('rules of the RFC are due on the dates that it lists, at nine in New York in summer and winter', async (t) => {
  const timeZone = 'America/New_York'
  for (const [rrule, text] of Object.entries(OF_THE_RFC)) {
    const rule: Recurrence = { rrule, timeZone, startTime: '1997-09-02T13:00:00Z' }
    const { dates, ends } = datesOf(text)
    const dues = duesAfter(rule, Date.parse(rule.startTime) - 1, dates.length + (ends ? 1 : 0))
    t.same(
      dues.map((at) => wall(at, timeZone)),
      dates.map((date) => `${date} 09:00`),
      rrule,
    )
    t.equal(faultOf(rule), undefined, `${rrule} is accepted`)
  }
})

/** Zones with every kind of change: north, south, half an hour, by decree, none. */
const ZONES = ['Europe/Warsaw', 'America/New_York', 'Australia/Lord_Howe', 'America/Santiago', 'Asia/Kathmandu', 'UTC']

test('a daily schedule is due once on each day of two years, in each zone, at its time or right after the gap', {
  timeout: 900_000,
}, async (t) => {
  for (const timeZone of ZONES)
    for (const at of ['00:00', '02:30', '23:45']) {
      const from = Date.parse('2026-01-01T12:00:00Z')
      const rule: Recurrence = { repeat: { period: 'daily', at }, timeZone, startTime: '2026-01-01T12:00:00Z' }
      const dues = duesAfter(rule, from, DAYS)
      const local = dues.map((due) => wall(due, timeZone))
      const days = new Set(local.map((one) => one.slice(0, 10)))
      const shifted = local.filter((one) => one.slice(11) !== at)
      t.equal(days.size, DAYS, `${timeZone} ${at}: each day once`)
      t.ok(
        dues.every((due, i) => i === 0 || Math.abs(due - dues[i - 1] - DAY_MS) <= 3_600_000),
        `${timeZone} ${at}: a day lasts 23 to 25 hours`,
      )
      t.ok(shifted.length <= 2, `${timeZone} ${at}: off its time on days without it alone`)
      for (const due of dues.filter((_, i) => local[i].slice(11) !== at))
        t.not(
          offset(due - 1, timeZone),
          offset(due, timeZone),
          `${wall(due, timeZone)} is the first moment after a gap`,
        )
      for (let i = 1; i < dues.length; i += 61)
        t.same(
          duesAfter(rule, dues[i - 1], 1),
          [dues[i]],
          `${timeZone} ${at}: the same when it goes on after a restart`,
        )
    }
})

const offset = (at: number, timeZone: string): string | undefined =>
  new Intl.DateTimeFormat('en-US', { timeZone, timeZoneName: 'longOffset' })
    .formatToParts(at)
    .find(({ type }) => type === 'timeZoneName')?.value

test('the simple form gives the same as its rule, and skips months that lack the day', async (t) => {
  const timeZone = 'Europe/Warsaw'
  const first = (repeat: Recurrence['repeat'], count: number): string[] => {
    const startTime = '2026-01-01T00:00:00Z'
    return duesAfter({ repeat, timeZone, startTime }, Date.parse(startTime), count).map((at) => wall(at, timeZone))
  }
  t.same(first({ period: 'monthly', monthDay: 31, at: '07:30' }, 4), [
    '2026-01-31 07:30',
    '2026-03-31 07:30',
    '2026-05-31 07:30',
    '2026-07-31 07:30',
  ])
  t.same(first({ period: 'yearly', monthDay: 5, at: '07:30' }, 2), ['2026-01-05 07:30', '2027-01-05 07:30'])
  t.same(first({ period: 'weekly', every: 2, weekdays: ['mon', 'thu'], at: '07:30' }, 4), [
    '2026-01-01 07:30',
    '2026-01-12 07:30',
    '2026-01-15 07:30',
    '2026-01-26 07:30',
  ])
  t.same(
    duesAfter(
      { rrule: 'FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29', timeZone, startTime: '2026-01-01T08:00:00Z' },
      Date.parse('2026-01-01T08:00:00Z'),
      2,
    ).map((at) => wall(at, timeZone)),
    ['2028-02-29 09:00', '2032-02-29 09:00'],
  )
})

test('a rule that would count for ever is refused', async (t) => {
  const rule = (rrule: string): Recurrence => ({ rrule, timeZone: 'UTC', startTime: '2015-01-01T00:00:00Z' })
  t.match(faultOf(rule('FREQ=HOURLY;COUNT=10001')), /COUNT/)
  t.equal(faultOf(rule('FREQ=HOURLY;COUNT=10000')), undefined)
  t.same(duesAfter(rule('FREQ=HOURLY;COUNT=10000'), Date.parse('2026-01-01'), 1), [], 'it has ended long ago')
})

test('a rule may be due every minute where that is the least, on whatever day it is asked', async (t) => {
  const EVERY_MINUTE = [
    'FREQ=MINUTELY',
    'FREQ=MINUTELY;INTERVAL=1;BYDAY=MO,TU,WE,TH,FR;BYHOUR=7,8',
    'FREQ=DAILY;BYHOUR=9;BYMINUTE=0,1,2',
  ]
  for (const rrule of EVERY_MINUTE) {
    const rule: Recurrence = { rrule, timeZone: 'Europe/Warsaw', startTime: '1997-09-02T05:00:00Z' }
    t.match(faultOf(rule), /every 5 minutes/)
    t.equal(faultOf(rule, 1), undefined, rrule)
    const [first, second] = duesAfter(rule, Date.parse('2026-11-28T12:00:00Z'), 2)
    t.equal(second - first, 60_000, 'counted from the start of thirty years ago')
  }
  for (const rrule of ['FREQ=SECONDLY;INTERVAL=60', 'FREQ=DAILY;BYSECOND=0,59'])
    t.match(faultOf({ rrule, timeZone: 'UTC', startTime: '2026-11-28T12:00:00Z' }, 1), /every minute/, rrule)
})

test('a rule of minutes is due as the RFC lists it', async (t) => {
  const timeZone = 'America/New_York'
  const timesOf = (rrule: string, count = 10): string => {
    const rule: Recurrence = { rrule, timeZone, startTime: '1997-09-02T13:00:00Z' }
    t.equal(faultOf(rule), undefined, rrule)
    return duesAfter(rule, 0, count)
      .map((at) => wall(at, timeZone).slice(8))
      .join(', ')
  }
  t.equal(timesOf('FREQ=MINUTELY;INTERVAL=15;COUNT=6'), '02 09:00, 02 09:15, 02 09:30, 02 09:45, 02 10:00, 02 10:15')
  t.equal(timesOf('FREQ=MINUTELY;INTERVAL=90;COUNT=4'), '02 09:00, 02 10:30, 02 12:00, 02 13:30')
  const hours = Array.from({ length: 8 }, (_, i) => i + 9)
  const days = ['02', '03'].flatMap((day) =>
    hours.flatMap((hour) => ['00', '20', '40'].map((minute) => `${day} ${String(hour).padStart(2, '0')}:${minute}`)),
  )
  t.equal(timesOf(`FREQ=MINUTELY;INTERVAL=20;BYHOUR=${hours.join()}`, 48), days.join(', '))
  const rare: Recurrence = {
    rrule: 'FREQ=MINUTELY;INTERVAL=11;BYDAY=MO;BYHOUR=9',
    timeZone: 'UTC',
    startTime: '1997-09-02T13:00:00Z',
  }
  const [late] = duesAfter(rare, Date.parse('2026-11-24T00:00:00Z'), 1)
  t.equal(new Date(late).getUTCDay(), 1)
  t.equal((late - Date.parse(rare.startTime)) % (11 * 60_000), 0, 'counted from the start of thirty years ago')
})

test('a rule begins with the second of its start', async (t) => {
  const rule: Recurrence = { rrule: 'FREQ=DAILY;COUNT=1', timeZone: 'UTC', startTime: '2026-11-22T09:05:43.217Z' }
  t.equal(faultOf(rule), undefined)
  t.same(duesAfter(rule, Date.parse('2026-11-20'), 2), [Date.parse('2026-11-22T09:05:43Z')])
})

/** Each begins at a quarter past seven in the morning of 1 January 2026 in Warsaw. */
const MANY = [
  ...Object.keys(OF_THE_RFC).filter((rrule) => !rrule.includes('COUNT')),
  'FREQ=HOURLY;INTERVAL=7;BYDAY=MO,SU',
  'FREQ=HOURLY;BYMONTH=3,10;BYMONTHDAY=29,30,31',
  'FREQ=DAILY;BYHOUR=1,2,3;BYMINUTE=0,30',
  'FREQ=DAILY;INTERVAL=3;COUNT=200',
  'FREQ=WEEKLY;INTERVAL=3;BYDAY=SA,SU;BYHOUR=2;BYMINUTE=30',
  'FREQ=YEARLY;BYWEEKNO=1,53;BYDAY=MO',
  'FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29',
  'RRULE:FREQ=DAILY;UNTIL=20260301',
]

test('many due times at once are those that come one after the other', async (t) => {
  for (const rrule of MANY) {
    const rule: Recurrence = { rrule, timeZone: 'Europe/Warsaw', startTime: '2026-01-01T06:15:00Z' }
    t.equal(faultOf(rule), undefined, rrule)
    const dues = duesAfter(rule, Date.parse(rule.startTime), 80)
    for (let i = 1; i < dues.length; i += 9) t.same(duesAfter(rule, dues[i - 1], 1), [dues[i]], `${rrule}: ${i}`)
    if (dues.length < 80) t.same(duesAfter(rule, dues.at(-1) ?? 0, 1), [], `${rrule} has ended`)
  }
})

/** By counting hours and days from the start: what the library had wrong up to 2.2.0. */
const hoursOf = (everyHours: number, matches: (at: Date) => boolean, count: number): string[] => {
  const found: string[] = []
  for (let at = Date.parse('2026-01-01T07:15:00Z'); found.length < count; at += everyHours * 3_600_000)
    if (matches(new Date(at))) found.push(new Date(at).toISOString())
  return found
}

test('an interval is counted from the start, whatever days and hours the rule names', async (t) => {
  const rules: { [rrule: string]: string[] } = {
    'FREQ=HOURLY;INTERVAL=7;BYDAY=MO,SU': hoursOf(7, (at) => at.getUTCDay() < 2, 60),
    'FREQ=HOURLY;BYDAY=MO': hoursOf(1, (at) => at.getUTCDay() === 1, 60),
    'FREQ=HOURLY;INTERVAL=6': hoursOf(6, () => true, 60),
    'FREQ=HOURLY;INTERVAL=8;BYHOUR=7,9,23;BYMONTH=2': hoursOf(
      8,
      (at) => [7, 9, 23].includes(at.getUTCHours()) && at.getUTCMonth() === 1,
      40,
    ),
    'FREQ=HOURLY;INTERVAL=9;BYYEARDAY=1,32': hoursOf(9, (at) => at.getUTCDate() === 1 && at.getUTCMonth() < 2, 12),
    'FREQ=HOURLY;INTERVAL=5;BYHOUR=3,9': hoursOf(5, (at) => [3, 9].includes(at.getUTCHours()), 60),
    'FREQ=DAILY;INTERVAL=3;BYDAY=MO': hoursOf(72, (at) => at.getUTCDay() === 1, 60),
    'FREQ=WEEKLY;INTERVAL=3;BYMONTH=3,5': hoursOf(504, (at) => [2, 4].includes(at.getUTCMonth()), 20),
    'FREQ=DAILY;INTERVAL=3;BYMONTH=2,5;COUNT=25': hoursOf(72, (at) => [1, 4].includes(at.getUTCMonth()), 25),
  }
  for (const [rrule, times] of Object.entries(rules)) {
    const rule: Recurrence = { rrule, timeZone: 'UTC', startTime: '2026-01-01T07:15:00Z' }
    const late = duesAfter(rule, Date.parse(times[10]), times.length)
    const dues = duesAfter(rule, 0, times.length).map((at) => new Date(at).toISOString())
    t.same(dues, times, rrule)
    t.same(
      late.slice(0, times.length - 11).map((at) => new Date(at).toISOString()),
      times.slice(11),
      `${rrule}, asked later`,
    )
  }
})

test('an end that names a day includes it, one without a zone is on the wall', async (t) => {
  const count = (until: string): number =>
    duesAfter(
      { rrule: `FREQ=DAILY;UNTIL=${until}`, timeZone: 'Europe/Warsaw', startTime: '2026-11-20T20:00:00Z' },
      0,
      9,
    ).length
  t.equal(count('20261122'), 3)
  t.equal(count('20261122T210000'), 3)
  t.equal(count('20261122T205959'), 2)
  t.equal(count('20261122T200000Z'), 3)
  t.equal(count('20261122T195959Z'), 2)
})

test('a rule that is never due, or that no calendar knows, is refused in a few steps', async (t) => {
  const REFUSED: { [rrule: string]: RegExp } = {
    'FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30': /^is never due$/,
    'FREQ=WEEKLY;BYMONTH=2;BYDAY=5MO': /RFC 5545/,
    'FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30;COUNT=5000': /^is never due$/,
    'FREQ=HOURLY;INTERVAL=5;BYMONTH=6;BYMONTHDAY=31': /^is never due$/,
    'FREQ=HOURLY;BYMONTH=6;BYMONTHDAY=31': /^is never due$/,
    'FREQ=HOURLY;INTERVAL=2;BYHOUR=8': /^is never due$/,
    'FREQ=YEARLY;BYWEEKNO=53;BYDAY=MO;BYMONTH=6': /^is never due$/,
    'FREQ=SECONDLY': /every 5 minutes/,
    'FREQ=MINUTELY;INTERVAL=4': /every 5 minutes/,
    'FREQ=MINUTELY;INTERVAL=10;BYMONTH=2': /another FREQ than MINUTELY with BYMONTH/,
    'FREQ=DAILY;BYMINUTE=0,1': /every 5 minutes/,
    'FREQ=DAILY;COUNT=-1': /RFC 5545 \(COUNT=-1/,
    'FREQ=DAILY;COUNT=0': /RFC 5545/,
    'FREQ=DAILY;COUNT=2;UNTIL=20300101T000000Z': /not both/,
    'FREQ=DAILY;BYMONTH=13': /BYMONTH=13 is no part/,
    'FREQ=DAILY;BYHOURS=3': /BYHOURS=3 is no part/,
    'FREQ=DAILY;FREQ=WEEKLY': /twice/,
    'FREQ=DAILY;__proto__=1': /RFC 5545/,
    'INTERVAL=2': /FREQ is missing/,
    'FREQ=MONTHLY;BYSETPOS=1': /RFC 5545/,
    'FREQ=WEEKLY;BYMONTHDAY=3': /RFC 5545/,
    [`FREQ=YEARLY;BYHOUR=${Array.from({ length: 24 }, (_, i) => i).join()};BYMINUTE=0,30`]: /at most 24 times of a day/,
    '': /RFC 5545/,
  }
  for (const [rrule, fault] of Object.entries(REFUSED))
    t.match(faultOf({ rrule, timeZone: 'Europe/Warsaw', startTime: '2026-01-01T06:15:00Z' }) ?? '', fault, rrule)
})

test('a rule is due on the days that all its parts name, or refused', (t) => {
  const dateOf = (at: number, part: 'month' | 'day' | 'weekday'): string =>
    new Intl.DateTimeFormat('en', { timeZone: 'UTC', [part]: part === 'weekday' ? 'short' : 'numeric' }).format(at)
  const isoWeekOf = (at: number): number => {
    const thursday = at + (3 - ((new Date(at).getUTCDay() + 6) % 7)) * DAY_MS
    return 1 + Math.floor(dayOfYear(thursday) / 7)
  }
  const dayOfYear = (at: number): number => (at - Date.UTC(new Date(at).getUTCFullYear(), 0, 1)) / DAY_MS
  const parts: { [part: string]: (at: number) => boolean } = {
    'BYWEEKNO=53': (at) => isoWeekOf(at) === 53,
    'BYWEEKNO=20': (at) => isoWeekOf(at) === 20,
    'BYMONTHDAY=1': (at) => dateOf(at, 'day') === '1',
    'BYYEARDAY=121': (at) => dayOfYear(at) === 120,
    'BYMONTH=5': (at) => dateOf(at, 'month') === '5',
    'BYMONTH=1': (at) => dateOf(at, 'month') === '1',
    'BYDAY=FR': (at) => dateOf(at, 'weekday') === 'Fri',
  }
  const names = Object.keys(parts)
  const from = Date.parse('2026-01-01T00:00:00Z')
  const days = Array.from({ length: 7 * 365 }, (_, i) => from + i * DAY_MS)
  const daysOf = new Map(names.map((name) => [name, new Set(days.filter(parts[name]))]))
  let refused = 0
  for (let bits = 1; bits < 2 ** names.length; bits++) {
    const named = names.filter((_, i) => bits & (2 ** i))
    const kinds = new Set(named.map((name) => name.split('=')[0]))
    // Without a part that names days, the day of the start counts.
    if (kinds.size < named.length || !/MONTHDAY|YEARDAY|BYDAY/.test(named.join())) continue
    const rule = { rrule: `FREQ=YEARLY;${named.join(';')}`, timeZone: 'UTC', startTime: '2026-01-01T00:00:00Z' }
    const fault = faultOf(rule)
    if (fault !== undefined && fault !== 'is never due') {
      t.match(fault, /not both$/, rule.rrule)
      refused++
      continue
    }
    const wanted = days.filter((at) => named.every((name) => daysOf.get(name)?.has(at)))
    const endTime = new Date(days.at(-1) as number).toISOString()
    t.same(duesAfter({ ...rule, endTime }, from - 1, 400), wanted, rule.rrule)
  }
  t.ok(refused > 0)
  t.end()
})

test('a rule ends with the last year that times can name', (t) => {
  const rule: Recurrence = { rrule: 'FREQ=YEARLY;INTERVAL=1000', timeZone: 'UTC', startTime: '2030-01-01T00:00:00Z' }
  const dues = duesAfter(rule, Date.parse(rule.startTime), 1_000).map((at) => new Date(at).toISOString())
  t.same(dues.at(-1), '9030-01-01T00:00:00.000Z')
  t.equal(dues.length, 7)
  const last = { rrule: 'FREQ=DAILY', timeZone: 'Europe/Warsaw', startTime: '9999-12-31T23:59:59Z' }
  t.equal(faultOf(last), 'is never due', 'where the clock on the wall shows a later one')
  t.end()
})

const iso = (times: readonly number[]): string[] => times.map((at) => new Date(at).toISOString().slice(0, 16))

test('due times follow the clock on the wall over both changes of the year', (t) => {
  const daily = {
    repeat: { period: 'daily' as const, every: 1, at: '02:30' },
    timeZone: 'Europe/Warsaw',
    startTime: '2026-01-01T00:00:00Z',
  }
  const after = (text: string, count: number) => iso(duesAfter(daily, Date.parse(text), count))
  t.same(
    after('2026-03-28T00:00:00Z', 3),
    ['2026-03-28T01:30', '2026-03-29T01:00', '2026-03-30T00:30'],
    'after the gap',
  )
  t.same(
    after('2026-10-24T00:00:00Z', 3),
    ['2026-10-24T00:30', '2026-10-25T00:30', '2026-10-26T01:30'],
    'the first of two',
  )
  const rule = (rrule: string, startTime = '1997-09-02T13:00:00Z') => ({
    rrule,
    timeZone: 'America/New_York',
    startTime,
  })
  const first = (rrule: string, count = 3, startTime?: string) => {
    const one = rule(rrule, startTime)
    return iso(duesAfter(one, Date.parse(one.startTime) - 1, count))
  }
  t.same(first('FREQ=WEEKLY;COUNT=2'), ['1997-09-02T13:00', '1997-09-09T13:00'])
  t.same(
    first('FREQ=MONTHLY;BYMONTHDAY=31'),
    ['1997-10-31T14:00', '1997-12-31T14:00', '1998-01-31T14:00'],
    'months without a 31st',
  )
  t.same(first('FREQ=YEARLY;INTERVAL=4;BYMONTH=11;BYDAY=TU;BYMONTHDAY=2,3,4,5,6,7,8', 2), [
    '1997-11-04T14:00',
    '2001-11-06T14:00',
  ])
  t.same(first('FREQ=DAILY;UNTIL=19970904T130000Z', 9), ['1997-09-02T13:00', '1997-09-03T13:00', '1997-09-04T13:00'])
  for (const bad of [
    'FREQ=SECONDLY',
    'FREQ=MINUTELY',
    'FREQ=HOURLY;BYMINUTE=0,1',
    'FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30',
    'FREQ=NEVER',
    'x',
  ])
    t.ok(faultOf(rule(bad)), bad)
  t.equal(faultOf(rule('FREQ=HOURLY')), undefined)
  t.end()
})
