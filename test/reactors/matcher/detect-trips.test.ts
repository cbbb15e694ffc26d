import { test, type Test } from 'tap'
import { locationStream, TRIP_FINISH, TRIP_START } from '../../../src/features/locations/events.ts'
import { locationEntry } from '../../../src/features/locations/location-entry.ts'
import { readRunningMeters } from '../../../src/features/trips/views.ts'
import { tripId } from '../../../src/reactors/matcher/detect-trips.ts'
import { MatcherWorld, ORG } from '../../support/matcher-world.ts'
import { batchOf, uuidOf, type PlainPoint } from '../../support/trace-batches.ts'
import { until } from '../../support/service.ts'
import { folderOf } from '../../support/folder-of.ts'

const TRACKER = uuidOf('tracker')
/** Metres north as 1e-7 degree. */
const METER = 1e7 / 111_195.08

const at = (second: number, meters: number, flags = 0): PlainPoint => ({
  organizationId: ORG,
  trackerId: TRACKER,
  recordedAt: second * 1_000,
  latE7: Math.round(meters * METER),
  lngE7: 0,
  flags,
})

const worlds = new WeakMap<Test, { world: Promise<MatcherWorld>; partitions: number }>()

/** Trips of one tracker in a partition of its own. */
const tripsOf = async (t: Test, points: readonly PlainPoint[], tripGapMs?: number) => {
  const opened = worlds.get(t) ?? { world: MatcherWorld.open(folderOf(t)), partitions: 0 }
  worlds.set(t, opened)
  const partition = opened.partitions++
  const world = await opened.world
  if (partition === 0) t.teardown(() => world.close())
  if (tripGapMs !== undefined) {
    const settings = { tripStopMs: 300_000, tripGapMs, rollout: '*' as const }
    await world.announce(partition, { organizationId: '*', sourcePosition: -1, settings })
  }
  for (const point of points) await world.points(partition, batchOf([point]))
  const matcher = world.matcher()
  await world.run(matcher, partition)
  await matcher.close()
  const trips = (await world.trips(partition)).map(({ kind, explicit, startedAt, finishedAt, distance, _id }) => {
    t.equal(_id, tripId(TRACKER, startedAt))
    return {
      kind,
      explicit,
      startedAt: startedAt / 1_000,
      finishedAt: finishedAt === undefined ? undefined : finishedAt / 1_000,
      distance: Math.round(distance),
    }
  })
  return { trips, world, partition }
}

test('an explicit trip runs from its start to its finish, through any stop', async (t) => {
  const { trips } = await tripsOf(t, [
    at(0, 0),
    at(10, 50, TRIP_START),
    at(20, 1_050),
    at(2_000, 1_050),
    at(2_010, 2_050, TRIP_FINISH),
    at(2_020, 2_060),
  ])
  t.strictSame(trips, [
    { kind: 'tripStarted', explicit: true, startedAt: 10, finishedAt: undefined, distance: 0 },
    { kind: 'tripFinished', explicit: true, startedAt: 10, finishedAt: 2_010, distance: 2_000 },
  ])
})

test('the next start ends an explicit trip', async (t) => {
  const { trips, world } = await tripsOf(t, [at(0, 0, TRIP_START), at(10, 500), at(20, 700, TRIP_START), at(30, 800)])
  t.match(trips, [
    { startedAt: 0 },
    { kind: 'tripFinished', startedAt: 0, finishedAt: 20, distance: 700 },
    { kind: 'tripStarted', startedAt: 20 },
  ])
  const running = await readRunningMeters(world.tables, 1, [
    { trackerId: TRACKER, startedAt: 20_000 },
    { trackerId: TRACKER, startedAt: 0 },
    { trackerId: uuidOf('another'), startedAt: 20_000 },
  ])
  t.same(
    running.map((meters) => meters && Math.round(meters)),
    [100, undefined, undefined],
    'metres so far',
  )
})

test('a trip is detected over 100 m from where the tracker rested, and ends where a long stop began', async (t) => {
  const { trips } = await tripsOf(t, [
    at(0, 0),
    at(10, 60),
    at(20, 99),
    at(30, 150),
    at(40, 650),
    at(50, 1_150),
    at(60, 1_180),
    at(200, 1_150),
    at(349, 1_170),
    at(351, 1_150),
    at(2_000, 1_160),
    at(2_010, 1_400),
  ])
  t.strictSame(trips, [
    { kind: 'tripStarted', explicit: false, startedAt: 30, finishedAt: undefined, distance: 0 },
    { kind: 'tripFinished', explicit: false, startedAt: 30, finishedAt: 50, distance: 1_000 },
    { kind: 'tripStarted', explicit: false, startedAt: 2_010, finishedAt: undefined, distance: 0 },
  ])
})

test('a short stop does not end a trip; long silence about one place does', async (t) => {
  const { trips } = await tripsOf(t, [
    at(0, 0),
    at(10, 500),
    at(20, 1_000),
    at(300, 1_000),
    at(310, 1_500),
    at(7_000, 1_650),
  ])
  t.match(trips, [
    { kind: 'tripStarted', startedAt: 10 },
    { kind: 'tripFinished', startedAt: 10, finishedAt: 310, distance: 1_000 },
    { kind: 'tripStarted', startedAt: 7_000 },
  ])
})

test('how far running trips have come is stored now and then, until they end', async (t) => {
  const world = await MatcherWorld.open(folderOf(t))
  t.teardown(() => world.close())
  const matcher = world.matcher()
  t.teardown(() => matcher.close())
  await matcher.load(0)
  let revision = -1
  const move = async (point: PlainPoint): Promise<void> => {
    await world.points(0, batchOf([point]))
    const [event] = await world.log.read(locationStream(0), ++revision, 1)
    await matcher.handle(locationEntry(event, 0), 0)
    await matcher.save(0)
  }
  const meters = async (): Promise<number | undefined> => {
    const [found] = await readRunningMeters(world.tables, 1, [{ trackerId: TRACKER, startedAt: 0 }])
    return found && Math.round(found)
  }
  await move(at(0, 0, TRIP_START))
  t.equal(await meters(), 0)
  await move(at(10, 400))
  t.equal(await meters(), 0, 'not at every save: a fleet would write a row for each tracker')
  const later = (expected: number | undefined): Promise<void> =>
    until(`${expected} m`, async () => {
      world.clock.advance(10_000)
      return (await meters()) === expected
    })
  await later(400) // although no point follows
  await move(at(20, 500))
  await later(500)
  await move(at(30, 600, TRIP_FINISH))
  await later(undefined)
})

const GAP = 1_800_000
const DAY = 86_400

test('a gap ends a detected trip with the last point before it, and the way across counts for none', async (t) => {
  const moving = [at(0, 0), at(10, 500), at(20, 1_000)]
  const { trips } = await tripsOf(t, [...moving, at(3 * DAY, 333_000), at(3 * DAY + 10, 333_400)], GAP)
  t.match(trips, [
    { kind: 'tripStarted', startedAt: 10 },
    { kind: 'tripFinished', startedAt: 10, finishedAt: 20, distance: 500 },
    { kind: 'tripStarted', startedAt: 3 * DAY, explicit: false },
  ])
  const [just, over] = [at(20 + GAP / 1000, 333_000), at(21 + GAP / 1000, 333_000)]
  t.equal((await tripsOf(t, [...moving, just], GAP)).trips.length, 1, 'not longer than the gap: the trip goes on')
  t.equal((await tripsOf(t, [...moving, over], GAP)).trips.length, 3)
  t.equal((await tripsOf(t, [...moving, over])).trips.length, 1, 'where no gap was ever announced')
})

test('after a gap at the place where it stopped, a trip ends where the stop began', async (t) => {
  const { trips } = await tripsOf(t, [at(0, 0), at(10, 500), at(20, 1_000), at(200, 1_050), at(DAY, 1_020)], GAP)
  t.match(trips, [{ startedAt: 10 }, { kind: 'tripFinished', finishedAt: 20, distance: 500 }])
  t.equal(trips.length, 2, 'it rests there')
})

test('a gap shorter than a stop ends a trip too', async (t) => {
  const { trips } = await tripsOf(t, [at(0, 0), at(10, 500), at(20, 1_000), at(50, 1_020), at(120, 1_030)], 60_000)
  t.match(trips, [{ startedAt: 10 }, { kind: 'tripFinished', finishedAt: 50, distance: 520 }])
  t.equal(trips.length, 2)
})

test('a gap ends no explicit trip, and a start after a gap takes nothing of it', async (t) => {
  const explicit = await tripsOf(t, [at(0, 0, TRIP_START), at(DAY, 9_000), at(DAY + 1, 9_000, TRIP_FINISH)], GAP)
  t.match(explicit.trips, [{ startedAt: 0 }, { finishedAt: DAY + 1, distance: 9_000 }])
  const started = await tripsOf(t, [at(0, 0), at(10, 500), at(20, 900), at(DAY, 90_000, TRIP_START)], GAP)
  t.match(started.trips, [
    { explicit: false, startedAt: 10 },
    { kind: 'tripFinished', explicit: false, finishedAt: 20, distance: 400 },
    { explicit: true, startedAt: DAY },
  ])
})

test('an explicit start ends a detected trip', async (t) => {
  const { trips } = await tripsOf(t, [at(0, 0), at(10, 500), at(20, 800, TRIP_START)])
  t.match(trips, [
    { explicit: false, startedAt: 10 },
    { kind: 'tripFinished', explicit: false, finishedAt: 20, distance: 300 },
    { kind: 'tripStarted', explicit: true, startedAt: 20 },
  ])
})
