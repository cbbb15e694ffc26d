import { test, type Test } from 'tap'
import {
  ANNOUNCE_FENCES,
  FENCES_CHANGED,
  type FencesChanged,
  locationStream,
} from '../../../src/features/locations/events.ts'
import { Checkpoints } from '../../../src/kit/consumers/settle.ts'
import { decodeJson } from '../../../src/kernel/event.ts'
import { systemClock } from '../../../src/kernel/system-clock.ts'
import { announceFences } from '../../../src/reactors/announce/fences.ts'
import { MatcherWorld } from '../../support/matcher-world.ts'
import { uuidOf } from '../../support/trace-batches.ts'
import { folderOf } from '../../support/folder-of.ts'
import { failOnErrors } from '../../support/open-services.ts'

const SETTINGS = { tripStopMs: 300_000, rollout: '*' as const }
const SHAPE = { center: { lat: 0, lng: 0 }, radius: 100 }

const open = async (t: Test) => {
  const world = await MatcherWorld.open(folderOf(t))
  t.teardown(() => world.close())
  const checkpoints = new Checkpoints(world.tables, systemClock)
  const logger = failOnErrors(t)
  const services = { log: world.log, tables: checkpoints.tables, clock: systemClock, logger, partitions: 3 }
  const start = (settings: Parameters<typeof announceFences>[1] = SETTINGS) => announceFences(services, settings)
  const inForce = (position: number, timeoutMs: number) =>
    checkpoints.reached(ANNOUNCE_FENCES, { all: position }, timeoutMs)
  const told = async (partition: number): Promise<FencesChanged[]> =>
    (await world.log.read(locationStream(partition), 0, 100))
      .filter(({ type }) => type === FENCES_CHANGED)
      .map(({ data }) => decodeJson<FencesChanged>(data))
  return { world, start, inForce, told }
}

test('edits that came together are told together, to every partition', async (t) => {
  const { world, start, inForce, told } = await open(t)
  const group = await world.putGroup('group', {})
  const fences = [
    await world.putFence(uuidOf('a'), { shape: SHAPE }),
    await world.putFence(uuidOf('b'), { shape: SHAPE }),
  ]
  t.equal(await inForce(fences[1].position, 1), false, 'before it runs')
  const running = await start()
  t.equal(await inForce(fences[1].position, 10_000), true)
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
})

test('settings are told at the first start and when they differ; edits go on from the checkpoint', async (t) => {
  const { world, start, inForce, told } = await open(t)
  const first = await start()
  const fence = await world.putFence(uuidOf('a'), { shape: SHAPE })
  t.equal(await inForce(fence.position, 10_000), true)
  await first.close()
  await (await start()).close()
  t.equal((await told(1)).length, 2, 'nothing is told twice')
  await (await start({ ...SETTINGS, rollout: ['x'] })).close()
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
