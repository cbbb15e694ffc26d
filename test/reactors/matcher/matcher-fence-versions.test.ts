import { test } from 'tap'
import { MatcherWorld, ORG } from '../../support/matcher-world.ts'
import { batchOf, uuidOf } from '../../support/trace-batches.ts'
import { folderOf } from '../../support/folder-of.ts'
import { ringOf } from '../../support/ring.ts'

const square = (lng: number) => ({
  type: 'Polygon' as const,
  coordinates: [ringOf(lng, 0, lng + 1, 1)],
})
const fix = (at: number, lng: number) => ({
  organizationId: ORG,
  trackerId: uuidOf('tracker'),
  recordedAt: at,
  latE7: 5_000_000,
  lngE7: lng * 1e7,
  flags: 0,
})

test('partitions that stand at the same edit share one version of the fences, however far apart they came there', async (t) => {
  const world = await MatcherWorld.open(folderOf(t))
  t.teardown(() => world.close())
  const partitions = [0, 1, 2]
  const group = await world.putGroup('group', {})
  const edit = async (lng: number, groups: { geofenceGroupId: string; revision: number }[] = []): Promise<void> => {
    const fences = [
      await world.putFence(uuidOf(`fence ${lng % 3}`), { shape: square(lng) }),
      await world.putFence(uuidOf('other'), { shape: square(lng + 20) }),
    ]
    for (const partition of partitions)
      await world.announce(partition, { at: lng, sourcePosition: fences[1].position, geofences: fences, groups })
  }
  await edit(1, [group])
  for (const partition of partitions) await world.points(partition, batchOf([fix(1, 5.5)]))
  for (let lng = 2; lng < 12; lng++) await edit(lng)
  for (const partition of partitions) await world.points(partition, batchOf([fix(2, 11.5)]))

  const matcher = world.matcher()
  // One after the other: the second begins when the first has left all older versions behind.
  for (const partition of partitions) await world.run(matcher, partition)
  const versions = partitions.map((partition) => matcher.partition(partition)?.state.organizations[0].fences)
  t.ok(versions[0] !== undefined && versions.every((fences) => fences === versions[0]), 'the same object')
  t.equal(matcher.fenceVersions, 1, 'older ones are forgotten')

  await edit(12)
  for (const partition of partitions) await world.points(partition, batchOf([fix(3, 12.5)]))
  for (const partition of partitions) await matcher.save(partition)
  for (const partition of partitions) await world.run(matcher, partition)
  t.equal(matcher.fenceVersions, 1)
  await matcher.close()
  t.equal(matcher.fenceVersions, 0, 'nobody is left')
  const [first, ...others] = await Promise.all(partitions.map((partition) => world.decisions(partition)))
  t.ok(first.length > 4, `${first.length} decisions`)
  for (const other of others) t.strictSame(other, first)
})

test('edits that are told in other portions lead to the same', async (t) => {
  const world = await MatcherWorld.open(folderOf(t))
  t.teardown(() => world.close())
  const fence = await world.putFence(uuidOf('fence'), { shape: square(0) })
  const other = await world.putFence(uuidOf('other'), { shape: square(5) })
  const edits = [
    await world.putFence(uuidOf('fence'), { shape: square(1) }),
    await world.putFence(uuidOf('fence'), { shape: square(2) }),
  ]
  for (const partition of [0, 1]) {
    await world.announce(partition, { sourcePosition: other.position, geofences: [fence, other] })
    await world.points(partition, batchOf([fix(1, 2.5), { ...fix(1, 5.5), trackerId: uuidOf('second') }]))
  }
  for (const edit of edits) await world.announce(0, { sourcePosition: edit.position, geofences: [edit] })
  await world.announce(1, { sourcePosition: edits[1].position, geofences: [edits[1]] })
  for (const partition of [0, 1])
    await world.points(partition, batchOf([fix(2, 9), { ...fix(2, 9), trackerId: uuidOf('second') }]))

  const matcher = world.matcher()
  // Both stand at the first version when they part.
  await Promise.all([0, 1].map((partition) => world.run(matcher, partition)))
  t.equal(matcher.partition(0)?.state.organizations[0].fences, matcher.partition(1)?.state.organizations[0].fences)
  t.equal(matcher.fenceVersions, 1)
  await matcher.close()
  const lines = async (partition: number) =>
    (await world.transitions(partition)).map(({ trackerId, geofenceId, type, cause }) =>
      [trackerId, geofenceId, type, cause].join(' '),
    )
  t.equal((await lines(0)).length, 4)
  t.strictSame(await lines(1), await lines(0))
})
