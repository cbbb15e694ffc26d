import { test, type Test } from 'tap'
import type { GeofenceValues, GroupRules } from '../../../src/features/geofences/events.ts'
import { AHEAD, HAS_ACCURACY, HAS_SPEED } from '../../../src/features/locations/events.ts'
import type { Decided } from '../../../src/features/transitions/events.ts'
import { MatcherWorld, ORG } from '../../support/matcher-world.ts'
import { batchOf, uuidOf, type PlainPoint } from '../../support/trace-batches.ts'
import { folderOf } from '../../support/folder-of.ts'
import { ringOf } from '../../support/ring.ts'

const FENCE = uuidOf('fence')
const TRACKER = uuidOf('tracker')
const SQUARE = {
  type: 'Polygon' as const,
  coordinates: [ringOf(0, 0, 1, 1)],
}
const FAR = {
  type: 'Polygon' as const,
  coordinates: [ringOf(50, 50, 51, 51)],
}
const IN = 0.5
const OUT = 2

const fix = (at: number, lng: number, more: Partial<PlainPoint> = {}): PlainPoint => ({
  organizationId: ORG,
  trackerId: TRACKER,
  recordedAt: at * 1_000,
  latE7: 5_000_000,
  lngE7: Math.round(lng * 1e7),
  flags: 0,
  ...more,
})
const rough = (at: number, lng: number, meters: number): PlainPoint =>
  fix(at, lng, { flags: HAS_ACCURACY, accuracyCm: meters * 100 })

/** A partition with one square fence in a group with these rules. */
const open = async (t: Test, rules: GroupRules = {}, values: Partial<GeofenceValues> = {}) => {
  const world = await MatcherWorld.open(folderOf(t))
  t.teardown(() => world.close())
  const edit = async (change: Partial<GeofenceValues> | null, at: number): Promise<void> => {
    const fence = await world.putFence(FENCE, change === null ? null : { shape: SQUARE, ...change })
    await world.announce(0, { at: at * 1_000, sourcePosition: fence.position, geofences: [fence] })
  }
  const group = async (geofenceGroupId: string, next: GroupRules, at = 0): Promise<void> => {
    const written = await world.putGroup(geofenceGroupId, next)
    await world.announce(0, { at: at * 1_000, sourcePosition: written.position, groups: [written] })
  }
  await group('group', rules)
  await edit(values, 0)
  const points = async (...batches: PlainPoint[][]): Promise<void> => {
    for (const batch of batches) await world.points(0, batchOf(batch))
  }
  /** Type, second and cause of each transition. */
  const made = async (): Promise<string[]> => {
    const matcher = world.matcher()
    await world.run(matcher, 0)
    await matcher.close()
    return (await world.transitions(0)).map(({ type, at, cause }) => `${type} ${at / 1_000} ${cause}`)
  }
  return { world, edit, group, points, made }
}

test('a first fix inside is an entry, touching is inside, and entries and leaves alternate', async (t) => {
  const { points, made } = await open(t)
  await points([fix(1, IN)], [fix(2, IN), fix(3, OUT), fix(4, OUT)], [fix(5, 1), fix(6, 1.0000001)])
  t.strictSame(await made(), ['entry 1 point', 'leave 3 point', 'entry 5 point', 'leave 6 point'])
})

test('late points and points ahead of the clock decide nothing', async (t) => {
  const { points, made } = await open(t)
  await points(
    [fix(10, OUT)],
    [fix(9, IN)],
    [fix(10, IN)],
    [fix(7_200, IN, { flags: AHEAD })],
    [fix(11, OUT)],
    [fix(12, IN)],
  )
  t.strictSame(await made(), ['entry 12 point'])
})

test('a fix that states a worse accuracy than the group takes decides nothing; one that states none passes', async (t) => {
  const { points, made } = await open(t, { maxAccuracy: 20 })
  await points([rough(1, IN, 21)], [rough(2, IN, 20)], [rough(3, OUT, 50)], [fix(4, OUT)])
  t.strictSame(await made(), ['entry 2 point', 'leave 4 point'])
})

test('a change waits until so many fixes agree, and has the time of the first of them', async (t) => {
  const { points, made } = await open(t, { debounce: { fixes: 3 } })
  await points([fix(1, IN)], [fix(2, OUT)], [fix(3, OUT)], [fix(4, IN)], [fix(5, OUT), fix(6, OUT)], [fix(7, OUT)])
  t.strictSame(await made(), ['entry 1 point', 'leave 5 point'], 'the first decided fix does not wait')
})

test('or until fixes over so many seconds agree', async (t) => {
  const { points, made } = await open(t, { debounce: { fixes: 10, seconds: 30 } })
  await points([fix(1, OUT)], [fix(10, IN)], [fix(39.999, IN)], [fix(40, IN)])
  t.strictSame(await made(), ['entry 10 point'])
})

test('fixes that are dropped for accuracy neither count nor interrupt', async (t) => {
  const { points, made } = await open(t, { maxAccuracy: 20, debounce: { fixes: 2 } })
  await points([fix(1, OUT)], [rough(2, IN, 5)], [rough(3, IN, 90)], [rough(4, OUT, 90)], [rough(5, IN, 5)])
  t.strictSame(await made(), ['entry 2 point'])
})

test('an edit judges the last decided point anew, at once', async (t) => {
  const { points, edit, made } = await open(t, { debounce: { fixes: 3 } })
  await points([fix(1, IN)])
  await edit({ shape: FAR }, 2)
  await edit({}, 3)
  await edit({ isActive: false }, 4)
  await edit({}, 5)
  await edit({ name: 'renamed' }, 6)
  await edit(null, 7)
  await points([fix(8, IN)])
  t.strictSame(await made(), [
    'entry 1 point',
    'leave 2 geofence',
    'entry 3 geofence',
    'leave 4 geofence',
    'entry 5 geofence',
    'leave 7 geofence',
  ])
})

test('an edit ends what a debounce held back for that geofence', async (t) => {
  const { points, edit, made } = await open(t, { debounce: { fixes: 3 } })
  await points([fix(1, IN)], [fix(2, OUT)])
  await edit({ shape: FAR }, 3)
  await edit({}, 4)
  await points([fix(5, OUT)])
  t.strictSame(await made(), ['entry 1 point', 'leave 3 geofence'])
})

test('a group that takes other fixes judges by the last of those', async (t) => {
  const { points, group, made } = await open(t)
  await points([rough(1, IN, 5)], [rough(2, OUT, 90)])
  await group('group', { maxAccuracy: 20 }, 3)
  await points([rough(4, OUT, 5)])
  t.strictSame(await made(), ['entry 1 point', 'leave 2 point'], 'no lane had kept the first fix: the next decides')
})

test('a deleted tracker leaves, and is new afterwards', async (t) => {
  const { points, world, made } = await open(t)
  await points([fix(10, IN)])
  await world.deleteTracker(0, TRACKER, 11_000)
  await points([fix(5, IN)])
  t.strictSame(await made(), ['entry 10 point', 'leave 11 tracker', 'entry 5 point'])
})

test('a fence across the antimeridian holds both sides', async (t) => {
  const shape = {
    type: 'Polygon' as const,
    coordinates: [ringOf(179, 0, -179, 1)],
  }
  const { points, made } = await open(t, {}, { shape })
  await points([fix(1, 178)], [fix(2, 179.5)], [fix(3, -179.5)], [fix(4, 180)], [fix(5, -178)])
  t.strictSame(await made(), ['entry 2 point', 'leave 5 point'])
})

test('a transition carries the point as it was kept', async (t) => {
  const { points, world, made } = await open(t)
  await points([fix(1, IN, { flags: HAS_SPEED, speedCms: 1_234, attributes: '{"driver":"7"}' })])
  await made()
  t.match(await world.transitions(0), [
    {
      trackerId: TRACKER,
      geofenceId: FENCE,
      geofenceGroupId: 'group',
      organizationId: ORG,
      point: { recordedAt: 1_000, lat: 0.5, lng: 0.5, speed: 12.34, attributes: { driver: '7' } },
    },
  ])
})

test('an organization that leaves the rollout leaves its geofences, and nothing is decided until it is back', async (t) => {
  const { points, world, made } = await open(t)
  await points([fix(1, IN)])
  await world.announce(0, {
    organizationId: '*',
    at: 2_000,
    sourcePosition: -1,
    settings: { tripStopMs: 300_000, rollout: [] },
  })
  await points([fix(3, OUT)], [fix(4, IN)])
  await world.announce(0, {
    organizationId: '*',
    at: 5_000,
    sourcePosition: -1,
    settings: { tripStopMs: 300_000, rollout: [ORG] },
  })
  await points([fix(6, IN)])
  t.strictSame(await made(), ['entry 1 point', 'leave 2 geofence', 'entry 6 point'])
})

test('an owner that was replaced can append nothing more, and the new one repeats nothing', async (t) => {
  const { points, world } = await open(t)
  await points([fix(1, IN)])
  const told: Decided[] = []
  const old = world.matcher({ onDecided: (_partition, _revision, _position, decided) => told.push(decided) })
  await world.run(old, 0)
  await old.save(0)
  t.equal(told.length, 1)
  await points([fix(2, OUT)])
  const young = world.matcher()
  await world.run(young, 0)
  await young.save(0)
  // The old owner wakes up and decides the same.
  const entry = { partition: 0, revision: 3, position: 99, kind: 'points' as const, batch: batchOf([fix(2, OUT)]) }
  await old.handle(entry, 0)
  await t.rejects(old.save(0), { name: 'StreamLost' })
  t.throws(() => old.handle({ ...entry, revision: 4 }, 0), { name: 'StreamLost' })
  await old.drop(0)
  await young.close()
  t.strictSame(
    (await world.transitions(0)).map(({ type }) => type),
    ['entry', 'leave'],
  )
})
