import { test } from 'tap'
import { dayAfter, dayAt, startOfDay } from '../../src/console/app/time-zone.ts'
import { Packer } from '../../src/console/live/columns.ts'
import { momentAt, trackOf } from '../../src/console/back/track.ts'
import { Fleet, MOVING, OFFLINE, STALE, STOPPED } from '../../src/console/live/fleet.ts'
import type { Fix } from '../../src/console/live/position.ts'
import { isInside } from '../../src/console/map/fence-features.ts'

const NOON = Date.parse('2026-11-20T12:00:00Z')
const MINUTE = 60_000
/** A fleet, and how the worker hands positions over to it. */
const openFleet = () => {
  const [fleet, packer] = [new Fleet(), new Packer()]
  const take = (fixes: readonly Fix[], now: number, isSnapshot = false) =>
    fleet.take(packer.pack(fixes), now, isSnapshot)
  return { fleet, take }
}
const iso = (at: number): string => new Date(at).toISOString()

test('a day of a tracker: trips, stops, and where it was', async (t) => {
  const point = (minutes: number, lat: number) => ({ recordedAt: iso(NOON + minutes * MINUTE), lat, lng: 21 })
  // Two minutes of a drive, an hour at rest, half an hour unheard, elsewhere.
  const raw = [point(0, 52), point(1, 52.01), point(2, 52.02), point(62, 52.02), point(92, 52.4)]
  const trips = [{ startedAt: iso(NOON), finishedAt: iso(NOON + 2 * MINUTE), distance: 2224 }]
  const track = trackOf('a', 'A', { shape: raw, course: [] }, trips, { from: NOON - MINUTE, to: NOON + 1440 * MINUTE })
  t.same(
    track.stretches.map(({ type, from, to }) => [type, (from - NOON) / MINUTE, (to - NOON) / MINUTE]),
    [
      ['trip', 0, 2],
      ['stop', 2, 92],
    ],
  )
  t.equal(Math.round(track.totals.drivingMs / MINUTE), 2)
  t.equal(momentAt(track, NOON - 1), undefined, 'nothing is known before its first point')
  const half = momentAt(track, NOON + MINUTE / 2)!
  t.ok(Math.abs(half.position[1] - 52.005) < 1e-9 && half.isMoving && half.heading === 0, 'between two points')
  t.same([momentAt(track, NOON + 30 * MINUTE)!.isMoving, momentAt(track, NOON + 30 * MINUTE)!.isGap], [false, false])
  t.ok(momentAt(track, NOON + 80 * MINUTE)!.isGap, 'nobody knows where it was')
})

test('a line of two points tells nothing of a stop on a straight road: the course does', async (t) => {
  const point = (minutes: number, lat: number) => ({ recordedAt: iso(NOON + minutes * MINUTE), lat, lng: 21 })
  const lats = [52, 52.05, 52.1, 52.1, 52.1, 52.1, 52.1, 52.15, 52.2]
  const course = lats.map((lat, i) => point(5 * i, lat))
  const shape = [course[0]!, course.at(-1)!]
  const track = trackOf('a', 'A', { shape, course }, [], { from: NOON, to: NOON + 1440 * MINUTE })
  const at = (minutes: number) => momentAt(track, NOON + minutes * MINUTE)!
  t.match(at(20), { position: [21, 52.1], isMoving: false, isGap: false })
  t.match(at(32), { isMoving: true, isGap: false })
  t.equal(track.points.length, lats.length)
  t.equal(track.lines[0]!.length, 2, 'the line stays as it is')
  t.equal(Math.round(track.totals.meters / 100), 222)
})

test('a way there and back on a straight road is as long as its trips, though its line is not', async (t) => {
  const point = (minutes: number, lat: number) => ({ recordedAt: iso(NOON + minutes * MINUTE), lat, lng: 21 })
  const course = [52, 52.1, 52.2, 52.1, 52, 52.1, 52.2].map((lat, i) => point(8 * i, lat))
  const shape = [course[0]!, course.at(-1)!]
  const trips = [{ startedAt: course[0]!.recordedAt, finishedAt: course.at(-1)!.recordedAt, distance: 66_717 }]
  const range = { from: NOON, to: NOON + 1440 * MINUTE }
  t.equal(trackOf('a', 'A', { shape, course }, trips, range).totals.meters, 66_717)
  t.equal(Math.round(trackOf('a', 'A', { shape, course }, [], range).totals.meters / 100), 222)
})

test('a trip over midnight is a trip on both days', async (t) => {
  const midnight = NOON + 720 * MINUTE
  const raw = Array.from({ length: 21 }, (_, i) => ({
    ...{ recordedAt: iso(midnight + (i - 10) * MINUTE), lat: 52 + i * 0.01, lng: 21 },
  }))
  const trips = [{ startedAt: raw[0]!.recordedAt, finishedAt: raw[20]!.recordedAt, distance: 22_000 }]
  const day = (points: typeof raw, from: number) =>
    trackOf('a', 'A', { shape: points, course: [] }, trips, { from, to: from + 1440 * MINUTE }).stretches
  const shown = (stretches: ReturnType<typeof day>) =>
    stretches.map(({ type, from, to, distance }) => [type, (to - from) / MINUTE, Math.round(distance / 100)])
  t.same(shown(day(raw.slice(0, 11), midnight - 1440 * MINUTE)), [['trip', 10, 111]])
  t.same(shown(day(raw.slice(10), midnight)), [['trip', 10, 111]], 'as far as it went on that day')
})

test('a snapshot without speeds is told by the points before it', async (t) => {
  const { fleet, take } = openFleet()
  const ids = ['moves', 'stands', 'says', 'jumped']
  const last = NOON + MINUTE
  const fixes = ids.map((trackerId, i) => ({
    trackerId,
    name: trackerId,
    lat: 52.01,
    lng: 21,
    at: last,
    seenAt: last,
    ...(i === 2 && { speed: 0 }),
  }))
  take(fixes, 0)
  const lats: { [id: string]: number } = { moves: 52, stands: 52.01, says: 52, jumped: 12 }
  const before = ids.map((trackerId) => ({ trackerId, at: NOON, position: [21, lats[trackerId]!] as [number, number] }))
  const now = ids.map((trackerId) => ({ trackerId, at: last, position: [21, 52.01] as [number, number] }))
  fleet.takeSteps([...before, ...now])
  fleet.age(last, { staleAfterMs: 300_000, offlineAfterMs: 3_600_000 })
  t.same([...fleet.state.subarray(0, 4)], [MOVING, STOPPED, STOPPED, STOPPED])
  t.equal(Math.round(fleet.speed[0]!), 19)
  t.equal(fleet.heading[0], 0)
})

test('states follow from age and speed', async (t) => {
  const { fleet, take } = openFleet()
  const fix = (trackerId: string, at: number, more: Partial<Fix> = {}): Fix => ({
    trackerId,
    name: trackerId,
    lat: 52,
    lng: 21,
    at,
    seenAt: at,
    ...more,
  })
  const ages = { staleAfterMs: 5 * MINUTE, offlineAfterMs: 60 * MINUTE }
  take([fix('a', NOON, { speed: 10 }), fix('b', NOON), fix('c', NOON - 6 * MINUTE), fix('d', NOON - 61 * MINUTE)], 0)
  t.same([...fleet.age(NOON, ages)], [1, 1, 1, 1])
  t.same([...fleet.state.subarray(0, 4)], [MOVING, STOPPED, STALE, OFFLINE])
  take([fix('b', NOON + 10_000, { lat: 52.001 })], 1)
  fleet.age(NOON + 10_000, ages)
  t.equal(fleet.state[1], MOVING, 'the speed of the step, where the device says none')
  take([fix('b', NOON, { lat: 10 })], 2)
  t.equal(fleet.lat[1], 52.001, 'an older position moves nothing back')
  for (let i = 0; i < 1000; i++) take([fix(`e${i}`, NOON)], 3)
  take([fix('b', NOON, { name: 'z' }), fix('e999', NOON), fix('new', NOON)], 4, true)
  t.same(
    fleet.sorted().map((slot) => fleet.ids[slot]),
    ['e999', 'new', 'b'],
    'a snapshot names all that are there, as they are called now',
  )
  t.same([fleet.lat[1], fleet.at[1]], [52.001, NOON + 10_000])
  take([fix('a', NOON - MINUTE)], 5)
  t.equal(fleet.slotOf('a'), 0, 'one that comes back has its place again')
  t.equal(fleet.at[0], NOON - MINUTE, 'wherever it was before')
})

test('days of a time zone', async (t) => {
  t.equal(iso(startOfDay('2026-03-29', 'Europe/Warsaw')), '2026-03-28T23:00:00.000Z')
  t.equal(iso(startOfDay('2026-03-30', 'Europe/Warsaw')), '2026-03-29T22:00:00.000Z', 'the day before had 23 hours')
  t.equal(iso(startOfDay('2026-09-06', 'America/Santiago')), '2026-09-06T04:00:00.000Z', 'no midnight')
  t.equal(dayAt(NOON, 'Pacific/Auckland'), '2026-11-21')
  t.equal(dayAfter('2026-12-31'), '2027-01-01')
})

test('inside a geofence, as the screen says it', async (t) => {
  const ring = [
    [179, 0],
    [-179, 0],
    [-179, 1],
    [179, 1],
    [179, 0],
  ]
  const across = { geometry: { type: 'Polygon', coordinates: [ring] } }
  t.ok(isInside([180, 0.5], across) && isInside([-179.5, 0.5], across))
  t.notOk(isInside([0, 0.5], across) || isInside([178.9, 0.5], across))
  const road = {
    geometry: {
      type: 'LineString',
      coordinates: [
        [21, 52],
        [21, 53],
      ],
    },
    width: 200,
  }
  t.ok(isInside([21.001, 52.5], road))
  t.notOk(isInside([21.002, 52.5], road))
})
