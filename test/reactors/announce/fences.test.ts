import { test, type Test } from 'tap'
import {
  ANNOUNCE_FENCES,
  FENCES_CHANGED,
  type FencesChanged,
  locationStream,
} from '../../../src/features/locations/events.ts'
import { Checkpoints } from '../../../src/kit/consumers/settle.ts'
import { GEOFENCE_PREFIX } from '../../../src/features/geofences/events.ts'
import { decodeJson, encodeJson } from '../../../src/kernel/event.ts'
import { idFrom } from '../../../src/kit/commands/ids.ts'
import { systemClock } from '../../../src/kernel/system-clock.ts'
import { announceFences } from '../../../src/reactors/announce/fences.ts'
import { MatcherWorld } from '../../support/matcher-world.ts'
import { uuidOf } from '../../support/trace-batches.ts'
import { folderOf } from '../../support/folder-of.ts'
import { failOnErrors, keepErrors, openServices } from '../../support/open-services.ts'
import { until } from '../../support/service.ts'

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

for (const [what, later] of [
  ['the same edits', 0],
  ['more edits than before', 2],
] as const)
  test(`a crash between an announcement and its checkpoint: ${what} are announced under ids of one append`, async (t) => {
    const services = await openServices(folderOf(t))
    t.teardown(() => services.close())
    const edits = async (count: number): Promise<void> => {
      for (let i = 0; i < count; i++) {
        const organizationId = uuidOf(`organization ${++edited}`)
        const event = { id: idFrom('edit', edited), type: 'geofenceEdited', isJson: true, metadata: {} }
        await services.log.append(
          `${GEOFENCE_PREFIX}${uuidOf(`${edited}`)}`,
          [{ ...event, data: encodeJson({ organizationId, at: edited }) }],
          'none',
        )
      }
    }
    let edited = 0
    await edits(3)
    const announced = async () =>
      (await services.log.read(locationStream(0), 0, 100)).filter(
        ({ data }) => decodeJson<FencesChanged>(data).settings === undefined,
      )
    const dying: typeof services.tables = {
      ...services.tables,
      commit: async (changes, move) => {
        if (move?.consumer === ANNOUNCE_FENCES) throw new Error('killed')
        return services.tables.commit(changes, move)
      },
    }
    const parts = { ...services, logger: keepErrors([]), partitions: 2 }
    const first = await announceFences({ ...parts, tables: dying }, SETTINGS)
    await until('an announcement without its checkpoint', async () => (await announced()).length === 3)
    await first.close()
    await edits(later)
    const failures: unknown[] = []
    const second = await announceFences({ ...parts, logger: keepErrors(failures) }, SETTINGS)
    await second.ready()
    await second.close()
    t.same(failures, [], 'no append mixed what the log had with what is new')
    const events = await announced()
    const named = new Set(
      events.flatMap(({ data }) => decodeJson<FencesChanged>(data).geofences.map(({ geofenceId }) => geofenceId)),
    )
    t.equal(named.size, 3 + later, 'everything is announced')
    t.equal(
      new Set(events.map(({ id }) => id)).size,
      later === 0 ? 3 : 6 + later,
      'the same ids again, or all of them new',
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
