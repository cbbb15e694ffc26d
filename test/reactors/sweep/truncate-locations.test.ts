import { test } from 'tap'
import { locationStream } from '../../../src/features/locations/events.ts'
import { matcherCheckpoint } from '../../../src/features/transitions/events.ts'
import { MATCHER_STATE } from '../../../src/reactors/matcher/store.ts'
import { locationSweep } from '../../../src/reactors/sweep/truncate-locations.ts'
import { MatcherWorld, ORG } from '../../support/matcher-world.ts'
import { batchOf, uuidOf } from '../../support/trace-batches.ts'
import { folderOf } from '../../support/folder-of.ts'
import { ringOf } from '../../support/ring.ts'

const DAY_MS = 86_400_000

/** A tracker that walks through a square from west to east and back, 100 fixes each way. */
const fixOf = (tracker: number, i: number) => ({
  organizationId: ORG,
  trackerId: uuidOf(`tracker ${tracker}`),
  recordedAt: 1_000_000 + i * 10_000,
  latE7: 5_000 + tracker,
  lngE7: Math.round(Math.sin(i / 16 + tracker) * 20_000),
  flags: 0,
})

test('a matcher that is rebuilt from its snapshot and a truncated log makes the same transitions', async (t) => {
  const world = await MatcherWorld.open(folderOf(t))
  t.teardown(() => world.close())
  const group = await world.putGroup('group', { debounce: { fixes: 2 } })
  const square = {
    type: 'Polygon' as const,
    coordinates: [ringOf(0, 0, 0.001, 0.01)],
  }
  const fence = await world.putFence(uuidOf('fence'), { shape: square, geofenceGroupId: 'group' })
  const write = async (from: number, to: number): Promise<void> => {
    for (let i = from; i < to; i++) {
      const batch = batchOf(Array.from({ length: 70 }, (_, tracker) => fixOf(tracker, i)))
      await Promise.all([world.points(0, batch), world.points(1, batch)])
    }
  }
  for (const partition of [0, 1])
    await world.announce(partition, { sourcePosition: fence.position, geofences: [fence], groups: [group] })
  await write(0, 60)

  const matcher = world.matcher()
  await world.run(matcher, 0)
  world.clock.advance(8 * DAY_MS)
  const consumers = [57]
  const sweeper = locationSweep(world, {
    keepMs: 7 * DAY_MS,
    consumersAt: async () => consumers,
    snapshot: (partition) => matcher.snapshot(partition),
  })
  t.equal(await sweeper.sweep(0), 58, 'up to the slowest consumer')
  t.equal((await world.log.read(locationStream(0), 0, 1))[0].revision, 58)
  t.equal(await sweeper.sweep(0), undefined, 'nothing further')
  await matcher.drop(0)

  // The tables are lost.
  await world.tables.reset([MATCHER_STATE.name], matcherCheckpoint(0))
  await write(60, 140)
  const rebuilt = world.matcher()
  await world.run(rebuilt, 0)
  await rebuilt.close()
  const calm = world.matcher()
  await world.run(calm, 1)
  await calm.close()
  const expected = await world.decisions(1)
  t.ok(expected.length > 200, `${expected.length} decisions`)
  t.strictSame(await world.decisions(0), expected)
})

test('what is young stays, and a log that has nothing old is left alone', async (t) => {
  const world = await MatcherWorld.open(folderOf(t))
  t.teardown(() => world.close())
  await world.points(0, batchOf([fixOf(0, 0)]))
  world.clock.advance(DAY_MS)
  await world.points(0, batchOf([fixOf(0, 1)]))
  const matcher = world.matcher()
  await world.run(matcher, 0)
  t.teardown(() => matcher.close())
  const options = { consumersAt: async () => [1], snapshot: (partition: number) => matcher.snapshot(partition) }
  t.equal(await locationSweep(world, { ...options, keepMs: 2 * DAY_MS }).sweep(0), undefined)
  t.equal(await locationSweep(world, { ...options, keepMs: DAY_MS / 2 }).sweep(0), 1)
})
