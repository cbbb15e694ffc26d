import { test } from 'tap'
import { sampleVehicles } from '../../../src/features/vehicles/samples.ts'
import { makeSamples } from '../../../src/reactors/samples/make-samples.ts'
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
