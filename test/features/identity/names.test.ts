import { test, type Test } from 'tap'
import { organization } from '../../../src/features/identity/organizations/organization.ts'
import { user } from '../../../src/features/identity/users/user.ts'
import { hub } from '../../../src/features/hubs/hub.ts'
import { openIdentity, PASSWORD } from '../../support/open-identity.ts'

const OLD = 'Nor\u200bth'
const refused = (path: string) => ({
  status: 400,
  body: { errors: [{ path, message: 'must not contain zero width characters' }] },
})

/** An organization whose names are from before names were held to more. */
const openOld = async (t: Test) => {
  const world = await openIdentity(t)
  const owner = await world.signup()
  const { _id: userId, organizationId } = owner.body.data
  const origin = { organizationId, now: world.clock.now(), ids: { next: () => crypto.randomUUID() }, metadata: {} }
  const { row } = await hub.writer(world).create(origin, { name: OLD, lat: 1, lng: 2 })
  const change = { kind: 'amend' as const, body: { name: OLD } }
  await user.writer(world).change(origin, { ...change, id: userId })
  const { wrote } = await organization.writer(world).change(origin, { ...change, id: organizationId })
  await (wrote && world.settle(wrote, 10_000))
  return { ...world, owner, userId, hubPath: `/hub/${row._id}` }
}

test('no name is given that looks like another one', async (t) => {
  const { signup, call, roleId } = await openIdentity(t)
  const body = { name: 'Ada', email: 'a@example.com', password: PASSWORD, hubName: 'Main', hubLat: 1, hubLng: 2 }
  for (const name of ['name', 'organizationName', 'hubName']) {
    const signUp = { ...body, organizationName: 'Company', [name]: 'Com\u200bpany' }
    t.match(await call('POST', '/auth/signup', { body: signUp }), refused(`/${name}`), name)
  }
  const owner = await signup()
  t.match(await owner.call('POST', '/hub', { name: OLD, lat: 1, lng: 2 }), refused('/name'))
  t.match(await owner.call('POST', '/plugin-setting', { plugin: OLD }), refused('/plugin'))
  const made = await owner.call('POST', '/hub', { name: 'North', lat: 1, lng: 2 })
  const path = `/hub/${made.body.data._id}`
  t.match(await owner.call('PATCH', path, { name: OLD }), refused('/name'))
  t.match(await owner.call('PUT', path, { name: OLD, lat: 1, lng: 2 }), refused('/name'))
  t.match(await owner.call('PATCH', '/user', { name: OLD }), refused('/name'))
  t.match(await owner.call('PATCH', '/organization', { name: OLD }), refused('/name'))
  const flow = { name: 'Flow', states: [{ id: 'open', name: 'O\u2060pen' }] }
  t.match(await owner.call('POST', '/flow', flow), { status: 400 })
  const invited = { email: 'b@example.com', name: OLD, roleId: await roleId(owner, 'planner') }
  t.match(await owner.call('POST', '/user/invite', invited), refused('/name'))
  t.match(await owner.call('PATCH', path, { name: 'می\u200cخواهم 👩\u200d💻', address: 'a\u200bb' }), { status: 200 })
})

test('a name that is there already is kept, and blocks no change of the rest', async (t) => {
  const { owner, hubPath, userId } = await openOld(t)
  t.match(await owner.call('PATCH', hubPath, { lat: 3 }), { status: 200, body: { data: { name: OLD, lat: 3 } } })
  const whole = (await owner.call('GET', hubPath)).body.data
  t.match(await owner.call('PUT', hubPath, { ...whole, lng: 4 }), {
    status: 200,
    body: { data: { name: OLD, lng: 4 } },
  })
  t.match(await owner.call('PUT', hubPath, { ...whole, name: `${OLD}\u200b` }), refused('/name'))
  t.match(await owner.call('PATCH', '/user', { name: OLD, language: 'pl' }), { status: 200 })
  const other = { name: OLD, timeZone: 'UTC' }
  t.match(await owner.call('PATCH', `/user/${userId}`, other), { status: 200, body: { data: other } })
  t.match(await owner.call('PATCH', '/organization', { name: OLD }), { status: 200 })
  t.match(await owner.call('PATCH', hubPath, { name: 'North' }), { status: 200 })
  t.match(await owner.call('PATCH', hubPath, { name: OLD }), refused('/name'), 'and is not given again')
})
