import { test } from 'tap'
import { encodeJson } from '../../../src/kernel/event.ts'
import { dyingLog } from '../../support/dying-log.ts'
import { until } from '../../support/service.ts'
import { openIdentity, PASSWORD } from '../../support/open-identity.ts'
import { folderOf } from '../../support/folder-of.ts'

const body = {
  name: 'Ada',
  email: 'ada@example.com',
  password: PASSWORD,
  organizationName: 'Green',
  hubName: 'H',
  hubLat: 0,
  hubLng: 0,
}

test('signing up makes a person, an organization, a hub, four roles and a token', async (t) => {
  const { signup, call } = await openIdentity(t)
  const ada = await signup({ name: 'Ada', email: 'Ada@Example.com', organizationName: 'Green Couriers' })
  t.match(ada.body, {
    status: true,
    expires_in: 86_400,
    isHubSet: true,
    data: { name: 'Ada', email: 'Ada@Example.com', status: 'active', teamIds: [] },
  })
  t.equal(ada.body.data.hubId.length, 1)
  t.notOk('identityId' in ada.body.data)
  const { _id: userId, organizationId } = ada.body.data
  t.same(ada.body.organizations, [
    {
      userId,
      organizationId,
      organizationName: 'Green Couriers',
      organizationLogo: null,
      roleName: 'owner',
      isCurrent: true,
    },
  ])
  t.same((await ada.call('GET', '/auth/my-organizations')).body.data, ada.body.organizations)
  t.same((await ada.call('GET', '/user')).body.data, ada.body.data)
  t.match((await ada.call('GET', '/hubs')).body, {
    total: 1,
    data: [{ _id: ada.body.data.hubId[0], name: 'Main', lat: 52.2, lng: 21 }],
  })
  t.same(
    (await ada.call('GET', '/roles?sortBy=name')).body.data.map(({ key }: { key: string }) => key),
    ['admin', 'fieldUser', 'owner', 'planner'],
  )
  t.match((await ada.call('GET', '/organization')).body.data, {
    _id: organizationId,
    name: 'Green Couriers',
    logo: null,
  })
  const again = {
    name: 'Eve',
    email: 'ADA@example.COM',
    password: PASSWORD,
    organizationName: 'Other',
    hubName: 'H',
    hubLat: 0,
    hubLng: 0,
  }
  t.match(await call('POST', '/auth/signup', { body: again }), { status: 409, body: { code: 'key_in_use' } })
  t.match(await call('POST', '/auth/signup', { body: { ...again, hubLat: 91, email: 'x' } }), {
    status: 400,
    body: { errors: [{ path: '/email' }, { path: '/hubLat' }] },
  })
})

test('a signup that is repeated under its key makes nothing twice', async (t) => {
  const { call, over, log } = await openIdentity(t)
  const seed = Buffer.alloc(32, 3)
  // The first one dies half-way.
  await t.rejects(over(dyingLog(log, 8).log).call('POST', '/auth/signup', { seed, body }), { name: 'Killed' })
  const second = await call('POST', '/auth/signup', { seed, body })
  t.equal(second.status, 200)
  const caller = {
    kind: 'user',
    organizationId: second.body.data.organizationId,
    permissions: new Set(['view/hub', 'view/user', 'view/role']),
    hubIds: 'all',
  }
  t.equal((await call('GET', '/hubs', { caller: caller as never })).body.total, 1)
  t.equal((await call('GET', '/users', { caller: caller as never })).body.total, 1)
  t.equal((await call('GET', '/roles', { caller: caller as never })).body.total, 4)
})

test('two who sign up with one e-mail at the same time', async (t) => {
  const { call } = await openIdentity(t)
  const answers = await Promise.all([1, 2, 3].map(() => call('POST', '/auth/signup', { body })))
  t.same(answers.map(({ status }) => status).sort(), [200, 409, 409])
})

test('--signup first and closed', async (t) => {
  const first = await openIdentity(t, { signup: 'first' })
  const answers = await Promise.all(
    ['a', 'b', 'c'].map((name) =>
      first.call('POST', '/auth/signup', { body: { ...body, email: `${name}@example.com` } }),
    ),
  )
  t.same(answers.map(({ status }) => status).sort(), [200, 403, 403], 'one of those who come at the same time')
  t.match(await first.call('POST', '/auth/signup', { body }), { status: 403, body: { code: 'not_available' } })
  const { call } = await openIdentity(t, { signup: 'closed' }, undefined, t.testdir({ closed: {} }) + '/closed')
  t.match(await call('POST', '/auth/signup', { body }), { status: 403, body: { code: 'not_available' } })
})

test('logging in', async (t) => {
  const { signup, login, call } = await openIdentity(t)
  const ada = await signup()
  const again = await login(ada.email.toUpperCase())
  t.match(again.body, {
    status: true,
    expires_in: 86_400,
    data: { _id: ada.body.data._id },
    organizations: ada.body.organizations,
  })
  t.not(again.token, ada.token)
  t.equal((await again.call('GET', '/user')).status, 200)
  t.equal((await login(ada.email, PASSWORD)).body.data.organizationId, ada.body.data.organizationId)
  const wrong = await call('POST', '/auth/login', { body: { email: ada.email, password: 'wrong' } })
  const nobody = await call('POST', '/auth/login', { body: { email: 'nobody@example.com', password: PASSWORD } })
  const elsewhere = await call('POST', '/auth/login', {
    body: { email: ada.email, password: PASSWORD, organizationId: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6a' },
  })
  t.match(wrong, { status: 401, body: { code: 'invalid_credentials' } })
  t.same(nobody, wrong, 'whichever part was wrong, the answer is the same')
  t.same(elsewhere, wrong)
})

test('five failures block an identity, fifty an address, for the right password too', async (t) => {
  const { signup, call, clock, context } = await openIdentity(t)
  const ada = await signup()
  const eve = await signup()
  const attempt = (email: string, password: string, address: string) =>
    call('POST', '/auth/login', { body: { email, password }, address })
  for (let i = 0; i < 5; i++) t.equal((await attempt(ada.email, 'wrong', `10.0.0.${i}`)).status, 401)
  const blocked = await attempt(ada.email, PASSWORD, '10.0.0.99')
  t.match(blocked, { status: 429, body: { code: 'rate_limited' }, headers: { 'retry-after': '900' } })
  t.equal(
    (await attempt(eve.email, PASSWORD, '10.0.0.1')).status,
    200,
    'neither others nor addresses with fewer failures',
  )
  clock.advance(15 * 60_000 + 1)
  t.equal((await attempt(ada.email, PASSWORD, '10.0.0.99')).status, 200)
  const key = (email: string, address: string) => context.throttle.guard(email, address, clock.now())
  for (let i = 0; i < 49; i++) await key(`nobody${i}@example.com`, '10.0.1.1').noteFailure()
  t.equal((await attempt('nobody49@example.com', 'wrong', '10.0.1.1')).status, 401)
  t.equal((await attempt(eve.email, PASSWORD, '10.0.1.1')).status, 429, 'fifty block the address')
  t.equal((await attempt(eve.email, PASSWORD, '10.0.1.2')).status, 200)
  const burst = await Promise.all(Array.from({ length: 12 }, () => attempt('burst@example.com', 'wrong', '10.0.2.1')))
  t.ok(burst.filter(({ status }) => status === 401).length <= 6, 'guesses at the same time count too')
})

test('strangers who guess lock nobody out who comes from where they logged in lately', async (t) => {
  const { signup, call, clock } = await openIdentity(t)
  const ada = await signup()
  const attempt = (password: string, address: string) =>
    call('POST', '/auth/login', { body: { email: ada.email, password }, address })
  t.equal((await attempt(PASSWORD, '10.0.0.1')).status, 200)
  for (let i = 0; i < 6; i++) await attempt('wrong', '10.9.9.9')
  t.equal((await attempt(PASSWORD, '10.0.0.2')).status, 429, 'from elsewhere')
  t.equal((await attempt(PASSWORD, '10.0.0.1')).status, 200, 'from where they were')
  for (let i = 0; i < 5; i++) t.equal((await attempt('wrong', '10.0.0.1')).status, 401)
  t.equal((await attempt(PASSWORD, '10.0.0.1')).status, 429, 'which has a count of its own')
  clock.advance(31 * 86_400_000)
  for (let i = 0; i < 5; i++) await attempt('wrong', '10.9.9.9')
  t.equal((await attempt(PASSWORD, '10.0.0.1')).status, 429, 'for thirty days')
})

test('a new password ends every other session', async (t) => {
  const { signup, login, roleId } = await openIdentity(t)
  const owner = await signup()
  const other = await login(owner.email)
  const change = { password: 'Another-pass-1', currentPassword: PASSWORD }
  t.equal((await owner.call('PATCH', '/user', change)).status, 200)
  t.equal((await other.call('GET', '/user')).status, 401)
  t.equal((await owner.call('GET', '/user')).status, 200, 'but that of whoever changed it')
  const email = 'field@example.com'
  const made = { name: 'F', email, password: PASSWORD, roleId: await roleId(owner, 'fieldUser') }
  const { _id } = (await owner.call('POST', '/user', made)).body.data
  const field = await login(email)
  t.equal((await owner.call('PATCH', `/user/${_id}`, { password: 'Another-pass-2' })).status, 200)
  t.equal((await field.call('GET', '/user')).status, 401, 'a password that an administrator sets too')
  t.equal((await login(email, 'Another-pass-2')).body.data._id, _id)
})

test('a login that a change of the password overtakes is none', async (t) => {
  const { signup, over, log, context, call } = await openIdentity(t)
  const ada = await signup()
  const { identityId } = (await context.people.findByEmail(ada.email)) ?? {}
  const passwordHash = await context.passwords.hash('Another-pass-1', '127.0.0.1')
  let isChanged = false
  // The moment between the check of the password and the session.
  const append: typeof log.append = async (stream, events, expected) => {
    if (stream === `sessions-${identityId}` && !isChanged) {
      isChanged = true
      const origin = { ids: { next: () => crypto.randomUUID() }, metadata: {} }
      await context.people.command(identityId as string, { type: 'changePassword', passwordHash, at: '' }, origin)
      await context.sessions.endAll(identityId as string, { at: '' }, origin)
    }
    return log.append(stream, events, expected)
  }
  const racing = over(Object.assign(Object.create(log), { append }))
  const body = { email: ada.email, password: PASSWORD }
  t.equal((await racing.call('POST', '/auth/login', { body })).status, 401)
  t.ok(isChanged)
  const now = (await call('POST', '/auth/login', { body: { ...body, password: 'Another-pass-1' } })).body
  t.equal((await context.sessions.live(identityId as string, 0)).length, 1, 'the other one has ended')
  t.ok(now.token)
})

test('people list their sessions and end them', async (t) => {
  const { signup, login, clock } = await openIdentity(t)
  const ada = await signup()
  const eve = await signup()
  clock.advance(1_000)
  const phone = await login(ada.email, PASSWORD, { address: '10.0.0.7' })
  await phone.call('GET', '/user')
  const { body } = await ada.call('GET', '/auth/sessions')
  t.match(body, { total: 2, page: 1, limit: 20, nextCursor: null })
  t.match(body.data, [
    { _id: String, address: '10.0.0.7', isCurrent: false, createdAt: new Date(clock.now()).toISOString() },
    { address: '127.0.0.1', isCurrent: true, organizationId: ada.body.data.organizationId },
  ])
  t.equal(body.data[0]._id, body.data[0].jti)
  const usedAt = async () => (await ada.call('GET', '/auth/sessions')).body.data[0].lastUsedAt
  await until('the use to be noted', async () => (await usedAt()) === new Date(clock.now()).toISOString())
  const [{ _id: newest }, { _id: older }] = body.data
  t.match((await ada.call('GET', `/auth/sessions?_id=${older.toUpperCase()}`)).body, {
    total: 1,
    data: [{ _id: older }],
  })
  t.match((await ada.call('GET', `/auth/sessions?_id=${older},${newest}`)).body, {
    total: 2,
    data: [{ _id: newest }, {}],
  })
  const first = (await ada.call('GET', '/auth/sessions?limit=1&fields=address')).body
  t.same(first.data, [{ _id: body.data[0]._id, address: '10.0.0.7' }])
  const rest = (await ada.call('GET', `/auth/sessions?limit=1&cursor=${first.nextCursor}`)).body
  t.match([rest.data[0]._id, rest.nextCursor], [body.data[1]._id, null])
  t.equal((await eve.call('DELETE', `/auth/session/${body.data[0].jti}`)).status, 404, "others' are not there")
  t.equal((await ada.call('DELETE', `/auth/session/${body.data[0].jti}`)).status, 200)
  t.equal((await phone.call('GET', '/user')).status, 401)
  t.equal((await ada.call('DELETE', `/auth/session/${body.data[0].jti}`)).status, 404)
  t.same(
    (await ada.call('GET', '/auth/sessions')).body.data.map(({ isCurrent }: { isCurrent: boolean }) => isCurrent),
    [true],
  )
  const refreshed = await ada.call('POST', '/auth/refresh')
  t.equal((await eve.call('GET', '/auth/sessions')).body.total, 1)
  t.ok(refreshed.body.token)
})

test('whoever signs in by a password that an administrator set hears nothing of other organizations', async (t) => {
  const { signup, login, roleId, context } = await openIdentity(t)
  const owner = await signup()
  const email = 'field@example.com'
  const made = { name: 'F', email, password: PASSWORD, roleId: await roleId(owner, 'admin') }
  const { _id } = (await owner.call('POST', '/user', made)).body.data
  const field = await login(email)
  const further = await field.call('POST', '/organization', {
    ...{ organizationName: 'Elsewhere', hubName: 'Secret', hubLat: 1, hubLng: 1 },
  })
  t.equal(further.status, 200)
  await owner.call('PATCH', `/user/${_id}`, { password: 'Another-pass-2' })
  const { identityId = '' } = (await context.people.findByEmail(email)) ?? {}
  const session = { jti: 'j', organizationId: further.body.data.organizationId, userId: 'u', address: '10.0.0.9' }
  const times = { expiresAt: '2100-01-01T00:00:00.000Z', at: '2026-01-01T00:00:00.000Z' }
  const origin = { ids: { next: () => crypto.randomUUID() }, metadata: {} }
  await context.sessions.begin(identityId, [{ ...session, ...times }], origin)
  const theirs = await login(email, 'Another-pass-2')
  t.match((await theirs.call('GET', '/auth/sessions')).body, { total: 1, data: [{ isCurrent: true }] })
  t.equal((await theirs.call('DELETE', '/auth/session/j')).status, 404)
  t.equal((await theirs.call('GET', '/auth/my-organizations')).body.data.length, 1)
  const copied = { organizationName: 'Copy', copyDataFromFirstOrg: true }
  t.equal((await theirs.call('POST', '/organization', copied)).status, 400, 'nor copies them')
})

test('the log keeps sessions no longer than their tokens live', async (t) => {
  const { context, log } = await openIdentity(t)
  const identityId = '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b99'
  const time = (ms: number): string => new Date(ms).toISOString()
  const session = (i: number) => ({
    ...{ jti: `j${i}`, organizationId: 'o', userId: 'u', address: '' },
    ...{ expiresAt: time(i + 10), at: time(i) },
  })
  const events = Array.from({ length: 255 }, (_, i) => {
    const data = encodeJson(session(i))
    return { id: crypto.randomUUID(), type: 'sessionBegan', data, isJson: true, metadata: {} }
  })
  await log.append(`sessions-${identityId}`, events, 'none')
  const origin = { ids: { next: () => crypto.randomUUID() }, metadata: {} }
  await context.sessions.begin(identityId, [session(255)], origin)
  const [oldest] = await log.read(`sessions-${identityId}`, 0, 1)
  t.equal(oldest.revision, 246)
  t.equal((await context.sessions.live(identityId, 255)).length, 10)
})

test('refresh and logout revoke the token of the call, over a restart too', async (t) => {
  const folder = folderOf(t)
  const one = await openIdentity(t, {}, undefined, folder)
  const changes = one.accessChanges
  const ada = await one.signup()
  const { organizationId, _id: userId } = ada.body.data
  await until('the creation to be heard', () => changes.some((change) => change.userId === userId))
  changes.length = 0
  const refreshed = await ada.call('POST', '/auth/refresh')
  t.match(refreshed.body, { expires_in: 86_400, data: { _id: userId }, organizations: [{ isCurrent: true }] })
  await until('the change to be heard', () => changes.length > 0)
  t.match(changes, [{ organizationId, userId, jti: String, graceMs: 10_000 }])
  t.equal((await ada.call('GET', '/user')).status, 401)
  t.match(await one.authenticator.authenticate(refreshed.body.token), {
    userId,
    organizationId,
    roleKey: 'owner',
    hubIds: 'all',
  })
  const other = await one.login(ada.email)
  t.equal((await other.call('POST', '/auth/logout')).status, 200)
  await until('the logout to be heard', () => changes.at(-1)?.graceMs === 0)
  await one.close()

  const two = await openIdentity(t, {}, undefined, folder)
  await t.rejects(two.authenticator.authenticate(ada.token), { code: 'unauthenticated' })
  await t.rejects(two.authenticator.authenticate(other.token), { code: 'unauthenticated' })
  t.match(await two.authenticator.authenticate(refreshed.body.token), { userId }, 'tokens stay valid over restarts')
})

test('a refresh whose answer was lost is answered again, until the session ends otherwise', async (t) => {
  const { signup, call, authenticator, session } = await openIdentity(t)
  const ada = await signup()
  const seed = Buffer.alloc(32, 5)
  const first = await call('POST', '/auth/refresh', { seed, caller: await authenticator.authenticate(ada.token) })
  await t.rejects(authenticator.authenticate(ada.token), { code: 'unauthenticated' })
  const again = async () =>
    call('POST', '/auth/refresh', { seed, caller: await authenticator.authenticateRevoked(ada.token) })
  t.same((await again()).body, first.body, 'the same token')
  const fresh = session(first, ada.email)
  t.equal((await fresh.call('GET', '/auth/sessions')).body.total, 1)
  const caller = await authenticator.authenticateRevoked(ada.token)
  t.equal(
    (await call('POST', '/auth/refresh', { caller })).status,
    401,
    'another refresh with the old token is refused',
  )
  await fresh.call('POST', '/auth/logout')
  t.equal((await again()).status, 401)
})

test('tokens end, and forged ones are refused', async (t) => {
  const { signup, authenticator, clock } = await openIdentity(t, { tokenTtlMs: 60_000 })
  const ada = await signup()
  t.equal(ada.body.expires_in, 60)
  const [header, payload, signature] = ada.token.split('.')
  const claims = JSON.parse(Buffer.from(payload, 'base64url').toString())
  t.match(claims, {
    sub: ada.body.data._id,
    org: ada.body.data.organizationId,
    jti: String,
    iat: Number,
    exp: claims.iat + 60,
    iss: 'waymark',
  })
  const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  const forged = [
    `${header}.${encode({ ...claims, sub: 'x' })}.${signature}`,
    `${encode({ alg: 'none', kid: JSON.parse(Buffer.from(header, 'base64url').toString()).kid })}.${payload}.`,
    `${encode({ alg: 'EdDSA', kid: 'nope' })}.${payload}.${signature}`,
    `${header}.${payload}.`,
    'x',
    '',
    '..',
  ]
  for (const token of forged)
    await t.rejects(authenticator.authenticate(token), { code: 'unauthenticated' }, token.slice(0, 20))
  clock.advance(59_000)
  await authenticator.authenticate(ada.token)
  clock.advance(1_000)
  await t.rejects(authenticator.authenticate(ada.token), { code: 'unauthenticated' })
})

test('no password and no hash leaves the identity stream', async (t) => {
  const { signup, log, tables } = await openIdentity(t)
  await signup()
  const decoder = new TextDecoder()
  const abort = new AbortController()
  for await (const batch of log.follow({ prefixes: [''] }, undefined, abort.signal)) {
    for (const { stream, data } of batch.events) {
      const text = decoder.decode(data)
      t.notMatch(text, PASSWORD)
      if (!stream.startsWith('identity-')) t.notMatch(text, 'argon2')
    }
    if (batch.caughtUp) break
  }
  for (const name of ['users', 'access-users', 'organizations'])
    for await (const { row } of tables.scanAll(name)) t.notMatch(JSON.stringify(row), 'argon2')
})
