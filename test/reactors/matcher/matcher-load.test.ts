import { test } from 'tap'
import { Failure } from '../../../src/kernel/errors.ts'
import type { EventLog } from '../../../src/engines/event-log.ts'
import { locationStream } from '../../../src/features/locations/events.ts'
import { locationEntry } from '../../../src/features/locations/location-entry.ts'
import { DECIDED } from '../../../src/features/transitions/events.ts'
import { tablesWith } from '../../../src/engines/table-store.ts'
import { GeofenceMatcher } from '../../../src/reactors/matcher/match-geofences.ts'
import { readSnapshot } from '../../../src/reactors/matcher/snapshot.ts'
import { PAGE_TRACKERS } from '../../../src/reactors/matcher/state.ts'
import { MATCHER_STATE, MatcherStore } from '../../../src/reactors/matcher/store.ts'
import { MatcherWorld, ORG } from '../../support/matcher-world.ts'
import { batchOf, uuidOf } from '../../support/trace-batches.ts'
import { folderOf } from '../../support/folder-of.ts'
import { ringOf } from '../../support/ring.ts'
import { until } from '../../support/service.ts'

const PARTITIONS = [0, 1, 2]
/** More pages than a few reads have. */
const TRACKERS = 70 * PAGE_TRACKERS

test('partitions taken together are restored one after the other, in reads that hold up no other one for long', async (t) => {
  const world = await MatcherWorld.open(folderOf(t))
  t.teardown(() => world.close())
  const fixes = Array.from({ length: TRACKERS }, (_, i) => ({
    ...{ organizationId: ORG, trackerId: uuidOf(`tracker ${i}`), recordedAt: 1 },
    ...{ latE7: 5_000_000, lngE7: 0, flags: 0 },
  }))
  const before = world.matcher()
  for (const partition of PARTITIONS) {
    await world.points(partition, batchOf(fixes))
    await world.run(before, partition)
  }
  await before.close()

  let reading = 0
  let mostAtOnce = 0
  const readScopes: string[] = []
  const tables = tablesWith(world.tables, {
    getMany: async (name, scope, ids) => {
      if (name !== MATCHER_STATE.name) return world.tables.getMany(name, scope, ids)
      reading += ids.length
      mostAtOnce = Math.max(mostAtOnce, reading)
      if (readScopes.at(-1) !== scope) readScopes.push(scope)
      const rows = await world.tables.getMany(name, scope, ids)
      await new Promise((resume) => setImmediate(resume))
      reading -= ids.length
      return rows
    },
  } as Partial<typeof world.tables>)
  const matcher = new GeofenceMatcher({ log: world.log, tables, clock: world.clock })
  await Promise.all(PARTITIONS.map((partition) => matcher.load(partition)))
  t.equal(matcher.counts().trackers, TRACKERS * PARTITIONS.length)
  t.equal(readScopes.length, PARTITIONS.length, `one after the other: ${readScopes}`)
  t.ok(mostAtOnce > 0 && mostAtOnce <= 64, `${mostAtOnce} pages asked for at once`)
  await matcher.close()
})

test('only pages that there are are asked for: an error about others would be caught by nobody', async (t) => {
  const world = await MatcherWorld.open(folderOf(t))
  t.teardown(() => world.close())
  const asked: number[] = []
  const tables = tablesWith(world.tables, {
    getMany: async (_name, _scope, ids) => {
      asked.push(ids.length)
      return ids.map(() => ({}) as never)
    },
  })
  const store = new MatcherStore(tables, 0)
  await store.pages(0, () => undefined)
  t.same(asked, [])
  await store.pages(33, () => undefined)
  t.same(asked, [32, 1])
})

const square = (lng: number) => ({ type: 'Polygon' as const, coordinates: [ringOf(lng, 0, lng + 1, 1)] })
const fix = (recordedAt: number, lng: number) => ({
  organizationId: ORG,
  trackerId: uuidOf('tracker'),
  recordedAt,
  latE7: 5_000_000,
  lngE7: lng * 1e7,
  flags: 0,
})

test('a partition that finds the fences of its process in another order stores them anew, and keeps them', async (t) => {
  const world = await MatcherWorld.open(folderOf(t))
  t.teardown(() => world.close())
  const group = await world.putGroup('group', {})
  const [one, two] = [
    await world.putFence(uuidOf('one'), { shape: square(0) }),
    await world.putFence(uuidOf('two'), { shape: square(5) }),
  ]
  for (const [partition, geofences] of [
    [one, two],
    [two, one],
  ].entries()) {
    await world.announce(partition, { sourcePosition: two.position, geofences, groups: [group] })
    await world.points(partition, batchOf([fix(1, 5.5)]))
    const matcher = world.matcher()
    await world.run(matcher, partition)
    await matcher.close()
  }

  const together = world.matcher()
  for (const partition of [0, 1]) await together.load(partition)
  await together.close()

  await world.points(1, batchOf([fix(2, 5.6), fix(3, 0.5)]))
  const last = world.matcher()
  await world.run(last, 1)
  await last.close()
  const told = (await world.transitions(1)).map(({ geofenceId, type, point }) => [geofenceId, type, point.recordedAt])
  t.same(told, [
    [uuidOf('two'), 'entry', 1],
    [uuidOf('two'), 'leave', 3],
    [uuidOf('one'), 'entry', 3],
  ])
})

for (const lost of ['page.0', 'fences.'])
  test(`a stored state whose row ${lost} is missing is not used: it is made again from the log`, async (t) => {
    const world = await MatcherWorld.open(folderOf(t))
    t.teardown(() => world.close())
    const fence = await world.putFence(uuidOf('fence'), { shape: square(0) })
    await world.announce(0, { sourcePosition: fence.position, geofences: [fence] })
    await world.points(0, batchOf([fix(1, 0.5)]))
    const before = world.matcher()
    await world.run(before, 0)
    await before.close()

    const taken: string[] = []
    for await (const { scope, id } of world.tables.scanAll(MATCHER_STATE.name))
      if (id.startsWith(lost)) {
        await world.tables.commit([{ table: MATCHER_STATE.name, scope, id, row: null }])
        taken.push(id)
      }
    t.equal(taken.length, 1)
    await world.points(0, batchOf([fix(2, 0.6), fix(3, 5.5)]))
    const after = world.matcher()
    await t.rejects(after.load(0), {
      message: `the stored state of matcher-0 lacks ${taken[0]}: it is made again from the log`,
    })
    await world.run(after, 0)
    await after.close()
    t.same(
      (await world.transitions(0)).map(({ type, point }) => [type, point.recordedAt]),
      [
        ['entry', 1],
        ['leave', 3],
      ],
    )
  })

test('saves that fail again and again leave no more to be deleted than one, and the next restores as ever', async (t) => {
  const world = await MatcherWorld.open(folderOf(t))
  t.teardown(() => world.close())
  const fence = await world.putFence(uuidOf('fence'), { shape: square(0) })
  await world.announce(0, { sourcePosition: fence.position, geofences: [fence] })
  await world.points(0, batchOf([fix(1, 0.5)]))
  let isDown = true
  const deleted: string[] = []
  const tables = tablesWith(world.tables, {
    commit: async (changes, move, numbers) => {
      if (isDown) throw new Failure('engine_down')
      deleted.push(...changes.flatMap(({ id, row }) => (row === null ? [id] : [])))
      return world.tables.commit(changes, move, numbers)
    },
  })
  const matcher = new GeofenceMatcher({ log: world.log, tables, clock: world.clock })
  await world.run(matcher, 0).catch(() => undefined)
  for (let failed = 0; failed < 5; failed++) await t.rejects(matcher.save(0), { code: 'engine_down' })
  isDown = false
  await matcher.save(0)
  t.same(deleted, [])
  await matcher.close()
  await world.points(0, batchOf([fix(2, 5.5)]))
  const after = world.matcher()
  await world.run(after, 0)
  await after.close()
  t.same(
    (await world.transitions(0)).map(({ type }) => type),
    ['entry', 'leave'],
  )
})

for (const [what, refused] of [
  ['decisions before it were lost with the partition', DECIDED],
  ['its process ended before it was whole', 'snapshotPages.v1'],
])
  test(`a snapshot does not count where ${what}: the one before it does`, async (t) => {
    const world = await MatcherWorld.open(folderOf(t))
    t.teardown(() => world.close())
    const fence = await world.putFence(uuidOf('fence'), { shape: square(0) })
    await world.announce(0, { sourcePosition: fence.position, geofences: [fence] })
    const appends: string[] = []
    let isRefusing = false
    const log: EventLog = Object.create(world.log, {
      append: {
        value: async (...[stream, events, expected]: Parameters<EventLog['append']>) => {
          appends.push(events[0].type)
          if (isRefusing && events[0].type === refused) throw new Failure('engine_down')
          return world.log.append(stream, events, expected)
        },
      },
    })
    const before = new GeofenceMatcher({ log, tables: world.tables, clock: world.clock })
    await world.run(before, 0)
    await before.snapshot(0)
    isRefusing = true
    await world.points(0, batchOf([fix(1, 0.5)]))
    for (const event of await world.log.read(locationStream(0), 1, 1)) await before.handle(locationEntry(event, 0), 0)
    const snapshot = before.snapshot(0)
    snapshot.catch(() => undefined) // looked at below
    await until('its pages', () => appends.filter((type) => type === 'snapshotPages.v1').length === 1)
    await before.drop(0)
    await t.rejects(snapshot)

    const rows = world.tables.scanAll(MATCHER_STATE.name)
    for await (const { scope, id } of rows)
      await world.tables.commit([{ table: MATCHER_STATE.name, scope, id, row: null }])
    await world.points(0, batchOf([fix(2, 5.5)]))
    const after = world.matcher()
    await world.run(after, 0)
    await after.close()
    t.same(
      (await world.transitions(0)).map(({ type }) => type),
      ['entry', 'leave'],
    )
  })

test('a process that stood still replaces no snapshot that goes further than its own', async (t) => {
  const world = await MatcherWorld.open(folderOf(t))
  t.teardown(() => world.close())
  const fence = await world.putFence(uuidOf('fence'), { shape: square(0) })
  await world.announce(0, { sourcePosition: fence.position, geofences: [fence] })
  const still = world.matcher()
  await world.run(still, 0)
  await world.points(0, batchOf([fix(1, 0.5)]))
  const next = world.matcher()
  await world.run(next, 0)
  t.equal(await next.snapshot(0), 1)
  await next.drop(0)
  const { length } = await world.log.read('matcher-state-0', 0, 100)
  t.equal(await still.snapshot(0), 1)
  t.equal((await world.log.read('matcher-state-0', 0, 100)).length, length, 'it has written nothing')
  await still.drop(0)
})

test('a snapshot whose rest was hidden while it was read is not restored', async (t) => {
  const world = await MatcherWorld.open(folderOf(t))
  t.teardown(() => world.close())
  const fence = await world.putFence(uuidOf('fence'), { shape: square(0) })
  await world.announce(0, { sourcePosition: fence.position, geofences: [fence] })
  await world.points(0, batchOf([fix(1, 0.5)]))
  const matcher = world.matcher()
  await world.run(matcher, 0)
  await matcher.snapshot(0)
  const log: Pick<EventLog, 'read'> = {
    read: async (stream, from, count, direction) => {
      const events = await world.log.read(stream, from, count, direction)
      if (direction === 'backwards') return events
      if (events.length > 0) await world.points(0, batchOf([fix(2, 0.6)]))
      for (const event of await world.log.read(locationStream(0), 2, 1))
        await matcher.handle(locationEntry(event, 0), 0)
      await matcher.snapshot(0)
      return events.slice(0, 1)
    },
  }
  const restored: unknown[] = []
  const target = { restore: async (root: object) => void restored.push(root), takePage: () => undefined }
  t.equal(await readSnapshot(log, 0, target), false)
  t.same(restored, [])
  t.equal(await readSnapshot(world.log, 0, target), true, 'the next one is')
  await matcher.close()
})
