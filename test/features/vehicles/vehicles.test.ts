import { test } from 'tap'
import { openIdentity, PASSWORD } from '../../support/open-identity.ts'

test('the user of a vehicle has its hub', async (t) => {
  const { signup, roleId } = await openIdentity(t)
  const owner = await signup()
  const [hubId] = owner.body.data.hubId
  const make = async (path: string, body: object) => (await owner.call('POST', path, body)).body.data
  const north = (await make('/hub', { name: 'North', lat: 1, lng: 2 }))._id
  const person = { name: 'Bob', email: 'bob@example.com', password: PASSWORD, roleId: await roleId(owner, 'fieldUser') }
  const bob = await make('/user', { ...person, hubId: [hubId] })
  const refused = { status: 400, body: { errors: [{ path: '/userId' }] } }
  t.match(await owner.call('POST', '/vehicle', { name: 'Van', hubId: north, userId: bob._id }), refused)
  const made = await owner.call('POST', '/vehicle', { name: 'Van', hubId, userId: bob._id })
  t.equal(made.status, 201)
  const van = `/vehicle/${made.body.data._id}`
  t.match(await owner.call('PATCH', van, { hubId: north }), refused, 'nor does the vehicle move away from its user')
  t.match(
    await owner.call('PATCH', van, { hubId: north, userId: owner.body.data._id }),
    { status: 200 },
    'an owner has every hub, whatever their list says',
  )
  t.match(await owner.call('PATCH', van, { userId: bob._id }), refused)
  t.equal((await owner.call('PATCH', van, { hubId, userId: bob._id })).status, 200)
  t.equal((await owner.call('PATCH', `/user/${bob._id}`, { hubId: [north] })).status, 200)
  t.equal((await owner.call('PATCH', van, { speed: 50 })).status, 200, 'who lost the hub since stands in nobody’s way')
})
