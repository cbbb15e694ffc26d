import { test } from 'tap'
import { identity } from '../../../src/features/identity/identity.ts'
import { linkToken } from '../../../src/features/identity/links/links.ts'
import { openMailbox } from '../../support/mailbox.ts'
import { issuedToken, openIdentity, PASSWORD } from '../../support/open-identity.ts'
import { enrol } from '../../support/second-factor.ts'

const NEW = 'Another-horse-8-battery'
const THIRD = 'Yet-another-9-horse'
const DAY_MS = 86_400_000

for (const hasFactor of [false, true])
  test(`a stranger's change of the e-mail ends as the owner accepts an invitation, ${hasFactor ? 'with' : 'without'} a factor`, async (t) => {
    const world = await openIdentity(t)
    const { signup, call, login, roleId } = world
    const { token } = await openMailbox(t, world)
    const stranger = await signup({ email: 'owner@example.com' })
    await token('owner@example.com')
    if (hasFactor) await enrol(world, stranger)
    await stranger.call('PATCH', '/user', { email: 'stranger@example.com', currentPassword: PASSWORD })
    const waiting = await token('stranger@example.com')
    await token('owner@example.com')
    const company = await signup()
    await company.call('POST', '/user/invite', {
      email: 'owner@example.com',
      roleId: await roleId(company, 'planner'),
    })
    const body = { token: await token('owner@example.com'), password: NEW }
    t.equal((await call('POST', '/auth/accept-invitation', { body })).status, 200)
    for (const password of [undefined, NEW, PASSWORD])
      t.match(await call('POST', '/auth/verify-email', { body: { token: waiting, password } }), {
        status: 400,
        body: { errors: [{ path: '/token' }] },
      })
    const session = await login('owner@example.com', NEW)
    t.notOk('pendingEmail' in (await session.call('GET', '/user')).body.data)
    await t.rejects(login('stranger@example.com', NEW), /401/)
  })

test('a verified owner who resets after a theft loses the change that the thief began, or cancels it', async (t) => {
  const world = await openIdentity(t)
  const { signup, call, login, roleId } = world
  const { token, next } = await openMailbox(t, world)
  const ada = await signup({ email: 'ada@example.com' })
  const body = { token: await token(ada.email), password: PASSWORD }
  const signedIn = await call('POST', '/auth/verify-email', { body })
  t.match(signedIn.body, { token: String, expires_in: 86_400, data: { email: ada.email }, organizations: [{}] })
  t.equal((await ada.call('GET', '/user')).status, 401, 'earlier sessions end')
  const thief = world.session(signedIn, ada.email)
  t.equal((await thief.call('GET', '/user')).status, 200)
  const steal = () => thief.call('PATCH', '/user', { email: 'thief@example.com', currentPassword: PASSWORD })
  const host = await signup()
  await next(host.email)
  await host.call('POST', '/user/invite', { email: ada.email, roleId: await roleId(host, 'planner') })
  const invitation = { token: await token(ada.email), password: PASSWORD }
  const elsewhere = world.session(await call('POST', '/auth/accept-invitation', { body: invitation }), ada.email)

  await steal()
  const first = await token('thief@example.com')
  await next(ada.email)
  t.equal((await thief.call('GET', '/user')).body.data.pendingEmail, 'thief@example.com')
  t.equal((await elsewhere.call('PATCH', '/user', { pendingEmail: null })).status, 200)
  t.notOk('pendingEmail' in (await thief.call('GET', '/user')).body.data, 'cancelled from whichever organization')
  t.equal((await call('POST', '/auth/verify-email', { body: { token: first } })).status, 400)
  t.equal((await thief.call('PATCH', '/user', { pendingEmail: null })).status, 200, 'there is nothing left to cancel')

  await steal()
  const second = await token('thief@example.com')
  await next(ada.email)
  await call('POST', '/auth/forgot-password', { body: { email: ada.email } })
  const reset = { token: await token(ada.email), password: NEW }
  t.equal((await call('POST', '/auth/reset-password', { body: reset })).status, 200)
  t.equal((await call('POST', '/auth/verify-email', { body: { token: second } })).status, 400)
  const session = await login(ada.email, NEW)
  t.notOk('pendingEmail' in (await session.call('GET', '/user')).body.data)
})

test('confirming an address asks for the second factor, and answers whoever is a user nowhere', async (t) => {
  const world = await openIdentity(t)
  const { signup, call, login } = world
  const ada = await signup({ email: 'ada@example.com' })
  const verify = async (kind: 'verification' | 'emailChange', password?: string) =>
    call('POST', '/auth/verify-email', { body: { token: await issuedToken(world, ada.email, kind), password } })
  t.equal((await verify('verification', PASSWORD)).status, 200)
  const session = await login(ada.email)
  const factor = await enrol(world, session)
  await session.call('PATCH', '/user', { email: 'new@example.com', currentPassword: PASSWORD })
  const asked = await verify('emailChange')
  t.match(asked, { status: 200, body: { challenge: String, message: /confirmed/ } })
  t.notOk('token' in asked.body)
  const body = { challenge: asked.body.challenge, code: factor.code() }
  const answer = await call('POST', '/auth/login/second-factor', { body })
  t.match(answer.body, { token: String, data: { email: 'new@example.com' } })
})

test('the old address undoes a change that took effect, with all that came of it', async (t) => {
  const world = await openIdentity(t, { tokenTtlMs: 30 * DAY_MS })
  const { signup, call, login, roleId, clock, context } = world
  const { token, next } = await openMailbox(t, world)
  const ada = await signup({ email: 'ada@example.com' })
  const { identityId = '' } = (await context.people.findByEmail(ada.email)) ?? {}
  await call('POST', '/auth/verify-email', { body: { token: await token(ada.email), password: PASSWORD } })
  const hosts = [await signup(), await signup()]
  const guests: string[] = []
  const join = async (host: (typeof hosts)[0], email: string, password: string) => {
    const { _id } = (await host.call('POST', '/user/invite', { email, roleId: await roleId(host, 'planner') })).body
      .data
    guests.push(_id)
    const body = { token: await issuedToken(world, email, 'invitation'), password }
    t.equal((await call('POST', '/auth/accept-invitation', { body })).status, 200)
  }
  await join(hosts[0], ada.email, PASSWORD)
  await next(ada.email)

  const body = { email: ada.email, password: PASSWORD, organizationId: ada.body.data.organizationId }
  const thief = world.session(await call('POST', '/auth/login', { body }), ada.email)
  clock.advance(1_000)
  await thief.call('PATCH', '/user', { email: 'thief@example.com', currentPassword: PASSWORD })
  const notice = await next(ada.email)
  t.match(notice.text, 'thief@example.com')
  const undo = /reset-password\?token=([\w-]+)/.exec(notice.text)?.[1]
  const taken = await call('POST', '/auth/verify-email', { body: { token: await token('thief@example.com') } })
  const thiefs = world.session(taken, 'thief@example.com')
  await enrol(world, thiefs)
  await join(hosts[1], 'thief@example.com', PASSWORD)
  const founded = await thiefs.call('POST', '/organization', {
    ...{ organizationName: 'Of the thief', hubName: 'Hub', hubLat: 1, hubLng: 1, copyDataFromFirstOrg: false },
  })
  t.equal(founded.status, 200)
  await t.rejects(login(ada.email), /401/)

  clock.advance(6 * DAY_MS)
  const reset = (body: object) => call('POST', '/auth/reset-password', { body })
  t.equal((await reset({ token: undo, password: 'short' })).status, 400)
  t.equal((await reset({ token: undo, password: NEW })).status, 200)
  t.equal((await reset({ token: undo, password: THIRD })).status, 400, 'once')
  t.equal((await thiefs.call('GET', '/user')).status, 401)
  await t.rejects(login('thief@example.com', NEW), /401/)
  await t.rejects(login(ada.email), /401/)
  const back = await login(ada.email, NEW)
  t.match(back.body, { token: String, data: { email: ada.email } }, 'no factor of the thief stands in the way')
  const organizations = back.body.organizations.map(({ organizationId }: { organizationId: string }) => organizationId)
  t.same(organizations, [ada.body.data.organizationId, hosts[0].body.data.organizationId])
  const [kept, returned] = await Promise.all(hosts.map((host, i) => host.call('GET', `/user/${guests[i]}`)))
  t.match(kept.body.data, { status: 'active', email: ada.email })
  t.match(returned.body.data, { status: 'invited', email: ada.email })
  t.equal((await hosts[1].call('POST', `/user/${guests[1]}/invite`)).status, 200)
  const open = (await context.people.load(identityId))?.state.links.filter(({ useId }) => useId === undefined) ?? []
  t.same(
    open.map(({ kind }) => kind),
    ['invitation'],
  )
  const accept = { token: linkToken(world.keyring, identityId, open[0].linkId), password: NEW }
  t.equal((await call('POST', '/auth/accept-invitation', { body: accept })).status, 200, 'the owner may accept it')
  t.equal((await login(ada.email, NEW)).body.organizations.length, 3)
  await signup({ email: 'thief@example.com' })
})

test('a change is undone while it is pending, for seven days, and not for whom has been erased', async (t) => {
  const world = await openIdentity(t)
  const { signup, call, login, clock, roleId } = world
  const owner = await signup()
  const made: { [name: string]: string } = {}
  for (const name of ['pending', 'late', 'erased']) {
    const email = `${name}@example.com`
    const person = { name, email, password: PASSWORD, roleId: await roleId(owner, 'planner') }
    made[name] = (await owner.call('POST', '/user', person)).body.data._id
    const session = await login(email)
    await session.call('PATCH', '/user', { email: `new-${name}@example.com`, currentPassword: PASSWORD })
  }
  const undoOf = (name: string) => issuedToken(world, `${name}@example.com`, 'emailUndo')
  const [pending, late, erased] = await Promise.all(['pending', 'late', 'erased'].map(undoOf))
  const undo = (token: string, path = '/auth/reset-password') => call('POST', path, { body: { token, password: NEW } })
  const change = await issuedToken(world, 'pending@example.com', 'emailChange')
  t.match(await call('POST', '/auth/verify-email', { body: { token: pending } }), {
    status: 400,
    body: { errors: [{ path: '/password' }] },
  })
  t.match((await undo(pending, '/auth/verify-email')).body, { token: String, data: { email: 'pending@example.com' } })
  t.equal((await call('POST', '/auth/verify-email', { body: { token: change, password: NEW } })).status, 400)
  t.notOk('pendingEmail' in (await owner.call('GET', `/user/${made.pending}`)).body.data)
  t.equal((await owner.call('DELETE', `/user/${made.erased}?erase=true`)).status, 200)
  t.equal((await undo(erased)).status, 400)
  clock.advance(7 * DAY_MS)
  t.equal((await undo(late)).status, 400)
})

test('an old address that has an account of its own by then stays with that', async (t) => {
  const world = await openIdentity(t)
  const { signup, call, login } = world
  const ada = await signup({ email: 'ada@example.com' })
  await ada.call('PATCH', '/user', { email: 'new@example.com', currentPassword: PASSWORD })
  const [undo, change] = [
    await issuedToken(world, ada.email, 'emailUndo'),
    await issuedToken(world, ada.email, 'emailChange'),
  ]
  const moved = await call('POST', '/auth/verify-email', { body: { token: change, password: NEW } })
  const session = world.session(moved, 'new@example.com')
  const other = await signup({ email: 'ada@example.com' })
  t.match(await call('POST', '/auth/reset-password', { body: { token: undo, password: THIRD } }), {
    status: 409,
    body: { code: 'key_in_use', message: /cannot be undone/ },
  })
  for (const one of [session, other]) t.equal((await one.call('GET', '/user')).status, 200)
  await login('new@example.com', NEW)
  t.equal((await login('ada@example.com')).body.data._id, other.body.data._id)
})

test('of two changes the first undo brings the first address back, and the second cannot undo that', async (t) => {
  const world = await openIdentity(t)
  const { signup, call, login } = world
  const ada = await signup({ email: 'a@example.com' })
  const verify = (token: string, password?: string) => call('POST', '/auth/verify-email', { body: { token, password } })
  let session = world.session(
    await verify(await issuedToken(world, 'a@example.com', 'verification'), PASSWORD),
    ada.email,
  )
  const undos: string[] = []
  for (const [from, to] of [
    ['a@example.com', 'b@example.com'],
    ['b@example.com', 'c@example.com'],
  ]) {
    await session.call('PATCH', '/user', { email: to, currentPassword: PASSWORD })
    const person = await world.context.people.findByEmail(from)
    const undo = person?.state.links.find(({ kind, email }) => kind === 'emailUndo' && email === from)
    undos.push(linkToken(world.keyring, person?.identityId ?? '', undo?.linkId ?? ''))
    session = world.session(await verify(await issuedToken(world, from, 'emailChange')), to)
  }
  const reset = (token: string, password: string) => call('POST', '/auth/reset-password', { body: { token, password } })
  t.equal((await reset(undos[1], NEW)).status, 200, 'the second alone')
  await login('b@example.com', NEW)
  t.equal((await reset(undos[0], THIRD)).status, 200, 'the first on top of it')
  const again = await login('a@example.com', THIRD)
  t.equal((await again.call('GET', '/user')).body.data.email, 'a@example.com')
})

test('the undo of the first change ends that of the second', async (t) => {
  const world = await openIdentity(t)
  const { signup, call } = world
  await signup({ email: 'a@example.com' })
  const undos: string[] = []
  let kind: 'verification' | 'emailChange' = 'verification'
  for (const from of ['a@example.com', 'b@example.com']) {
    const to = from === 'a@example.com' ? 'b@example.com' : 'c@example.com'
    const verify = async (email: string) => {
      const body = { token: await issuedToken(world, email, kind), password: PASSWORD }
      return world.session(await call('POST', '/auth/verify-email', { body }), email)
    }
    const session = kind === 'verification' ? await verify(from) : await world.login(from)
    kind = 'emailChange'
    await session.call('PATCH', '/user', { email: to, currentPassword: PASSWORD })
    const person = await world.context.people.findByEmail(from)
    const undo = person?.state.links.find((one) => one.kind === 'emailUndo' && one.email === from)
    undos.push(linkToken(world.keyring, person?.identityId ?? '', undo?.linkId ?? ''))
    await verify(from)
  }
  const reset = (token: string) => call('POST', '/auth/reset-password', { body: { token, password: NEW } })
  t.equal((await reset(undos[0])).status, 200)
  t.equal((await reset(undos[1])).status, 400)
  await world.login('a@example.com', NEW)
})

test("what an administrator's change of the address closed is open again once it is undone", async (t) => {
  const world = await openIdentity(t)
  const { signup, call, login, roleId } = world
  const [one, two] = [await signup(), await signup()]
  const email = 'bob@example.com'
  const bob = { name: 'Bob', email, password: PASSWORD, roleId: await roleId(one, 'planner') }
  const { _id } = (await one.call('POST', '/user', bob)).body.data
  await two.call('POST', '/user/invite', { email, roleId: await roleId(two, 'planner') })
  const invitation = { token: await issuedToken(world, email, 'invitation'), password: PASSWORD }
  t.equal((await call('POST', '/auth/accept-invitation', { body: invitation })).status, 200)
  t.equal(
    (await one.call('PATCH', `/user/${_id}`, { email: 'mine@example.com' })).body.data.pendingEmail,
    'mine@example.com',
  )
  t.equal((await one.call('PATCH', `/user/${_id}`, { pendingEmail: null })).status, 200)
  t.notOk('pendingEmail' in (await one.call('GET', `/user/${_id}`)).body.data, 'the administrator cancels')
  await one.call('PATCH', `/user/${_id}`, { email: 'mine@example.com' })
  const undo = await issuedToken(world, email, 'emailUndo')
  const change = { token: await issuedToken(world, email, 'emailChange') }
  t.equal((await call('POST', '/auth/verify-email', { body: change })).body.organizations.length, 1)
  t.equal((await call('POST', '/auth/reset-password', { body: { token: undo, password: NEW } })).status, 200)
  t.equal((await login(email, NEW)).body.organizations.length, 2)
  t.equal((await two.call('GET', `/users?email=${email}`)).body.total, 1, 'in every organization')
})

test('only where the person first registered does an administrator cancel a change', async (t) => {
  const world = await openIdentity(t)
  const { signup, call, roleId } = world
  const [ada, host] = [await signup({ email: 'ada@example.com' }), await signup()]
  const { _id } = (await host.call('POST', '/user/invite', { email: ada.email, roleId: await roleId(host, 'planner') }))
    .body.data
  const invitation = { token: await issuedToken(world, ada.email, 'invitation'), password: PASSWORD }
  const guest = world.session(await call('POST', '/auth/accept-invitation', { body: invitation }), ada.email)
  await guest.call('PATCH', '/user', { email: 'new@example.com', currentPassword: PASSWORD })
  t.equal((await host.call('PATCH', `/user/${_id}`, { pendingEmail: null })).status, 403)
  t.equal((await guest.call('GET', '/user')).body.data.pendingEmail, 'new@example.com')
  const record = (await host.call('GET', `/user/${_id}`)).body.data
  t.equal(
    (await host.call('PUT', `/user/${_id}`, { ...record, name: 'Guest' })).status,
    200,
    'what was read is written back',
  )
})

test('an identity of an earlier version is folded with what its proofs end', (t) => {
  const at = (second: number) => `2026-01-01T00:00:0${second}.000Z`
  const [organizationId, userId] = ['o1', 'u1']
  const link = (linkId: string, kind: string, email: string) => ({
    type: 'linkIssued',
    data: { linkId, kind, email, organizationId, userId, expiresAt: '2026-01-08T00:00:00.000Z', at: at(1) },
  })
  const facts = [
    {
      type: 'identityCreated',
      data: { email: 'a@b.c', name: 'A', passwordHash: 'x', originOrganizationId: 'o1', at: at(0) },
    },
    { type: 'membershipAdded', data: { organizationId, userId, at: at(0) } },
    link('l1', 'verification', 'a@b.c'),
    link('00000000-0000-7000-8000-000000000002', 'emailChange', 'stranger@b.c'),
    link('l3', 'invitation', 'a@b.c'),
    { type: 'secondFactorOffered', data: { factorId: 'f', sealedSecret: 's', expiresAt: at(9), at: at(2) } },
    { type: 'secondFactorConfirmed', data: { factorId: 'f', recoveryHashes: [], at: at(2) } },
    { type: 'linkFollowed', data: { linkId: 'l3', useId: 'use', at: at(3) } },
    { type: 'passwordChanged', data: { passwordHash: 'y', opensOnly: null, at: at(3) } },
    { type: 'emailVerified', data: { email: 'a@b.c', at: at(3) } },
    { type: 'secondFactorRemoved', data: { at: at(3) } },
  ]
  const state = facts.reduce(identity.evolve, identity.initial)
  t.match(state, { email: 'a@b.c', isVerified: true, passwordHash: 'y', factor: undefined })
  t.same(
    state.links.map(({ kind, useId }) => [kind, useId]),
    [
      ['emailUndo', undefined],
      ['invitation', 'use'],
    ],
  )
  const own = { type: 'passwordChanged', data: { passwordHash: 'z', at: at(4) } }
  t.equal(identity.evolve(state, own).proofs, state.proofs, "a person's own change is no proof")
  t.end()
})
