import { type Test, test } from 'tap'
import type { TripChange } from '../../../src/features/transitions/events.ts'
import { readTrace, withoutData } from '../../support/shared-data.ts'
import { type PlainPoint, uuidOf } from '../../support/trace-batches.ts'
import { demoTrace, GAP_MS, openReports } from '../../support/reports-world.ts'
import { dayIn, slowSpeeding, slowStops, slowSummary } from './slow-reports.ts'

const DAY_MS = 86_400_000
const iso = (at: number): string => new Date(at).toISOString()
const boundsOf = (points: readonly PlainPoint[]): { from: number; to: number } => {
  const times = points.map(({ recordedAt }) => recordedAt)
  return { from: Math.min(...times), to: Math.max(...times) }
}
const key = (row: { trackerId: string; from: string }): string => `${row.trackerId} ${row.from}`

/** The summary of a trace by day of a zone, beside the slow one. */
const compareSummary = async (t: Test, points: readonly PlainPoint[], timeZone: string, at = boundsOf(points)) => {
  const { insert, rows } = await openReports(t)
  await insert(points)
  await insert(points.slice(0, 500))
  const expected = slowSummary(points, { ...at, gapMs: GAP_MS, periodOf: dayIn(timeZone) })
  const found = await rows(`summary?from=${iso(at.from)}&to=${iso(at.to)}&timeZone=${timeZone}`)
  t.equal(found.length, expected.size)
  for (const row of found) {
    const slow = expected.get(`${row.trackerId} ${row.period}`)
    if (slow === undefined) throw new Error(`no ${row.period} of ${row.trackerId}`)
    const near = (value: number, other: number, within: number, what: string): void => {
      if (Math.abs(value - other) > within) t.fail(`${what} of ${row.trackerId} ${row.period}: ${value}, not ${other}`)
    }
    near(row.distanceMeters, slow.distanceMeters, 0.02, 'distance')
    near(row.drivingSeconds, slow.drivingSeconds, 0.001, 'driving')
    near(row.stoppedSeconds, slow.stoppedSeconds, 0.001, 'stopped')
    near(row.maxSpeed ?? -1, slow.maxSpeed, 0.02, 'fastest')
    near(
      row.averageSpeed ?? 0,
      slow.drivingSeconds === 0 ? 0 : slow.drivenMeters / slow.drivingSeconds,
      0.02,
      'average',
    )
    near(Date.parse(row.firstAt), slow.firstAt, 0, 'first')
    near(Date.parse(row.lastAt), slow.lastAt, 0, 'last')
  }
  return found
}

test('a summary of the buses of the demo is what adding it up point by point gives', async (t) => {
  const points = demoTrace()
  const { from, to } = boundsOf(points)
  await compareSummary(t, points, 'Asia/Kolkata')
  await compareSummary(t, points, 'Europe/Warsaw', { from: from + 1_234_567, to: to - 765_432 })
})

test('days of 25 and 23 hours', { skip: withoutData }, async (t) => {
  const fleet = readTrace('fleet-austin-2016-11-24_27', '')
  const ids = [...new Set(fleet.map(({ trackerId }) => trackerId))].slice(0, 25)
  const some = fleet.filter(({ trackerId }) => ids.includes(trackerId))
  // Four days around the change to winter time, and to summer time, of the same zone.
  for (const day of ['2016-11-04T06:00:00Z', '2016-03-11T06:00:00Z']) {
    const shift = Date.parse(day) - Date.parse('2016-11-24T06:00:00Z')
    const moved = some.map((point) => ({ ...point, recordedAt: point.recordedAt + shift }))
    const found = await compareSummary(t, moved, 'America/Chicago')
    t.ok(new Set(found.map(({ period }) => period)).size >= 4)
  }
})

/** A point each 10 minutes over the days of the change, each 1/1000 degree of latitude further. */
const steady = (from: string, hours: number): PlainPoint[] =>
  Array.from({ length: hours * 6 }, (_, i) => ({
    organizationId: '',
    trackerId: uuidOf('steady'),
    recordedAt: Date.parse(from) + i * 600_000,
    latE7: i * 10_000,
    lngE7: 0,
    flags: 0,
  }))

test('a day has the hours that the clocks of its zone give it', async (t) => {
  const { insert, rows } = await openReports(t)
  await insert(steady('2026-03-28T00:00:00Z', 72))
  await insert(steady('2026-10-24T00:00:00Z', 72))
  const hours = async (from: string, to: string, timeZone: string) =>
    Object.fromEntries(
      (await rows(`summary?from=${from}&to=${to}&timeZone=${timeZone}`)).map((row) => [
        row.period,
        (row.drivingSeconds + row.stoppedSeconds) / 3_600,
      ]),
    )
  const spring = await hours('2026-03-28T00:00:00Z', '2026-03-31T00:00:00Z', 'Europe/Berlin')
  t.equal(spring['2026-03-29'], 23)
  t.equal(spring['2026-03-30'], 24)
  const autumn = await hours('2026-10-24T00:00:00Z', '2026-10-27T00:00:00Z', 'Europe/Berlin')
  t.equal(autumn['2026-10-25'], 25)
  t.equal(autumn['2026-10-26'], 24)
  t.match(
    await rows('summary?from=2026-03-01&to=2026-10-30&per=month'.replaceAll(/(\d{2}-\d{2})(?=&)/g, '$1T00:00:00Z')),
    [{ period: '2026-03' }, { period: '2026-10' }],
  )
  const weeks = await rows('summary?from=2026-03-28T00:00:00Z&to=2026-03-31T00:00:00Z&per=week&timeZone=Europe/Berlin')
  t.match(weeks, [{ period: '2026-W13' }, { period: '2026-W14' }])
  const [total] = await rows('summary?from=2026-03-28T00:00:00Z&to=2026-03-31T00:00:00Z&per=total')
  const sum = weeks.reduce((all, { distanceMeters }) => all + distanceMeters, 0)
  t.equal(total.period, 'total')
  t.ok(Math.abs(total.distanceMeters - sum) < 0.1, 'a leg over midnight belongs to the day in which it ends')
})

test('the zone is the one of the organization, points ahead of the clock and long gaps count for nothing, names are shown', async (t) => {
  const { insert, rows } = await openReports(t, {
    timeZoneOf: async () => 'Pacific/Auckland',
    trackerNames: async (_organizationId, ids) => ids.map(() => 'Bus, "12"'),
  })
  const at = Date.parse('2026-05-04T10:00:00Z')
  const point = (minutes: number, latE7: number, flags = 0): PlainPoint => ({
    organizationId: '',
    trackerId: uuidOf('one'),
    recordedAt: at + minutes * 60_000,
    latE7,
    lngE7: 0,
    flags,
    speedCms: flags === 4 ? 9_000 : undefined,
  })
  await insert([point(0, 0), point(1, 100_000), point(2, 900_000_000, 256), point(32, 200_000, 4)])
  const found = await rows('summary?from=2026-05-04T00:00:00Z&to=2026-05-05T00:00:00Z')
  t.match(found, [{ name: 'Bus, "12"', period: '2026-05-04', drivingSeconds: 60, stoppedSeconds: 0, maxSpeed: 90 }])
  t.equal(found[0].distanceMeters, 1111.95)
})

test('trips count in the period in which they began', async (t) => {
  const { insert, rows, decide, organizationId } = await openReports(t)
  const points = steady('2026-05-04T00:00:00Z', 48)
  await insert(points)
  const trip = (startedAt: number): TripChange => ({
    kind: 'tripFinished',
    _id: uuidOf(`trip ${startedAt}`),
    organizationId,
    trackerId: points[0].trackerId,
    explicit: false,
    startedAt,
    finishedAt: startedAt + 1,
    distance: 1,
    point: { recordedAt: startedAt, lat: 0, lng: 0 },
  })
  const [midnight] = [Date.parse('2026-05-05T00:00:00Z')]
  await decide([trip(midnight - 1), trip(midnight), trip(midnight + DAY_MS / 2)])
  const found = await rows('summary?from=2026-05-04T00:00:00Z&to=2026-05-06T00:00:00Z')
  t.match(found, [{ trips: 1 }, { trips: 2 }])
})

test('stops of the buses are those that trying every stretch finds', async (t) => {
  const points = demoTrace()
  const at = boundsOf(points)
  const { insert, rows } = await openReports(t, { placesOf: () => async () => [uuidOf('depot')] })
  await insert(points)
  for (const [minSeconds, radiusMeters] of [
    [300, 100],
    [60, 30],
    [1_200, 2_000],
  ]) {
    const expected = slowStops(points, { ...at, minSeconds, radiusMeters })
    t.ok(expected.length > 10)
    const found = await rows(`stops?from=${at.from}&to=${at.to}&minSeconds=${minSeconds}&radiusMeters=${radiusMeters}`)
    const byKey = new Map(found.map((row) => [key(row), row]))
    t.equal(found.length, expected.length)
    for (const { trackerId, from, to, lat, lng } of expected)
      t.match(byKey.get(`${trackerId} ${iso(from)}`), {
        to: iso(to),
        seconds: (to - from) / 1000,
        lat,
        lng,
        geofenceIds: [uuidOf('depot')],
      })
  }
})

test('speeding of phones and ships is what looking at each point finds', { skip: withoutData }, async (t) => {
  for (const [trace, limit] of [
    ['fleet-ais-us-2022-01-03-A', 8],
    ['car-munich-1hz', 12],
  ] as const) {
    const points = readTrace(trace, '').slice(0, 20_000)
    const at = boundsOf(points)
    const isNorth = ({ latE7 }: PlainPoint) => latE7 > 300_000_000
    const fence = uuidOf('fence')
    const { insert, rows } = await openReports(t, {
      limitsOf: async () => (_lng, lat) => (lat > 300_000_000 ? { limit: limit / 2, geofenceId: fence } : undefined),
    })
    await insert(points)
    const compare = async (query: string, limitAt: (point: PlainPoint) => number | undefined, geofenceId?: string) => {
      const expected = slowSpeeding(points, { ...at, gapMs: GAP_MS, limitAt })
      t.ok(expected.length > 5)
      const found = await rows(`speeding?from=${at.from}&to=${at.to}&${query}`)
      const byKey = new Map(found.map((row) => [key(row), row]))
      t.equal(found.length, expected.length)
      for (const slow of expected) {
        const row = byKey.get(`${slow.trackerId} ${iso(slow.from)}`)
        t.match(row, { to: iso(slow.to), limit: slow.limit, ...(geofenceId !== undefined && { geofenceId }) })
        t.ok(Math.abs(row.maxSpeed - slow.maxSpeed) < 0.011)
      }
    }
    await compare(`speedLimit=${limit}`, () => limit)
    await compare(`geofenceGroupId=${fence}`, (point) => (isNorth(point) ? limit / 2 : undefined), fence)
  }
})
