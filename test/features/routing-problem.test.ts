import { test } from 'tap'
import { type Planning, prepare } from '../../src/features/routing/problem.ts'
import { breaksIn, hoursFrom } from '../../src/features/routing/working-hours.ts'

const at = (time: string): number => Date.parse(time)
const HOUR = 3_600

test('working hours are those that end next, in a time zone, also over midnight', async (t) => {
  const day = { from: '08:00', to: '16:00' }
  const warsaw = (span: typeof day, time: string) => hoursFrom(span, at(time), 'Europe/Warsaw')
  t.same(warsaw(day, '2026-11-20T06:00:00Z'), { from: HOUR, to: 9 * HOUR }, 'winter time is an hour ahead')
  t.same(warsaw(day, '2026-07-20T06:00:00Z'), { from: 0, to: 8 * HOUR }, 'summer time two')
  t.same(warsaw(day, '2026-11-20T10:00:00Z'), { from: 0, to: 5 * HOUR }, 'they have begun')
  t.same(
    warsaw(day, '2026-11-20T15:00:00Z'),
    { from: 16 * HOUR, to: 24 * HOUR },
    'they are over: those of the next day',
  )
  const night = { from: '22:00', to: '06:00' }
  t.same(warsaw(night, '2026-11-20T00:00:00Z'), { from: 0, to: 5 * HOUR }, 'those of yesterday')
  t.same(warsaw(night, '2026-11-20T12:00:00Z'), { from: 9 * HOUR, to: 17 * HOUR })
  t.same(warsaw(night, '2026-10-24T12:00:00Z'), { from: 8 * HOUR, to: 17 * HOUR }, 'the night that is an hour longer')
  t.same(hoursFrom(undefined, 0, 'UTC'), { from: 0, to: Number.POSITIVE_INFINITY })
})

test('breaks are those within the hours, of each day', async (t) => {
  const start = at('2026-11-20T20:00:00Z')
  const hours = hoursFrom({ from: '22:00', to: '06:00' }, start, 'UTC')
  const breaks = breaksIn(
    [
      { from: '01:00', to: '01:30' },
      { from: '12:00', to: '13:00' },
    ],
    hours,
    start,
    'UTC',
  )
  t.same(breaks, [{ from: 5 * HOUR, to: 5.5 * HOUR }])
  const endless = breaksIn([{ from: '12:00', to: '13:00' }], hoursFrom(undefined, start, 'UTC'), start, 'UTC')
  t.ok(endless.length >= 6 && endless.every(({ from, to }) => to - from === HOUR))
})

test('a problem has what tasks and vehicles say, in units of the planner', async (t) => {
  const planning: Planning = {
    hub: { lat: 52, lng: 21 },
    tasks: [
      { _id: 'a', lat: 52.1, lng: 21, durationMinutes: 10, load: { boxes: 2 }, tags: ['lift'], priority: 7 },
      { _id: 'b' },
      {
        _id: 'c',
        lat: 52.2,
        lng: 21,
        window: { from: '2026-11-20T08:00:00Z', to: '2026-11-20T09:00:00Z' },
        load: { kg: 5 },
      },
    ],
    vehicles: [
      {
        _id: 'van',
        speed: 36,
        capacity: { boxes: 4 },
        cost: { fixed: 10, perKm: 2, perHour: 36 },
        constraints: { visitsMax: 3 },
      },
      { _id: 'any', cost: {} },
    ],
    startAt: at('2026-11-20T07:00:00Z'),
    timeZone: 'UTC',
    returnToHub: false,
    hasRoads: false,
  }
  const { tasks, vehicles, unplaced, places, taskIds } = prepare(planning)
  t.same(unplaced, ['b'])
  t.same(taskIds, ['a', 'c'])
  t.equal(places.length, 3)
  t.match(tasks, [
    { place: 1, load: [2, 0], durationS: 600, tags: ['lift'], priority: 7, from: 0, to: Number.POSITIVE_INFINITY },
    { place: 2, load: [0, 5], durationS: 0, from: HOUR, to: 2 * HOUR },
  ])
  t.match(vehicles[0], {
    capacity: [4, 0],
    pace: 0.1,
    cost: { fixed: 10, perDistance: 0.002, perSecond: 0.01 },
    visitsMax: 3,
  })
  t.match(vehicles[1], { capacity: [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY], pace: 3.6 / 50 })
  t.notOk('end' in vehicles[0])
  t.equal(prepare({ ...planning, hasRoads: true, returnToHub: true }).vehicles[0].pace, 1)
  const free = prepare({ ...planning, vehicles: [{ _id: 'any', speed: 0 }] }).vehicles[0]
  t.match(free, { cost: { fixed: 0, perDistance: 0.001, perSecond: 0 }, pace: 1e9, visitsMax: 0 }, 'it stands still')
  t.equal(
    prepare({ ...planning, hasRoads: true, vehicles: [{ _id: 'any', speed: 0 }] }).vehicles[0].visitsMax,
    Infinity,
  )
})
