import { test } from 'tap'
import { access } from '../../../projections/access.ts'
import { openIdentity, PASSWORD, type Session } from '../../support/open-identity.ts'

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers freely
const names = (answer: { body: any }): string[] => answer.body.data.map(({ name }: { name: string }) => name).sort()

const open = async (t: Parameters<typeof openIdentity>[0]) => {
  const opened = await openIdentity(t)
  /** Creates an organization and answers the session of its token. */
  const create = async (session: Session, body: object): Promise<Session> => {
    const answer = await session.call('POST', '/organization', body)
    if (answer.status !== 200) throw new Error(JSON.stringify(answer.body))
    return opened.session(answer, session.email)
  }
  return { ...opened, create }
}

test('a further organization: the caller owns it, is switched to it, and the token of the call is gone', async (t) => {
  const { signup, create, login } = await open(t)
  const ada = await signup({ name: 'Ada', organizationName: 'First' })
  const second = await create(ada, { organizationName: 'Second', hubName: 'North', hubLat: 60, hubLng: 20 })
  t.match(second.body, { status: true, expires_in: 86_400, isHubSet: true, data: { name: 'Ada', email: ada.email } })
  t.match(second.body.organizations, [
    { organizationName: 'First', isCurrent: false, roleName: 'owner' },
    { organizationName: 'Second', isCurrent: true, roleName: 'owner', userId: second.body.data._id },
  ])
  t.equal((await ada.call('GET', '/user')).status, 401)
  t.same(names(await second.call('GET', '/hubs')), ['North'])
  t.same((await second.call('GET', '/auth/my-organizations')).body.data, second.body.organizations)
  t.equal(
    (await login(ada.email)).body.data.organizationId,
    second.body.data.organizationId,
    'the most recently accessed',
  )
  const alias = await second.call('POST', '/auth/create-organization', { organizationName: 'Third' })
  t.equal(alias.status, 200)
})

test('the repeat of a request that was cut short founds nothing of what its source has got since', async (t) => {
  const { signup, call, authenticator, login, session } = await open(t)
  const ada = await signup()
  const caller = await authenticator.authenticate(ada.token)
  const body = { organizationName: 'Second', copyDataFromFirstOrg: true }
  const seed = Buffer.alloc(32, 'second')
  const send = () => call('POST', '/organization', { caller, body, seed })
  const first = await send()
  const [, source] = first.body.organizations.map((one: { organizationId: string }) => one.organizationId).reverse()
  const login1 = await login(ada.email, PASSWORD)
  const back = await login1.call('POST', '/auth/switch-organization', { organizationId: source, password: PASSWORD })
  const before = session(back, ada.email)
  for (const [path, of] of [
    ['/hub', { name: 'Late', lat: 1, lng: 1 }],
    ['/role', { name: 'Late', permissions: [] }],
  ] as const)
    t.equal((await before.call('POST', path, of)).status, 201)
  t.match(await send(), { status: 200, body: { data: first.body.data } })
  const second = session(first, ada.email)
  for (const [path, total] of [
    ['/hubs', 1],
    ['/roles', 4],
    ['/users', 1],
  ] as const)
    t.equal((await second.call('GET', path)).body.total, total, path)
})

test('switching asks for the password, gives a token of the other organization and revokes this one', async (t) => {
  const { signup, create, session, login } = await open(t)
  const ada = await signup()
  const eve = await signup()
  const { organizationId } = ada.body.data
  const second = await create(ada, { organizationName: 'Second' })
  const to = (id: string, password: string) =>
    second.call('POST', '/auth/switch-organization', { organizationId: id, password })
  t.match(await to(organizationId, 'wrong'), { status: 403, body: { code: 'wrong_password' } })
  t.match(await to(eve.body.data.organizationId, PASSWORD), { status: 404, body: { code: 'not_found' } })
  t.equal((await second.call('GET', '/user')).status, 200, 'the token stays valid')
  const switched = await to(organizationId, PASSWORD)
  t.match(switched, {
    status: 200,
    body: { data: { organizationId }, organizations: [{ organizationId, isCurrent: true }, { isCurrent: false }] },
  })
  t.equal((await second.call('GET', '/user')).status, 401)
  t.equal((await session(switched, ada.email).call('GET', '/organization')).body.data._id, organizationId)
  t.equal((await login(ada.email)).body.data.organizationId, organizationId, 'the most recently accessed')
})

test('what is copied', async (t) => {
  const { signup, create, context, clock, tables } = await open(t)
  const ada = await signup()
  const { organizationId } = ada.body.data
  clock.advance(1)
  await ada.call('POST', '/hub', { name: 'Not in the list', lat: 1, lng: 1 })
  await ada.call('PATCH', '/organization/settings', { currency: 'PLN', configuration: { a: 1 } })
  const origin = { organizationId, now: 0, ids: { next: () => crypto.randomUUID() }, metadata: {} }
  const dataTypeId = crypto.randomUUID()
  const row = { _id: dataTypeId, name: 'Customers', fields: [{ name: 'x' }] }
  await tables.commit([{ table: 'dataTypes', scope: organizationId, id: dataTypeId, row }])
  const detail = { permissionName: 'view/data', dataTypeId, hiddenFields: ['x'] }
  await context.roles.create(origin, { name: 'Clerk', permissions: ['view/user'], permissionDetails: [detail] })
  await ada.call('PATCH', '/user', { language: 'pl' })

  const plain = await create(ada, { organizationName: 'Plain' })
  t.same(names(await plain.call('GET', '/hubs')), ['Main'], 'no hub fields and no flag: its first hub')
  t.equal((await plain.call('GET', '/organization/settings')).body.data.currency, 'EUR')
  t.equal((await plain.call('GET', '/roles')).body.total, 4)

  const copy = await create(plain, {
    organizationName: 'Copy',
    copyDataFromFirstOrg: true,
    hubName: 'Sent',
    hubLat: 0,
    hubLng: 0,
  })
  t.same(names(await copy.call('GET', '/hubs')), ['Main', 'Not in the list', 'Sent'])
  t.match((await copy.call('GET', '/organization/settings')).body.data, { currency: 'PLN', configuration: { a: 1 } })
  t.match((await copy.call('GET', '/roles?q=clerk')).body.data, [
    { name: 'Clerk', permissions: ['view/user'], permissionDetails: [] },
  ])
})

test('the flag copies all hubs of the organization that the caller owns, whatever list they have and whatever they see where they call', async (t) => {
  const { signup, create, login, roleId, clock } = await open(t)
  const ada = await signup({ hubName: 'Main' })
  clock.advance(1_000)
  const hub = async (name: string): Promise<string> =>
    (await ada.call('POST', '/hub', { name, lat: 1, lng: 2 })).body.data._id
  const [north, south] = [await hub('North'), await hub('South')]
  await hub('East')
  const person = async (name: string, of: object) => {
    const email = `${name}@copies.example`
    t.match(await ada.call('POST', '/user', { name, email, password: PASSWORD, ...of }), { status: 201 })
    return login(email)
  }
  const bob = await person('bob', { roleId: await roleId(ada, 'owner'), hubId: [south, north] })
  const copy = await create(bob, { organizationName: 'Copy', copyDataFromFirstOrg: true })
  t.same(names(await copy.call('GET', '/hubs')), ['East', 'Main', 'North', 'South'], 'an owner has access to all')
  const cleo = await person('cleo', { roleId: await roleId(ada, 'owner') })
  const all = await create(cleo, { organizationName: 'All', copyDataFromFirstOrg: true })
  t.same(names(await all.call('GET', '/hubs')), ['East', 'Main', 'North', 'South'], 'of a list without any, too')
  const one = await create(await login('bob@copies.example'), { organizationName: 'One' })
  t.same(names(await one.call('GET', '/hubs')), ['Main'], 'one hub without the flag')

  const permissions = ['create/organization', 'view/hub']
  const opener = (await ada.call('POST', '/role', { name: 'Opener', permissions })).body.data._id
  const dan = await person('dan', { roleId: opener, hubId: [north] })
  t.same(names(await dan.call('GET', '/hubs')), ['North'])
  const flag = { copyDataFromFirstOrg: true }
  t.match(await dan.call('POST', '/organization', { organizationName: 'None', ...flag }), { status: 400 })
  const own = { hubName: 'Own', hubLat: 1, hubLng: 2 }
  const first = await create(dan, { organizationName: 'First', ...flag, ...own })
  t.same(names(await first.call('GET', '/hubs')), ['Own'], 'whoever owns no source copies nothing')
  t.equal((await first.call('GET', '/roles')).body.total, 4)
  const back = await first.call('POST', '/auth/switch-organization', {
    ...{ organizationId: ada.body.data.organizationId, password: PASSWORD },
  })
  t.equal(back.status, 200)
  const again = await create(await login(dan.email), { organizationName: 'Again', ...flag })
  t.same(names(await again.call('GET', '/hubs')), ['Own'], 'not what they see where they call')
})

test('an organization of more hubs than a list of a user takes is copied whole, one of too many is not', async (t) => {
  const { signup, create, login, context } = await open(t)
  const ada = await signup()
  const { organizationId } = ada.body.data
  const origin = { organizationId, now: 0, ids: { next: () => crypto.randomUUID() }, metadata: {} }
  const make = async (from: number, to: number) => {
    await context.services.tables.commit(Array.from({ length: to - from + 1 }, (_, i) => hubRow(from + i)))
  }
  const hubRow = (i: number) => {
    const row = { _id: origin.ids.next(), name: `Hub ${i}`, lat: 1, lng: 2, createdAt: new Date(i).toISOString() }
    return { table: 'hubs', scope: organizationId, id: row._id, row }
  }
  await make(1, 500)
  const flag = { copyDataFromFirstOrg: true }
  const copy = await create(ada, { organizationName: 'Copy', ...flag })
  t.equal((await copy.call('GET', '/hubs')).body.total, 501)
  await make(501, 1_000)
  const again = await login(ada.email)
  t.match(await again.call('POST', '/organization', { organizationName: 'Again', ...flag }), {
    status: 409,
    body: { code: 'quota', limit: 1_000 },
  })
  t.equal((await again.call('GET', '/user')).status, 200, 'and the token stays')
})

test('what is refused', async (t) => {
  const { signup, login, roleId } = await open(t)
  const ada = await signup()
  t.match(await ada.call('POST', '/organization', { organizationName: 'Abc', hubName: 'N' }), {
    status: 400,
    body: { errors: [{ path: '/hubLat' }, { path: '/hubLng' }] },
  })
  t.match(await ada.call('POST', '/organization', { organizationName: 'ab' }), {
    status: 400,
    body: { errors: [{ path: '/organizationName' }] },
  })
  t.equal((await ada.call('GET', '/user')).status, 200, 'and the token stays')
  for (const [email, key] of [
    ['admin@example.com', 'admin'],
    ['planner@example.com', 'planner'],
  ]) {
    await ada.call('POST', '/user', { name: key, email, password: PASSWORD, roleId: await roleId(ada, key) })
  }
  t.match(
    await (await login('admin@example.com')).call('POST', '/organization', {
      organizationName: 'Abc',
      copyDataFromFirstOrg: true,
    }),
    {
      status: 400,
      body: { message: /hub name is required/, errors: [{ path: '/hubName' }, {}, {}] },
    },
    'who owns no organization has to say where',
  )
  t.match(await (await login('planner@example.com')).call('POST', '/organization', { organizationName: 'Abc' }), {
    status: 403,
  })
})

test('the tables of identity, built anew, equal the live ones', async (t) => {
  const { signup, create, runner, roleId, login } = await open(t)
  const ada = await signup()
  const [hubId] = ada.body.data.hubId
  const bob = (
    await ada.call('POST', '/user', {
      name: 'Bob',
      email: 'b@example.com',
      password: PASSWORD,
      roleId: await roleId(ada, 'planner'),
      hubId: [hubId],
    })
  ).body.data
  const carl = (
    await ada.call('POST', '/user', {
      name: 'Carl',
      email: 'c@example.com',
      password: PASSWORD,
      roleId: await roleId(ada, 'planner'),
      hubId: [hubId],
    })
  ).body.data
  for (const name of ['Red', 'Blue', 'Gone'])
    await ada.call('POST', '/team', { name, hubId, userIds: [bob._id, carl._id] })
  const gone = (await ada.call('GET', '/teams?q=gone')).body.data[0]
  await ada.call('DELETE', `/team/${gone._id}`)
  await ada.call('DELETE', `/user/${carl._id}`)
  await (await login(bob.email)).call('POST', '/auth/logout')
  await create(ada, { organizationName: 'Second', copyDataFromFirstOrg: true })
  for (const name of ['directory', access.name])
    t.match(await runner.rebuild(name), { differing: 0, differences: [] }, name)
})

test('settings take languages, currencies and time zones that there are', async (t) => {
  const { signup } = await openIdentity(t)
  const owner = await signup()
  const set = (method: 'PUT' | 'PATCH', body: object) => owner.call(method, '/organization/settings', body)
  t.match(await set('PATCH', { language: 'PT-br', currency: 'PLN', timeZone: 'Europe/Warsaw' }), {
    status: 200,
    body: { data: { language: 'pt-BR', currency: 'PLN', timeZone: 'Europe/Warsaw', configuration: {} } },
  })
  for (const [field, values] of Object.entries({
    language: ['xx', 'klingon-', 'e', ''],
    currency: ['XYZ', 'pln', 'EURO'],
    timeZone: ['Europe/Atlantis', 'Mars'],
    configuration: [[], 'x', null].slice(0, 2),
  }))
    for (const value of values)
      t.match(
        await set('PATCH', { [field]: value }),
        { status: 400, body: { errors: [{ path: `/${field}` }] } },
        `${field} ${JSON.stringify(value)}`,
      )
  t.match(await set('PUT', { currency: 'CHF' }), { status: 200, body: { data: { language: 'en', currency: 'CHF' } } })
})
