import { test, type Test } from 'tap'
import { openMailbox } from '../../support/mailbox.ts'
import { openIdentity, PASSWORD, type Session } from '../../support/open-identity.ts'

const DAY_MS = 86_400_000
const NEW = 'Another-horse-8-battery'

const openOffice = async (t: Test) => {
  const world = await openIdentity(t)
  const mailbox = await openMailbox(t, world)
  const owner = await world.signup({ organizationName: 'Green <Couriers>', name: 'Olga & Sons' })
  await mailbox.next(owner.email)
  const planner = await world.roleId(owner, 'planner')
  const accept = (token: string, body: object = {}) =>
    world.call('POST', '/auth/accept-invitation', { body: { token, password: PASSWORD, ...body } })
  const invited = async (email: string, by: Session = owner, fields: object = {}) => {
    const roleId = await world.roleId(by, 'planner')
    const answer = await by.call('POST', '/user/invite', { email, roleId, ...fields })
    if (answer.status !== 201) throw new Error(JSON.stringify(answer.body))
    return answer.body.data
  }
  return { ...world, ...mailbox, owner, planner, accept, invited }
}

test('an invitation is mailed, accepted once, and signs in', async (t) => {
  const { owner, invited, next, token: tokenOf, accept, login, session, rest, signup } = await openOffice(t)
  const user = await invited('ada@example.com', owner, { name: 'Ada', hubId: owner.body.data.hubId })
  t.match(user, { name: 'Ada', email: 'ada@example.com', status: 'invited', hubId: owner.body.data.hubId })
  const mail = await next('ada@example.com')
  t.match(mail.headers.subject, 'Green <Couriers>')
  t.match(mail.text, 'Olga & Sons')
  t.match(mail.html, 'Olga &amp; Sons invites you to Green &lt;Couriers&gt;', 'escaped')
  const link = /https:\/\/map\.example\.com\/accept-invitation\?token=[\w-]+/.exec(mail.text)?.[0] ?? ''
  t.match(mail.html, `href="${link}"`)
  const token = new URL(link).searchParams.get('token') as string

  t.match(await accept(`${token.slice(0, 20)}${token[20] === 'A' ? 'B' : 'A'}${token.slice(21)}`), {
    status: 400,
    body: { errors: [{ path: '/token' }] },
  })
  t.equal((await accept('nonsense')).status, 400)
  await t.rejects(login('ada@example.com'), /401/, 'nobody is in before')
  const answer = await accept(token, { name: 'Ada Kowalska' })
  t.match(answer, {
    status: 200,
    body: {
      token: String,
      expires_in: Number,
      data: { _id: user._id, name: 'Ada Kowalska', status: 'active', teamIds: [] },
      organizations: [{ organizationName: 'Green <Couriers>', roleName: 'planner', isCurrent: true }],
    },
  })
  const ada = session(answer, 'ada@example.com')
  t.match((await ada.call('GET', '/user')).body.data, { name: 'Ada Kowalska', status: 'active' })
  t.match(await accept(token), { status: 400 }, 'it works once')
  await login('ada@example.com')
  t.same(await rest(), [])
  const elsewhere = await signup()
  t.equal((await elsewhere.call('POST', `/user/${user._id}/invite`)).status, 404)
  t.equal((await owner.call('POST', `/user/${user._id}/invite`)).status, 409, 'who accepted is not invited again')
  await invited('ada@example.com', elsewhere, { name: 'Typed by somebody' })
  await next(elsewhere.email)
  const there = await accept(await tokenOf('ada@example.com'))
  t.match(there.body.data, { name: 'Ada Kowalska' }, 'called as they called themselves, not as they were first invited')
})

test('nobody is invited, or given an address, where mail would be looked up inside', async (t) => {
  const { owner, invited, planner, signup } = await openOffice(t)
  const refused = { status: 400, body: { code: 'invalid', errors: [{ path: '/email' }] } }
  const ada = await invited('ada@example.com')
  for (const email of [
    'a@printer.local',
    'a@db.internal',
    'a@router.lan',
    'a@127.0.0.1',
    'a@localhost',
    'a\u202e@b.example',
  ]) {
    t.match(await owner.call('POST', '/user/invite', { email, roleId: planner }), refused, `invited: ${email}`)
    t.match(await owner.call('POST', '/user', { name: 'A', email, roleId: planner }), refused, `made: ${email}`)
    t.match(await owner.call('PATCH', `/user/${ada._id}`, { email }), refused, `changed: ${email}`)
  }
  const inside = await signup({ email: 'olga@company.local' })
  t.equal((await inside.call('GET', '/users')).status, 200, 'an identity of such an address signs in all the same')
})

test('a link ends: after 7 days, by a newer one, by the deletion of the user', async (t) => {
  const { owner, invited, token, accept, clock } = await openOffice(t)
  const user = await invited('ada@example.com')
  const first = await token('ada@example.com')
  t.match(await owner.call('POST', `/user/${user._id}/invite`), { status: 200, body: { data: { status: 'invited' } } })
  const second = await token('ada@example.com')
  t.not(second, first)
  t.equal((await accept(first)).status, 400, 'the older one ended')
  clock.advance(7 * DAY_MS)
  t.equal((await accept(second)).status, 400, 'it expired')
})

test('deleting the user ends the link, and made again they are invited again', async (t) => {
  const { owner, invited, token, accept } = await openOffice(t)
  const user = await invited('ada@example.com')
  const first = await token('ada@example.com')
  t.equal((await owner.call('DELETE', `/user/${user._id}`)).status, 200)
  t.equal((await accept(first)).status, 400)
  const again = await invited('ada@example.com')
  t.equal(again.status, 'invited')
  t.equal((await accept(first)).status, 400, 'the older link does not open the new user')
  t.equal((await accept(await token('ada@example.com'))).status, 200)
})

test('whoever has a verified account accepts with its password and keeps its name', async (t) => {
  const { owner, invited, token, accept, signup, call, login } = await openOffice(t)
  const guest = await signup({ email: 'guest@example.com', name: 'Guest' })
  const verify = await token('guest@example.com')
  t.equal((await call('POST', '/auth/verify-email', { body: { token: verify, password: NEW } })).status, 200)
  await invited('GUEST@example.com', owner, { name: 'Typed by somebody' })
  const link = await token('guest@example.com')
  t.match(await accept(link, { password: PASSWORD }), { status: 401, body: { code: 'invalid_credentials' } })
  const answer = await accept(link, { password: NEW, name: 'Other' })
  t.match(answer, { status: 200, body: { data: { name: 'Guest', email: 'guest@example.com' } } })
  t.equal(answer.body.organizations.length, 2)
  t.equal((await (await login('guest@example.com', NEW)).call('GET', '/auth/my-organizations')).body.data.length, 2)
  void guest
})

test('whoever registered an address before its owner keeps nothing', async (t) => {
  const { owner, signup, token, accept, login, rest, roleId, call } = await openOffice(t)
  // A makes the victim's account in their own organization, with a password that A knows.
  const attacker = await signup({ email: 'attacker@example.com' })
  await token('attacker@example.com')
  const planner = await roleId(attacker, 'planner')
  const body = { name: 'Victim', email: 'victim@example.com', password: PASSWORD, roleId: planner }
  const { _id } = (await attacker.call('POST', '/user', body)).body.data
  t.same(await rest(), [])
  // B invites the address and makes them owner.
  const made = await owner.call('POST', '/user', { ...body, name: 'V', roleId: await roleId(owner, 'owner') })
  t.match(made, { status: 201, body: { data: { status: 'invited', name: 'V' } } })
  const link = await token('victim@example.com')
  t.equal((await accept(link, { password: NEW })).status, 200, 'their own password, unverified as they are')
  await t.rejects(login('victim@example.com', PASSWORD), /401/, 'A knows it no longer')

  t.equal((await attacker.call('PATCH', `/user/${_id}`, { password: PASSWORD })).status, 200)
  const sessions = await login('victim@example.com', PASSWORD)
  t.equal(sessions.body.data.organizationId, attacker.body.data.organizationId, "A's own organization alone")
  const inB = await call('POST', '/auth/login', {
    body: { email: 'victim@example.com', password: PASSWORD, organizationId: owner.body.data.organizationId },
  })
  t.equal(inB.status, 401)
  // The owner is told, and opens what is theirs.
  const reopening = await token('victim@example.com')
  const reset = await call('POST', '/auth/reset-password', { body: { token: reopening, password: NEW } })
  t.equal(reset.status, 200)
  await t.rejects(login('victim@example.com', PASSWORD), /401/)
  const back = await login('victim@example.com', NEW)
  t.equal((await back.call('GET', '/auth/my-organizations')).body.data.length, 2)
})

test('an administrator who chooses an e-mail opens their own organization with it, and no other', async (t) => {
  const { owner, signup, invited, token, accept, login, roleId, call, rest } = await openOffice(t)
  const attacker = await signup({ email: 'attacker@example.com' })
  await token('attacker@example.com')
  const body = { name: 'V', email: 'victim@example.com', password: PASSWORD, roleId: await roleId(attacker, 'planner') }
  const { _id } = (await attacker.call('POST', '/user', body)).body.data
  await invited('victim@example.com', owner)
  t.equal((await accept(await token('victim@example.com'), { password: NEW })).status, 200)

  t.match(await attacker.call('PATCH', `/user/${_id}`, { email: 'mine@example.com' }), {
    status: 200,
    body: { data: { email: 'victim@example.com', pendingEmail: 'mine@example.com' } },
  })
  t.match(
    (await rest()).filter((mail) => mail.startsWith('victim')),
    [/is about to change/],
    'the old one is told',
  )
  const change = await token('mine@example.com')
  t.equal((await call('POST', '/auth/verify-email', { body: { token: change } })).status, 200)
  await call('POST', '/auth/forgot-password', { body: { email: 'mine@example.com' } })
  const reset = await token('mine@example.com')
  t.equal((await call('POST', '/auth/reset-password', { body: { token: reset, password: PASSWORD } })).status, 200)
  const stolen = await login('mine@example.com')
  t.equal(stolen.body.data.organizationId, attacker.body.data.organizationId)
  const organizationId = owner.body.data.organizationId
  const other = await call('POST', '/auth/login', {
    body: { email: 'mine@example.com', password: PASSWORD, organizationId },
  })
  t.equal(other.status, 401, 'the organization that invited somebody else stays closed')
  const switched = await stolen.call('POST', '/auth/switch-organization', { organizationId, password: PASSWORD })
  t.equal(switched.status, 404)
})

test('an owner by invitation counts as an owner once they accept', async (t) => {
  const { owner, invited, token, accept, session, roleId } = await openOffice(t)
  await invited('ada@example.com', owner, { roleId: await roleId(owner, 'owner') })
  const me = owner.body.data._id
  const step = () => owner.call('PATCH', `/user/${me}`, { status: 'disabled' })
  t.equal((await step()).status, 409, 'an owner who has not accepted is none')
  const ada = session(await accept(await token('ada@example.com')), 'ada@example.com')
  t.equal((await step()).status, 200)
  t.equal((await ada.call('GET', '/users')).status, 200)
})

test('invitations are counted', async (t) => {
  const { owner, planner, invited } = await openOffice(t)
  const user = await invited('ada@example.com')
  let last = 0
  for (let i = 0; i < 10; i++) last = (await owner.call('POST', `/user/${user._id}/invite`)).status
  t.equal(last, 429, 'one address gets so many an hour')
  t.equal((await owner.call('POST', '/user/invite', { email: 'bob@example.com', roleId: planner })).status, 201)
  const made = { name: 'Eve', email: 'eve@example.com', roleId: planner }
  last = 201
  for (let i = 0; i < 12 && last === 201; i++) {
    const { status, body } = await owner.call('POST', '/user', made)
    last = status
    if (status === 201) await owner.call('DELETE', `/user/${body.data._id}`)
  }
  t.equal(last, 429, 'a user who is made and deleted again and again is mailed no more often')
})
