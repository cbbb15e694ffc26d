import { randomUUID } from 'node:crypto'
import { type Test, test } from 'tap'
import { openIdentity, PASSWORD, type Session } from '../../support/open-identity.ts'

/** An organization with two hubs, a team in each, and an editor of users who has the first hub alone. */
const openHubs = async (t: Test) => {
  const world = await openIdentity(t)
  const owner = await world.signup()
  const [own] = owner.body.data.hubId as string[]
  const made = async (session: Session, path: string, body: object) => {
    const answer = await session.call('POST', path, body)
    if (answer.status !== 201) throw new Error(JSON.stringify(answer.body))
    return answer.body.data
  }
  const { _id: foreign } = await made(owner, '/hub', { name: 'North', lat: 50, lng: 20 })
  const permissions = ['view/user', 'edit/user', 'view/team', 'edit/team', 'view/hub', 'view/role']
  const { _id: editorRole } = await made(owner, '/role', { name: 'Editor', permissions })
  const { _id: plainRole } = await made(owner, '/role', { name: 'Plain', permissions: ['view/user'] })
  const person = (email: string, fields: object) =>
    made(owner, '/user', { name: email, email, password: PASSWORD, roleId: plainRole, ...fields })
  await person('editor@example.com', { roleId: editorRole, hubId: [own] })
  const near = await person('near@example.com', { hubId: [own] })
  const far = await person('far@example.com', { hubId: [own, foreign] })
  const { _id: farTeam } = await made(owner, '/team', { name: 'Far', hubId: foreign, userIds: [far._id] })
  const editor = await world.login('editor@example.com')
  return { ...world, owner, editor, own, foreign, near, far, farTeam, plainRole, made }
}

test('an editor of users reaches those alone all of whose hubs are theirs', async (t) => {
  const { owner, editor, near, far, farTeam, own } = await openHubs(t)
  t.equal((await editor.call('PATCH', `/user/${near._id}`, { name: 'Nearer' })).status, 200)
  for (const body of [
    { password: 'Taken-over-9' },
    { hubId: [own] },
    { hubId: [] },
    { status: 'disabled' },
    { teamIds: [] },
  ])
    t.match(await editor.call('PATCH', `/user/${far._id}`, body), { status: 403, body: { code: 'forbidden' } })
  t.equal((await editor.call('DELETE', `/user/${far._id}`)).status, 403)
  t.match((await owner.call('GET', `/user/${far._id}`)).body.data, { status: 'active', teamIds: [farTeam] })
})

test('nobody gives themselves a role that sees all hubs, nor one with a permission that they lack', async (t) => {
  const { owner, editor, roleId, near, plainRole, own } = await openHubs(t)
  const me = (await editor.call('GET', '/user')).body.data
  const admin = await roleId(owner, 'admin')
  for (const id of [me._id, near._id])
    t.match(await editor.call('PATCH', `/user/${id}`, { roleId: admin }), { status: 403 })
  t.match(
    await editor.call('POST', '/user', { name: 'A', email: 'a@example.com', password: PASSWORD, roleId: admin }),
    { status: 403 },
  )
  t.equal(
    (await owner.call('PATCH', `/role/${plainRole}`, { permissions: ['view/user', 'view/all-hubs'] })).status,
    200,
  )
  t.match(
    await editor.call('PATCH', `/user/${near._id}`, { name: 'X' }),
    { status: 403 },
    'who sees more is not reached',
  )
  t.match(await editor.call('POST', '/user', { name: 'B', email: 'b@example.com', roleId: plainRole, hubId: [own] }), {
    status: 403,
    body: { permissions: ['view/all-hubs'] },
  })
})

test('only owners make owners, and only owners take an owner their role, password or existence', async (t) => {
  const { owner, roleId, login, made } = await openHubs(t)
  const founder = (await owner.call('GET', '/user')).body.data
  const [ownerRole, adminRole] = [await roleId(owner, 'owner'), await roleId(owner, 'admin')]
  const admin = await made(owner, '/user', {
    name: 'Admin',
    email: 'admin@example.com',
    password: PASSWORD,
    roleId: adminRole,
  })
  const session = await login('admin@example.com')
  const tries: [string, string, object | undefined][] = [
    ['PATCH', `/user/${admin._id}`, { roleId: ownerRole }],
    ['PATCH', `/user/${founder._id}`, { roleId: adminRole }],
    ['PATCH', `/user/${founder._id}`, { password: 'Taken-over-9' }],
    ['PATCH', `/user/${founder._id}`, { email: 'mine@example.com' }],
    ['PATCH', `/user/${founder._id}`, { status: 'disabled' }],
    ['DELETE', `/user/${founder._id}`, undefined],
    ['POST', '/user', { name: 'O', email: 'o@example.com', password: PASSWORD, roleId: ownerRole }],
  ]
  for (const [method, path, body] of tries)
    t.match(
      await session.call(method as 'PATCH', path, body),
      { status: 403, body: { code: 'forbidden' } },
      `${method} ${path}`,
    )
  t.equal((await owner.call('PATCH', `/user/${admin._id}`, { roleId: ownerRole })).status, 200)
})

test('a password that an administrator sets opens their organization alone', async (t) => {
  const { owner, login, roleId, made } = await openHubs(t)
  const roleOfAdmins = await roleId(owner, 'admin')
  const fields = { name: 'Vic', email: 'vic@example.com', password: PASSWORD, roleId: roleOfAdmins }
  const victim = await made(owner, '/user', fields)
  const session = await login('vic@example.com')
  const hub = { hubName: 'Own', hubLat: 1, hubLng: 1 }
  const own = await session.call('POST', '/organization', { organizationName: 'Victims own', ...hub })
  t.equal(own.status, 200)
  const { organizationId } = own.body.data
  t.equal((await owner.call('PATCH', `/user/${victim._id}`, { password: 'Set-by-admin-9' })).status, 200)
  const taken = await login('vic@example.com', 'Set-by-admin-9')
  t.equal(taken.body.data.organizationId, owner.body.data.organizationId, 'not the one that was used last')
  const password = 'Set-by-admin-9'
  const there = { email: 'vic@example.com', password, organizationId }
  t.match(await owner.call('POST', '/auth/login', there), { status: 401, body: { code: 'invalid_credentials' } })
  t.equal((await taken.call('POST', '/auth/switch-organization', { organizationId, password })).status, 404)
  const change = { password: 'Changed-again-9', currentPassword: password }
  t.equal((await taken.call('PATCH', '/user', change)).status, 200)
  const again = { ...there, password: 'Changed-again-9' }
  t.equal((await owner.call('POST', '/auth/login', again)).status, 401, 'changing it opens no more')
})

test('who may not edit users sees name, status, role and teams of others', async (t) => {
  const { signup, login, roleId } = await openIdentity(t)
  const owner = await signup({ name: 'Olga' })
  const [hubId] = owner.body.data.hubId
  await owner.call('PATCH', '/user', { email: 'olga.new@example.com', currentPassword: PASSWORD })
  const email = 'pat@example.com'
  const made = { name: 'Pat', email, password: PASSWORD, roleId: await roleId(owner, 'planner'), hubId: [hubId] }
  const { _id } = (await owner.call('POST', '/user', made)).body.data
  const planner = await login(email)
  const ownerId = owner.body.data._id
  const { data: other } = (await planner.call('GET', `/user/${ownerId}`)).body
  t.match(other, { _id: ownerId, name: 'Olga', status: 'active', roleId: String, teamIds: [] })
  for (const field of ['email', 'pendingEmail', 'hubId', 'language', 'timeZone']) t.notOk(field in other, field)
  t.match((await planner.call('GET', `/user/${_id}`)).body.data, { email, hubId: [hubId] }, 'their own record is whole')
  const { data } = (await planner.call('GET', '/users?sortBy=name')).body
  t.same(
    data.map((row: { email?: string }) => row.email),
    [undefined, email],
  )
  const refused = (field: string) => ({ status: 403, body: { fields: [field] } })
  for (const query of [`email=${owner.email}`, 'sortBy=email', 'fields=email'])
    t.match(await planner.call('GET', `/users?${query}`), refused('email'), query)
  t.match(await planner.call('GET', `/users?hubId=${hubId}`), refused('hubId'))
  t.match(await planner.call('GET', `/user/${ownerId}?fields=email`), refused('email'))
  t.match(await planner.call('GET', `/user/email/${owner.email}`), refused('email'))
  t.match(await planner.call('GET', `/user/email/nobody@example.com`), refused('email'), 'nor who is there')
  t.equal((await planner.call('GET', `/user/email/${email}`)).body.data._id, _id)
  const found = async (q: string) =>
    (await planner.call('GET', `/users?q=${q}`)).body.data.map((row: { _id: string }) => row._id)
  t.same(await found(owner.email.split('@')[0]), [], 'a search looks at what is shown alone')
  t.same(await found('olga'), [ownerId])
  t.same(await found('pat'), [_id])
  t.equal((await owner.call('GET', `/users?email=${email}`)).body.total, 1)
})

test('a hub that somebody makes who sees some hubs only comes into their list', async (t) => {
  const { owner, made, own, foreign, login } = await openHubs(t)
  const { _id: roleId } = await made(owner, '/role', { name: 'Yards', permissions: ['view/hub', 'edit/hub'] })
  const person = { name: 'Yards', email: 'yards@example.com', password: PASSWORD, roleId, hubId: [own] }
  await made(owner, '/user', person)
  const editor = await login(person.email)
  const body = { _id: randomUUID(), name: 'Yard', lat: 1, lng: 2 }
  const hub = await made(editor, '/hub', body)
  t.match(hub, { _id: body._id, name: 'Yard', version: 1 })
  t.same((await editor.call('GET', '/user')).body.data.hubId, [own, hub._id])
  t.equal((await editor.call('GET', `/hub/${hub._id}`)).status, 200)
  t.same(await made(editor, '/hub', body), hub, 'said again, it is there')
  t.equal((await editor.call('POST', '/hub', { ...body, name: 'Other' })).status, 409)
  const north = { _id: foreign, name: 'North', lat: 50, lng: 20 }
  t.equal((await editor.call('POST', '/hub', north)).status, 404, 'nothing is said of a hub that is not theirs')
  t.same((await editor.call('GET', '/user')).body.data.hubId, [own, hub._id])
  t.equal((await owner.call('POST', '/hub', north)).status, 201)
  t.equal((await editor.call('POST', '/hub', { name: 'No place', lat: 91, lng: 0 })).status, 400)
})
