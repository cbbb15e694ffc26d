import { test } from 'tap'
import { issuedToken, openIdentity, PASSWORD, type Session } from '../../support/open-identity.ts'

const newUser = async (admin: Session, fields: object) => {
  const answer = await admin.call('POST', '/user', {
    name: 'New',
    email: 'new@example.com',
    password: PASSWORD,
    ...fields,
  })
  if (answer.status !== 201) throw new Error(JSON.stringify(answer.body))
  return answer.body.data
}

test('an administrator makes, changes and removes users', async (t) => {
  const { signup, login, roleId, authenticator } = await openIdentity(t)
  const owner = await signup()
  const [hubId] = owner.body.data.hubId
  const planner = await roleId(owner, 'planner')
  const bob = await newUser(owner, { name: 'Bob', email: 'Bob@Example.com', roleId: planner, hubId: [hubId] })
  t.match(bob, {
    name: 'Bob',
    email: 'Bob@Example.com',
    roleId: planner,
    hubId: [hubId],
    status: 'active',
    teamIds: [],
    version: 1,
  })
  const bobs = await login('bob@example.com')
  t.match(await authenticator.authenticate(bobs.token), { roleKey: 'planner', hubIds: [hubId] })
  t.same((await owner.call('GET', `/user/${bob._id}`)).body.data, bob)
  t.same((await owner.call('GET', '/user/email/BOB@example.com')).body.data, bob)
  t.match((await owner.call('GET', '/users?email=bob@EXAMPLE.com')).body, { total: 1, data: [{ _id: bob._id }] })
  t.equal((await owner.call('GET', '/users?email=bob@example.com&email=nobody@example.com')).body.total, 1)
  for (const wrong of ['bob', 'bob@example.com,nobody@example.com'])
    t.match((await owner.call('GET', `/users?email=${wrong}`)).body, { code: 'invalid', errors: [{ path: '/email' }] })
  t.equal((await owner.call('GET', '/users?q=bo')).body.total, 1)
  t.equal((await owner.call('GET', `/users?roleId=${planner}`)).body.total, 1)
  t.equal(
    (await bobs.call('POST', '/user', { name: 'X', email: 'x@example.com', roleId: planner })).status,
    403,
    'a planner may not',
  )

  t.match(
    await owner.call('POST', '/user', { name: 'B', email: 'bob@example.COM', password: PASSWORD, roleId: planner }),
    { status: 409 },
  )
  t.match(await owner.call('POST', '/user', { name: 'B', email: 'b@example.com', roleId: owner.body.data._id }), {
    status: 400,
    body: { errors: [{ path: '/roleId' }] },
  })
  t.match(await owner.call('POST', '/user', { name: 'B', email: 'b@example.com', roleId: planner, hubId: [planner] }), {
    status: 400,
    body: { errors: [{ path: '/hubId/0' }] },
  })
  t.match(
    await owner.call('POST', '/user', { name: 'B', email: 'b@example.com', roleId: planner, teamIds: [planner] }),
    {
      status: 400,
      body: { errors: [{ path: '/teamIds/0' }] },
    },
  )

  const put = await owner.call('PUT', `/user/${bob._id}`, {
    ...bob,
    name: 'Robert',
    language: 'de',
    timeZone: 'Europe/Berlin',
  })
  t.match(put, { status: 200, body: { data: { name: 'Robert', language: 'de', version: 2 } } })
  t.equal((await owner.call('PUT', `/user/${bob._id}`, { ...bob, name: 'Old' })).status, 409, 'a stale version')
  t.equal((await owner.call('PATCH', `/user/${bob._id}`, { status: 'disabled' })).body.data.status, 'disabled')
  t.equal((await bobs.call('GET', '/user')).status, 401, 'a disabled user is out at once')
  await t.rejects(login('bob@example.com'), /401/)
  t.equal((await owner.call('PATCH', `/user/${bob._id}`, { status: 'active' })).status, 200)
  t.equal((await bobs.call('GET', '/user')).status, 200)
  t.equal((await owner.call('PATCH', `/user/${bob._id}`, { status: 'invited' })).status, 400)

  t.same((await owner.call('DELETE', `/user/${bob._id}`)).body, { status: true })
  t.equal((await owner.call('GET', `/user/${bob._id}`)).status, 404)
  t.equal((await bobs.call('GET', '/user')).status, 401)
  await t.rejects(login('bob@example.com'), /401/)
})

test('a user that is made twice with one id', async (t) => {
  const { signup, roleId } = await openIdentity(t)
  const owner = await signup()
  const body = {
    _id: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6a',
    name: 'Bob',
    email: 'bob@example.com',
    password: PASSWORD,
    roleId: await roleId(owner, 'admin'),
  }
  const first = await owner.call('POST', '/user', body)
  t.equal(first.status, 201)
  t.match(await owner.call('POST', '/user', body), { status: 201, body: first.body })
  t.equal((await owner.call('POST', '/user', { ...body, name: 'Other' })).status, 409)
})

test('the ids that a user names are taken in any case and kept in lower case', async (t) => {
  const { call, signup, roleId } = await openIdentity(t)
  const owner = await signup()
  const { organizationId, email, hubId: hubs } = owner.body.data
  const [hubId] = hubs as string[]
  const team = (await owner.call('POST', '/team', { name: 'Early', hubId })).body.data
  const [admin, planner] = [await roleId(owner, 'admin'), await roleId(owner, 'planner')]
  const _id = '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6a'
  const upper = (roleId: string) => ({
    roleId: roleId.toUpperCase(),
    hubId: [hubId.toUpperCase()],
    teamIds: [team._id.toUpperCase()],
  })
  const kept = { hubId: [hubId], teamIds: [team._id] }
  const bob = { _id: _id.toUpperCase(), name: 'Bob', email: 'bob@example.com', password: PASSWORD, ...upper(admin) }
  const first = await owner.call('POST', '/user', bob)
  t.match(first, { status: 201, body: { data: { _id, version: 1, organizationId, roleId: admin, ...kept } } })
  t.strictSame((await owner.call('POST', '/user', bob)).body.data, first.body.data, 'the same again')
  t.match(await owner.call('PATCH', `/user/${_id}`, upper(planner)), {
    status: 200,
    body: { data: { roleId: planner, ...kept } },
  })
  t.match((await owner.call('GET', `/team/${team._id}`)).body.data, { userIds: [_id] })

  const invited = { _id: _id.replace('6a', '7b').toUpperCase(), email: 'eve@example.com', ...upper(planner) }
  const eve = await owner.call('POST', '/user/invite', invited)
  t.match(eve, { status: 201, body: { data: { _id: invited._id.toLowerCase(), roleId: planner, ...kept } } })
  t.match(await owner.call('POST', '/user/invite', invited), { status: 201, body: { data: eve.body.data } })
  t.match((await owner.call('GET', '/users')).body, { total: 3 })

  const asked = { organizationId: organizationId.toUpperCase(), password: PASSWORD }
  t.match(await call('POST', '/auth/login', { body: { email, ...asked } }), { status: 200 })
  t.match(await owner.call('POST', '/auth/switch-organization', asked), { status: 200 })
})

test('e-mail and password change in the organization of origin alone, and everywhere at once', async (t) => {
  const world = await openIdentity(t)
  const { signup, login, roleId, authenticator, call } = world
  const one = await signup()
  const two = await signup()
  const bob = await newUser(one, { email: 'bob@example.com', roleId: await roleId(one, 'planner') })
  const guest = await newUser(two, {
    name: 'Ignored',
    email: 'BOB@example.com',
    password: 'also-ignored-9',
    roleId: await roleId(two, 'planner'),
  })
  t.match(guest, { status: 'invited', name: 'Ignored' }, 'what was sent is answered, never what is known elsewhere')
  for (const status of ['active', 'disabled', 'active'])
    t.equal((await two.call('PATCH', `/user/${guest._id}`, { status })).body.data.status, 'invited', 'only they accept')
  t.equal((await two.call('PATCH', `/user/${guest._id}`, { password: 'Another-pass-1' })).status, 403)
  t.equal((await two.call('PATCH', `/user/${guest._id}`, { email: 'mine@example.com' })).status, 403)
  t.equal((await two.call('PUT', `/user/${guest._id}`, { ...guest, name: 'Guest' })).status, 200, 'the rest may change')

  const bobs = await login('bob@example.com')
  t.equal((await one.call('PATCH', `/user/${bob._id}`, { password: 'Another-pass-1' })).status, 200)
  await t.rejects(login('bob@example.com'), /401/)
  t.equal((await one.call('PATCH', `/user/${bob._id}`, { email: one.email })).status, 409, 'taken')
  t.match(await one.call('PATCH', `/user/${bob._id}`, { email: 'robert@example.com' }), {
    status: 200,
    body: { data: { email: 'bob@example.com', pendingEmail: 'robert@example.com' } },
  })
  await t.rejects(authenticator.authenticate(bobs.token), /bearer/, 'a password that somebody else sets ends sessions')
  t.equal((await login('bob@example.com', 'Another-pass-1')).body.data._id, bob._id, 'nobody has followed the link yet')
  const token = await issuedToken(world, 'bob@example.com', 'emailChange')
  t.equal((await call('POST', '/auth/verify-email', { body: { token, password: 'Another-pass-1' } })).status, 200)
  const roberts = await login('robert@example.com', 'Another-pass-1')
  t.equal(roberts.body.data._id, bob._id)
  t.equal((await two.call('GET', `/user/${guest._id}`)).body.data.email, 'robert@example.com')
  t.equal((await authenticator.authenticate(roberts.token)).email, 'robert@example.com')
  t.equal(
    (
      await two.call('POST', '/user', {
        name: 'B',
        email: 'bob@example.com',
        password: PASSWORD,
        roleId: await roleId(two, 'planner'),
      })
    ).status,
    201,
    'the old e-mail is free',
  )
})

test('the last active owner stays', async (t) => {
  const { signup, roleId } = await openIdentity(t)
  const owner = await signup()
  const id = owner.body.data._id
  const [ownerRole, admin] = [await roleId(owner, 'owner'), await roleId(owner, 'admin')]
  t.equal((await owner.call('DELETE', `/user/${id}`)).status, 409)
  t.equal((await owner.call('PATCH', `/user/${id}`, { roleId: admin })).status, 409)
  t.equal((await owner.call('PATCH', `/user/${id}`, { status: 'disabled' })).status, 409)
  const second = await newUser(owner, { roleId: ownerRole })
  const both = await Promise.all([owner.call('DELETE', `/user/${id}`), owner.call('DELETE', `/user/${second._id}`)])
  t.same(both.map(({ status }) => status).sort(), [200, 409], 'two who leave at the same time cannot both')
})

test('nobody gives, changes or removes more than they hold', async (t) => {
  const { signup, login, roleId, context } = await openIdentity(t)
  const owner = await signup()
  const { organizationId, hubId } = owner.body.data
  const origin = { organizationId, now: 0, ids: { next: () => crypto.randomUUID() }, metadata: {} }
  const clerkRole = await context.roles.create(origin, {
    name: 'Clerk',
    permissions: ['view/user', 'edit/user', 'view/hub'],
  })
  const hub2 = (await owner.call('POST', '/hub', { name: 'Two', lat: 1, lng: 1 })).body.data
  await newUser(owner, { email: 'clerk@example.com', roleId: clerkRole.row._id, hubId })
  const clerk = await login('clerk@example.com')
  const planner = await roleId(owner, 'planner')
  t.match(await clerk.call('POST', '/user', { name: 'X', email: 'x@example.com', roleId: planner }), {
    status: 403,
    body: { code: 'forbidden', permissions: ['import/data'] },
  })
  t.equal((await clerk.call('PATCH', `/user/${owner.body.data._id}`, { password: 'Taken-over-1' })).status, 403)
  t.equal((await clerk.call('DELETE', `/user/${owner.body.data._id}`)).status, 403)
  t.equal((await clerk.call('PATCH', `/user/${clerk.body.data._id}`, { roleId: planner })).status, 403)
  t.match(
    await clerk.call('POST', '/user', {
      name: 'X',
      email: 'x@example.com',
      roleId: clerkRole.row._id,
      hubId: [hub2._id],
    }),
    {
      status: 400,
      body: { errors: [{ path: '/hubId/0' }] },
    },
  )
  t.equal(
    (
      await clerk.call('POST', '/user', {
        name: 'X',
        email: 'x@example.com',
        password: PASSWORD,
        roleId: clerkRole.row._id,
        hubId,
      })
    ).status,
    201,
  )
  t.same(
    (await clerk.call('GET', '/hubs')).body.data.map(({ name }: { name: string }) => name),
    ['Main'],
    'and sees the hubs it has',
  )
  t.equal((await clerk.call('GET', `/hub/${hub2._id}`)).status, 404)
})

test('nobody gives back the fields that their own role hides', async (t) => {
  const { signup, login } = await openIdentity(t)
  const owner = await signup()
  const fields = ['name', 'age', 'salary'].map((name) => ({ name, type: 'text' }))
  const dataType = await owner.call('POST', '/data-type', { name: 'Staff', primaryKey: 'name', fields })
  const dataTypeId = dataType.body.data._id
  const hides = (...hiddenFields: string[]) => [{ permissionName: 'view/data', dataTypeId, hiddenFields }]
  const makeRole = async (name: string, body: object) =>
    (await owner.call('POST', '/role', { name, ...body })).body.data
  const permissions = ['view/data', 'view/role', 'edit/role', 'edit/user']
  const clerkRole = await makeRole('Clerk', { permissions, permissionDetails: hides('salary') })
  const free = await makeRole('Free', { permissions: ['view/data'] })
  const bob = await newUser(owner, { email: 'clerk@example.com', roleId: clerkRole._id })
  const clerk = await login('clerk@example.com')
  const refused = { status: 403, body: { code: 'forbidden', permissions: ['view/data'] } }
  t.match(await clerk.call('PATCH', `/role/${clerkRole._id}`, { permissionDetails: [] }), refused)
  t.match(
    await clerk.call('POST', '/role', { name: 'Own', permissions: ['view/data'], permissionDetails: hides('age') }),
    refused,
  )
  t.match(await clerk.call('PATCH', `/user/${bob._id}`, { roleId: free._id }), refused)
  t.equal(
    (
      await clerk.call('POST', '/role', {
        name: 'Less',
        permissions: ['view/data'],
        permissionDetails: hides('age', 'salary'),
      })
    ).status,
    201,
  )
  t.equal(
    (await clerk.call('POST', '/role', { name: 'Other', permissions: ['edit/user'] })).status,
    201,
    'a role that does not show data',
  )
})

test('everybody changes their own name, language, time zone and password', async (t) => {
  const { signup, login, roleId } = await openIdentity(t)
  const owner = await signup()
  await newUser(owner, { email: 'bob@example.com', roleId: await roleId(owner, 'fieldUser') })
  const bob = await login('bob@example.com')
  const record = (await bob.call('GET', '/user')).body.data
  t.match(await bob.call('PATCH', '/user', { name: 'Bobby', language: 'pl', timeZone: 'Europe/Warsaw' }), {
    status: 200,
    body: { data: { name: 'Bobby', language: 'pl' } },
  })
  t.match(await bob.call('PATCH', '/user', { roleId: await roleId(owner, 'owner') }), {
    status: 403,
    body: { fields: ['roleId'] },
  })
  for (const [name, value] of Object.entries({
    hubId: owner.body.data.hubId,
    teamIds: owner.body.data.hubId,
    status: 'disabled',
  })) {
    t.equal((await bob.call('PATCH', '/user', { [name]: value })).status, 403, name)
  }
  t.equal((await bob.call('PATCH', '/user', { ...record, version: 2 })).status, 200, 'read, change, write back')
  t.equal((await bob.call('PATCH', '/user', { timeZone: 'Mars/Olympus' })).status, 400)
  t.equal((await bob.call('PATCH', '/user', { password: 'Brand-new-1' })).status, 400)
  t.match(await bob.call('PATCH', '/user', { password: 'Brand-new-1', currentPassword: 'wrong' }), {
    status: 403,
    body: { code: 'wrong_password' },
  })
  t.equal((await bob.call('PATCH', '/user', { password: 'Brand-new-1', currentPassword: PASSWORD })).status, 200)
  t.equal((await login('bob@example.com', 'Brand-new-1')).body.status, true)
  t.equal((await bob.call('GET', '/user')).status, 200, 'the token stays valid')
})

test('teams keep their members, users show their teams', async (t) => {
  const { signup, login, roleId, authenticator } = await openIdentity(t)
  const owner = await signup()
  const [hubId] = owner.body.data.hubId
  const other = (await owner.call('POST', '/hub', { name: 'Other', lat: 0, lng: 0 })).body.data
  const planner = await roleId(owner, 'planner')
  const bob = await newUser(owner, { email: 'bob@example.com', roleId: planner, hubId: [hubId] })
  const team = await owner.call('POST', '/team', { name: 'Red', hubId, userIds: [bob._id] })
  t.equal(team.status, 201)
  const { _id: teamId } = team.body.data
  t.same((await owner.call('GET', `/user/${bob._id}`)).body.data.teamIds, [teamId])
  t.equal((await owner.call('GET', `/users?teamIds=${teamId}`)).body.total, 1)
  t.same((await authenticator.authenticate((await login('bob@example.com')).token)).teamIds, [teamId])
  t.match(await owner.call('POST', '/team', { name: 'Blue', hubId: other._id, userIds: [bob._id] }), {
    status: 400,
    body: { errors: [{ path: '/userIds/0' }] },
  })
  t.equal(
    (await owner.call('POST', '/team', { name: 'Blue', hubId: other._id, userIds: [owner.body.data._id] })).status,
    201,
    'an owner has every hub',
  )
  const everywhere = { name: 'Everywhere', permissions: ['view/all-hubs', 'view/task', 'edit/task'] }
  const { _id: everywhereId } = (await owner.call('POST', '/role', everywhere)).body.data
  const eve = await newUser(owner, { email: 'eve@example.com', roleId: everywhereId, hubId: [] })
  t.equal(
    (await owner.call('POST', '/team', { name: 'Green', hubId: other._id, userIds: [eve._id] })).status,
    201,
    'so has whoever has view/all-hubs, without a list of hubs',
  )
  t.match(await owner.call('POST', '/team', { name: 'Blue', hubId: planner, userIds: [] }), {
    status: 400,
    body: { errors: [{ path: '/hubId' }] },
  })
  t.match(
    await owner.call('PATCH', `/user/${bob._id}`, { hubId: [other._id] }),
    { status: 400, body: { errors: [{ path: '/teamIds/0' }] } },
    'a member keeps access to the hub of the team',
  )

  const red = (await owner.call('POST', '/role', { name: 'Manager', permissions: ['view/user', 'edit/user'] })).body
    .data
  const blue = (await owner.call('POST', '/team', { name: 'Blue', hubId: other._id })).body.data
  await newUser(owner, { email: 'dora@example.com', roleId: red._id, hubId: [hubId] })
  const both = await newUser(owner, { email: 'emil@example.com', roleId: red._id, hubId: [hubId, other._id] })
  const dora = await login('dora@example.com')
  t.equal(
    (await dora.call('PATCH', `/user/${both._id}`, { teamIds: [blue._id] })).status,
    403,
    'has a hub that dora lacks',
  )
  const mate = await newUser(owner, { email: 'mate@example.com', roleId: red._id, hubId: [hubId] })
  t.match(
    await dora.call('PATCH', `/user/${mate._id}`, { teamIds: [blue._id] }),
    { status: 400, body: { errors: [{ path: '/teamIds/0', message: /names nothing/ }] } },
    'a team of a hub that the caller does not have is not there',
  )
  await owner.call('DELETE', `/user/${both._id}`)

  const carl = await newUser(owner, { email: 'carl@example.com', roleId: planner, hubId: [hubId], teamIds: [teamId] })
  t.same(carl.teamIds, [teamId])
  t.same((await owner.call('GET', `/team/${teamId}`)).body.data.userIds, [bob._id, carl._id])
  t.same((await owner.call('PATCH', `/user/${bob._id}`, { teamIds: [] })).body.data.teamIds, [])
  t.same((await owner.call('GET', `/team/${teamId}`)).body.data.userIds, [carl._id])
  await owner.call('DELETE', `/user/${carl._id}`)
  t.same((await owner.call('GET', `/team/${teamId}`)).body.data.userIds, [])
  await owner.call('PATCH', `/team/${teamId}`, { userIds: [bob._id] })
  await owner.call('DELETE', `/team/${teamId}`)
  t.same((await owner.call('GET', `/user/${bob._id}`)).body.data.teamIds, [])
})

test('a hub in use and the last hub stay; vehicles belong to hubs', async (t) => {
  const { signup } = await openIdentity(t)
  const owner = await signup()
  const stranger = await signup()
  const [hubId] = owner.body.data.hubId
  const last = await owner.call('DELETE', `/hub/${hubId}`)
  t.match(last, { status: 409, body: { errors: [{ path: '/organization', message: 'needs at least one hub' }] } })
  const hub = (await owner.call('POST', '/hub', { name: 'Two', lat: 0, lng: 0, address: 'Here' })).body.data
  const van = await owner.call('POST', '/vehicle', {
    name: 'Van',
    type: 'car',
    hubId: hub._id,
    capacity: { kg: 5 },
    workingHours: { from: '22:00', to: '06:00' },
  })
  t.match(van, { status: 201, body: { data: { tags: [], breaks: [], capacity: { kg: 5 } } } })
  t.match(await owner.call('DELETE', `/hub/${hub._id}`), {
    status: 409,
    body: { errors: [{ path: `/vehicle/${van.body.data._id}`, message: 'names it in hubId' }] },
  })
  t.match(
    await owner.call('PATCH', `/vehicle/${van.body.data._id}`, { hubId: stranger.body.data.hubId[0] }),
    { status: 400, body: { errors: [{ path: '/hubId' }] } },
    "another organization's hub is not there",
  )
  t.equal((await stranger.call('GET', `/vehicle/${van.body.data._id}`)).status, 404)
  t.equal(
    (await owner.call('PATCH', `/vehicle/${van.body.data._id}`, { hubId, capacity: { kg: null, boxes: 2 } })).status,
    200,
  )
  t.same((await owner.call('GET', `/vehicle/${van.body.data._id}?fields=capacity`)).body.data.capacity, { boxes: 2 })
  t.equal((await owner.call('DELETE', `/hub/${hub._id}`)).status, 200)
})

test('settings of the organization', async (t) => {
  const { signup } = await openIdentity(t)
  const owner = await signup()
  t.same((await owner.call('GET', '/organization/settings')).body.data, {
    language: 'en',
    currency: 'EUR',
    timeZone: 'UTC',
    configuration: {},
    version: 1,
  })
  t.match(
    (await owner.call('PATCH', '/organization/settings', { currency: 'PLN', configuration: { a: 1, b: { c: 2 } } }))
      .body.data,
    {
      currency: 'PLN',
      configuration: { a: 1, b: { c: 2 } },
    },
  )
  t.same(
    (await owner.call('PATCH', '/organization/settings', { configuration: { a: null } })).body.data.configuration,
    { b: { c: 2 } },
  )
  t.same(
    (await owner.call('PATCH', '/organization/settings', { configuration: { b: { c: null, d: 3 } } })).body.data
      .configuration,
    { b: { d: 3 } },
    'within, too',
  )
  t.same((await owner.call('GET', '/organization/settings?fields=currency')).body.data, { currency: 'PLN' })
  t.match(await owner.call('PATCH', '/organization/settings', { currency: 'CHF', version: 1 }), {
    status: 409,
    body: { code: 'stale_version', version: 4 },
  })
  const read = (await owner.call('GET', '/organization/settings')).body.data
  t.same((await owner.call('PUT', '/organization/settings', read)).body.data, read, 'what was read may be written back')
  t.same((await owner.call('PUT', '/organization/settings', { language: 'pl' })).body.data, {
    language: 'pl',
    currency: 'EUR',
    timeZone: 'UTC',
    configuration: {},
    version: 5,
  })
  t.equal((await owner.call('PUT', '/organization/settings', { timeZone: 'Nowhere' })).status, 400)
  t.match(await owner.call('PATCH', '/organization', { name: 'Renamed' }), {
    status: 200,
    body: { data: { name: 'Renamed' } },
  })
  t.equal((await owner.call('GET', '/auth/my-organizations')).body.data[0].organizationName, 'Renamed')
})
