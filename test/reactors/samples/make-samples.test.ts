import { test } from 'tap'
import { sampleVehicles } from '../../../src/features/vehicles/samples.ts'
import { makeSamples } from '../../../src/reactors/samples/make-samples.ts'
import { idSource } from '../../../src/kit/commands/ids.ts'
import { sampleWork } from '../../../src/reactors/samples/sample-work.ts'
import { openIdentity, type Session } from '../../support/open-identity.ts'
import { until } from '../../support/service.ts'

const vehiclesOf = async (session: Session): Promise<{ _id: string; name: string; hubId: string }[]> =>
  (await session.call('GET', '/vehicles?sortBy=createdAt')).body.data

test('a new organization gets sample vehicles in its first hub, once; older ones get none', async (t) => {
  const world = await openIdentity(t)
  const start = () => makeSamples({ ...world, makers: [sampleVehicles(world)] })
  const older = await world.signup()
  const first = await start()
  const owner = await world.signup()
  /** Retries wait by the clock of the test. */
  const count = async (session: Session) => {
    world.clock.advance(1_000)
    return (await vehiclesOf(session)).length
  }
  await until('the samples', async () => (await count(owner)) === 3)
  const [hub] = (await owner.call('GET', '/hubs')).body.data
  const [van, ...others] = await vehiclesOf(owner)
  t.ok([van, ...others].every(({ hubId, name }) => hubId === hub._id && name.startsWith('Sample ')))
  await owner.call('DELETE', `/vehicle/${van._id}`)
  await first.close()

  const body = { organizationName: 'Second', hubName: 'Hub', hubLat: 1, hubLng: 2 }
  const second = world.session(await owner.call('POST', '/organization', body), owner.email)
  const again = await start()
  t.teardown(() => again.close())
  await until('those of an organization that was made meanwhile', async () => (await count(second)) === 3)
  await world.tables.reset([], 'make-samples')
  t.equal(await count(older), 0)
  const back = world.session(
    await second.call('POST', '/auth/switch-organization', {
      organizationId: owner.body.data.organizationId,
      password: 'Correct-horse-7-battery',
    }),
    owner.email,
  )
  t.equal(await count(back), 2, 'what was deleted stays so')
})

test('samples wait for the organization alone: where its rows are, they are made at once', async (t) => {
  const world = await openIdentity(t)
  const start = () => makeSamples({ ...world, makers: [sampleVehicles(world)] })
  await (await start()).close()
  const owner = await world.signup()
  const samples = await start()
  t.teardown(() => samples.close())
  await until('the samples', async () => (await vehiclesOf(owner)).length === 3)
})

test('a new organization gets sample customers and tasks, each once through restarts', async (t) => {
  const world = await openIdentity(t)
  let failing = true
  const work = sampleWork(world)
  /** The first try ends half way, as a crash would. */
  const half: typeof work = async (origin, hubId) => {
    if (!failing) return work(origin, hubId)
    failing = false
    let tasks = 0
    const log: typeof world.log = Object.create(world.log)
    log.append = (stream, ...rest) => {
      if (stream.startsWith('task-') && tasks++ === 1) throw new Error('the process is killed')
      return world.log.append(stream, ...rest)
    }
    return sampleWork({ ...world, log })(origin, hubId)
  }
  const start = () => makeSamples({ ...world, makers: [half] })
  const first = await start()
  const owner = await world.signup()
  const rows = async (path: string) => (await owner.call('GET', path)).body.data
  await until('the tasks', async () => {
    world.clock.advance(1_000)
    return (await rows('/tasks')).length === 3
  })
  const [type, ...noOther] = await rows('/data-types')
  t.match([type.name, noOther], ['Sample customers', []])
  const records = await rows(`/data?dataTypeId=${type._id}&sortBy=values.number`)
  t.same(
    records.map(({ values }: { values: { number: string } }) => values.number),
    ['S-1', 'S-2', 'S-3'],
  )
  const [me] = await rows('/users')
  const tasks = await rows('/tasks?sortBy=createdAt')
  t.match(tasks[0], {
    state: 'assigned',
    assigneeIds: [me._id],
    tags: ['sample'],
    lat: records[0].values.place.lat,
    dataSource: { dataTypeId: type._id, dataId: records[0]._id },
  })
  t.same(
    tasks.slice(1).map(({ state }: { state: string }) => state),
    ['new', 'new'],
  )
  await owner.call('DELETE', `/task/${tasks[0]._id}`)
  await first.close()
  await world.tables.reset([], 'make-samples')
  const again = await start()
  t.teardown(() => again.close())
  const second = await world.signup()
  await until('those of the next organization', async () => {
    world.clock.advance(1_000)
    return (await second.call('GET', '/tasks')).body.data.length === 3
  })
  t.equal((await rows('/tasks')).length, 2, 'what was deleted stays so')
  t.equal((await rows('/data')).length, 3)
})

test('a name that is taken leaves a sample out, and no other', async (t) => {
  const world = await openIdentity(t)
  const owner = await world.signup()
  const fields = [{ name: 'id', type: 'text' }]
  await owner.call('POST', '/data-type', { name: 'Sample customers', primaryKey: 'id', fields })
  const { organizationId } = owner.body.data
  const origin = { organizationId, now: world.clock.now(), ids: idSource(0), metadata: { organizationId } }
  const [hub] = (await owner.call('GET', '/hubs')).body.data
  await t.rejects(sampleWork(world)(origin, hub._id), { code: 'key_in_use' }, 'makeSamples goes on after this')
  t.equal((await owner.call('GET', '/tasks')).body.total, 0)
})
