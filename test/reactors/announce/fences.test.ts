import { test, type Test } from 'tap'
import { FENCES_CHANGED, type FencesChanged, locationStream } from '../../../src/features/locations/events.ts'
import { decodeJson } from '../../../src/kernel/event.ts'
import { systemClock } from '../../../src/kernel/system-clock.ts'
import { FenceAnnouncer, waitAnnounced } from '../../../src/reactors/announce/fences.ts'
import { MatcherWorld } from '../../support/matcher-world.ts'
import { uuidOf } from '../../support/trace-batches.ts'
import { folderOf } from '../../support/folder-of.ts'

const SETTINGS = { tripStopMs: 300_000, rollout: '*' as const }
const SHAPE = { center: { lat: 0, lng: 0 }, radius: 100 }

const open = async (t: Test) => {
  const world = await MatcherWorld.open(folderOf(t))
  t.teardown(() => world.close())
  const services = { log: world.log, tables: world.tables, clock: systemClock, partitions: 3 }
  const announcer = () => new FenceAnnouncer(services, (error) => t.fail(String(error)))
  const told = async (partition: number): Promise<FencesChanged[]> =>
    (await world.log.read(locationStream(partition), 0, 100))
      .filter(({ type }) => type === FENCES_CHANGED)
      .map(({ data }) => decodeJson<FencesChanged>(data))
  return { world, services, announcer, told }
}

test('edits that came together are told together, to every partition', async (t) => {
  const { world, services, announcer, told } = await open(t)
  const group = await world.putGroup('group', {})
  const fences = [
    await world.putFence(uuidOf('a'), { shape: SHAPE }),
    await world.putFence(uuidOf('b'), { shape: SHAPE }),
  ]
  const running = announcer()
  t.equal(await running.waitFencesInForce(fences[1].position, 1), false, 'before it runs')
  await running.start(SETTINGS)
  t.equal(await running.waitFencesInForce(fences[1].position, 10_000), true)
  for (const partition of [0, 1, 2]) {
    const changes = (await told(partition)).filter(({ settings }) => settings === undefined)
    t.strictSame(
      changes.flatMap(({ groups }) => groups),
      [{ geofenceGroupId: 'group', revision: group.revision }],
    )
    t.match(changes.at(-1), {
      sourcePosition: fences[1].position,
      geofences: [{ geofenceId: uuidOf('a') }, { geofenceId: uuidOf('b') }],
    })
  }
  await running.close()
  t.equal(await waitAnnounced(services, fences[1].position, 10_000), true, 'other processes know by the checkpoint')
  t.equal(await waitAnnounced(services, fences[1].position + 1_000, 1), false)
})

test('settings are told at the first start and when they differ; edits go on from the checkpoint', async (t) => {
  const { world, announcer, told } = await open(t)
  const first = announcer()
  await first.start(SETTINGS)
  const fence = await world.putFence(uuidOf('a'), { shape: SHAPE })
  t.equal(await first.waitFencesInForce(fence.position, 10_000), true)
  await first.close()
  const again = announcer()
  await again.start(SETTINGS)
  await again.close()
  t.equal((await told(1)).length, 2, 'nothing is told twice')
  const changed = announcer()
  await changed.start({ ...SETTINGS, rollout: ['x'] })
  await changed.close()
  t.match(
    (await told(1)).map(({ settings, geofences }) => settings ?? geofences.length),
    [SETTINGS, 1, { tripStopMs: 300_000, rollout: ['x'] }],
  )
})

test('an announcement that is repeated after a crash changes nothing', async (t) => {
  const { world } = await open(t)
  const fence = await world.putFence(uuidOf('a'), { shape: SHAPE })
  const moved = await world.putFence(uuidOf('a'), { shape: { ...SHAPE, radius: 200 } })
  const matcher = world.matcher()
  for (const { position, ...change } of [fence, moved, fence])
    await world.announce(0, { sourcePosition: position, geofences: [change] })
  await world.run(matcher, 0)
  const [organization] = matcher.partition(0)?.state.organizations ?? []
  t.equal(organization.fences.fence(0)?.revision, moved.revision)
  await matcher.close()
})
