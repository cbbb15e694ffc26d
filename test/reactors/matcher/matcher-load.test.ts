import { test } from 'tap'
import { tablesWith } from '../../../src/engines/table-store.ts'
import { GeofenceMatcher } from '../../../src/reactors/matcher/match-geofences.ts'
import { PAGE_TRACKERS } from '../../../src/reactors/matcher/state.ts'
import { MATCHER_STATE, MatcherStore } from '../../../src/reactors/matcher/store.ts'
import { MatcherWorld, ORG } from '../../support/matcher-world.ts'
import { batchOf, uuidOf } from '../../support/trace-batches.ts'
import { folderOf } from '../../support/folder-of.ts'

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
      return []
    },
  })
  const store = new MatcherStore(tables, 0)
  await store.pages(0, () => undefined)
  t.same(asked, [])
  await store.pages(33, () => undefined)
  t.same(asked, [32, 1])
})
