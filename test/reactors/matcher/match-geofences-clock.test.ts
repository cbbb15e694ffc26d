import { test } from 'tap'
import type { TableStore } from '../../../src/engines/table-store.ts'
import { Failure } from '../../../src/kernel/errors.ts'
import { defer } from '../../../src/kit/consumers/deferred.ts'
import { locationEntry } from '../../../src/features/locations/location-entry.ts'
import { locationStream, TRIP_START } from '../../../src/features/locations/events.ts'
import { readRunningMeters, RUNNING_TRIPS } from '../../../src/features/trips/views.ts'
import { GeofenceMatcher } from '../../../src/reactors/matcher/match-geofences.ts'
import type { FakeClock } from '../../support/fake-clock.ts'
import { folderOf } from '../../support/folder-of.ts'
import { MatcherWorld, ORG } from '../../support/matcher-world.ts'
import { batchOf, uuidOf } from '../../support/trace-batches.ts'
import { until } from '../../support/service.ts'

for (const [what, happens] of [
  ['the process stands still for 10 min', (clock: FakeClock) => clock.stand(600_000)],
  ['the clock is set 2 h forwards', (clock: FakeClock) => clock.set(7_200_000)],
  ['the clock is set 2 h back', (clock: FakeClock) => clock.set(-7_200_000)],
] as const) {
  test(`${what} while state is stored: it is stored again when the next save is due`, async (t) => {
    const world = await MatcherWorld.open(folderOf(t))
    t.teardown(() => world.close())
    const { log, tables, clock } = world
    const gate = defer()
    let commits = 0
    let ended = 0
    const slow = Object.create(tables, {
      commit: {
        value: async (...commit: Parameters<TableStore['commit']>) => {
          if (commits++ === 0) await gate.promise
          await tables.commit(...commit)
          ended++
        },
      },
    }) as TableStore
    const matcher = new GeofenceMatcher(
      { log, tables: slow, clock },
      { onFailure: (_partition, error) => t.fail(String(error)) },
    )
    t.teardown(() => matcher.close())
    await matcher.load(0)
    const move = async (revision: number): Promise<void> => {
      const point = { organizationId: ORG, trackerId: uuidOf('a'), recordedAt: revision, latE7: 0, lngE7: 0, flags: 0 }
      await world.points(0, batchOf([point]))
      const [event] = await log.read(locationStream(0), revision, 1)
      await matcher.handle(locationEntry(event, 0), 0)
    }
    const storedAt = async (): Promise<number> => (await tables.checkpoint('matcher-0'))?.['0'] ?? -1
    await move(0)
    clock.advance(2_500)
    await until('it to be so', async () => commits > 0)
    happens(clock)
    await move(1)
    gate.resolve()
    await until('it to be so', async () => (await storedAt()) === 0 && ended === commits)
    await until('the next to be stored', async () => {
      clock.advance(2_500)
      return (await storedAt()) === 1
    })
    t.pass('stored')
  })
}

test('how far a running trip has come is stored also where nothing follows its last points, or a write failed', async (t) => {
  const world = await MatcherWorld.open(folderOf(t))
  t.teardown(() => world.close())
  const { log, tables, clock } = world
  let refusals = 0
  const refusing = Object.create(tables, {
    commit: {
      value: (...[changes, move]: Parameters<TableStore['commit']>) => {
        if (refusals === 0 || !changes.some(({ table }) => table === RUNNING_TRIPS.name))
          return tables.commit(changes, move)
        refusals--
        return Promise.reject(new Failure('engine_down'))
      },
    },
  }) as TableStore
  const failures: unknown[] = []
  const open = (): GeofenceMatcher =>
    new GeofenceMatcher({ log, tables: refusing, clock }, { onFailure: (_partition, error) => failures.push(error) })
  let matcher = open()
  t.teardown(() => matcher.close())
  await matcher.load(0)
  const trackerId = uuidOf('a')
  const move = async (revision: number): Promise<void> => {
    const flags = revision === 0 ? TRIP_START : 0
    const at = { recordedAt: revision * 1_000, latE7: revision * 10_000, lngE7: 0 }
    const point = { organizationId: ORG, trackerId, flags, ...at }
    await world.points(0, batchOf([point]))
    const [event] = await log.read(locationStream(0), revision, 1)
    await matcher.handle(locationEntry(event, 0), 0)
  }
  const metres = async (): Promise<number | undefined> =>
    (await readRunningMeters(tables, 1, [{ trackerId, startedAt: 0 }]))[0]
  const isAt = async (expected: number): Promise<boolean> => {
    clock.advance(2_500)
    return Math.round((await metres()) ?? -1) === expected
  }
  const storeNow = async (): Promise<void> => {
    clock.advance(10_000)
    await matcher.save(0)
  }
  const moveOn = async (revision: number, shown: number): Promise<void> => {
    await storeNow()
    await move(revision)
    await matcher.save(0)
    t.equal(Math.round((await metres()) ?? -1), shown, 'trips were written a moment ago')
  }
  await move(0)
  await moveOn(1, 0)
  await until('it to be so', () => isAt(111))
  await moveOn(2, 111)
  refusals = 1
  await until('it to be so', () => isAt(222))
  t.match(failures, [{ code: 'engine_down' }])
  // It dies before the next write of trips: its successor has nothing to decide, and writes them.
  await moveOn(3, 222)
  await matcher.drop(0)
  matcher = open()
  await matcher.load(0)
  await until('it to be so', () => isAt(334))
  t.equal(failures.length, 1)
})
