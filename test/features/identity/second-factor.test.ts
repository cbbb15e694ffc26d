import { test, type Test } from 'tap'
import type { CallOptions } from '../../support/call-route.ts'
import { folderOf } from '../../support/folder-of.ts'
import { issuedToken, openIdentity, PASSWORD, type Session } from '../../support/open-identity.ts'
import { codeAt } from '../../support/code-at.ts'
import { enrol } from '../../support/second-factor.ts'
import { until } from '../../support/service.ts'

const DAY_MS = 86_400_000

const NEW = 'Another-horse-8-battery'
const STEP_MS = 30_000

/** An owner with a second factor. */
const open = async (t: Test, folder = folderOf(t)) => {
  const world = await openIdentity(t, {}, undefined, folder)
  const owner = await world.signup()
  const factor = await enrol(world, owner)
  const first = (options: CallOptions = {}) =>
    world.call('POST', '/auth/login', { ...options, body: { email: owner.email, password: PASSWORD } })
  const second = (challenge: string, code: string, options: CallOptions = {}) =>
    world.call('POST', '/auth/login/second-factor', { ...options, body: { challenge, code } })
  /** Signs in anew, with the next code. */
  const signIn = async () => {
    world.clock.advance(STEP_MS)
    const answer = await second((await first()).body.challenge, factor.code())
    return world.session(answer, owner.email)
  }
  return { ...world, owner, factor, first, second, signIn }
}

test('a second factor counts once a code of it was given', async (t) => {
  const { signup, login, clock } = await openIdentity(t)
  const owner = await signup()
  const read = async () => (await owner.call('GET', '/auth/second-factor')).body.data
  t.same(await read(), { isOn: false, isRequired: false, recoveryCodesLeft: 0 })
  const begin = (body: object) => owner.call('POST', '/auth/second-factor', body)
  t.match(await begin({}), { status: 400, body: { errors: [{ path: '/password' }] } })
  t.match(await begin({ password: 'wrong' }), { status: 403, body: { code: 'wrong_password' } })
  const confirm = (code: string) => owner.call('POST', '/auth/second-factor/confirm', { code })
  t.match(await confirm('123456'), { status: 409, body: { code: 'conflict' } }, 'nothing was begun')
  const { secret, otpauthUri } = (await begin({ password: PASSWORD })).body.data
  t.equal(otpauthUri, `otpauth://totp/Waymark:${encodeURIComponent(owner.email)}?secret=${secret}&issuer=Waymark`)
  t.match(secret, /^[A-Z2-7]{32}$/)
  t.match((await login(owner.email)).body, { token: String }, 'nothing changes yet')
  t.match(await confirm('000000'), { status: 403, body: { code: 'wrong_code' } })
  const other = await login(owner.email)
  const answer = await confirm(codeAt(secret, clock.now()))
  t.equal(answer.status, 200)
  const { recoveryCodes } = answer.body.data
  t.equal(new Set(recoveryCodes).size, 10)
  for (const code of recoveryCodes) t.match(code, /^[0-9a-z]{5}-[0-9a-z]{5}$/)
  t.same(await read(), { isOn: true, isRequired: false, recoveryCodesLeft: 10 })
  t.equal((await other.call('GET', '/user')).status, 401, 'every other session ends')
  t.match(await begin({ password: PASSWORD }), { status: 409 }, 'it is not replaced by whoever has the password alone')
})

test('whoever sets it up on an address that is not confirmed is warned, and nobody else', async (t) => {
  const world = await openIdentity(t)
  const { signup, call, clock, login } = world
  const warningsOf = async (session: Session) => {
    const begun = await session.call('POST', '/auth/second-factor', { password: PASSWORD })
    const code = codeAt(begun.body.data.secret, clock.now())
    const confirmed = await session.call('POST', '/auth/second-factor/confirm', { code })
    t.strictSame([begun.status, confirmed.status], [200, 200])
    return [begun.body.data.warning, confirmed.body.data.warning]
  }
  t.match(await warningsOf(await signup()), [/not confirmed/, /taken off/])
  const owner = await signup()
  const token = await issuedToken(world, owner.email, 'verification')
  t.equal((await call('POST', '/auth/verify-email', { body: { token, password: PASSWORD } })).status, 200)
  t.strictSame(await warningsOf(await login(owner.email)), [undefined, undefined])
})

test('what was begun holds for an hour, and a repeated confirmation answers the same codes', async (t) => {
  const { signup, clock } = await openIdentity(t)
  const owner = await signup()
  const begin = async () => (await owner.call('POST', '/auth/second-factor', { password: PASSWORD })).body.data.secret
  const late = await begin()
  clock.advance(3_600_000)
  t.equal((await owner.call('POST', '/auth/second-factor/confirm', { code: codeAt(late, clock.now()) })).status, 409)
  const secret = await begin()
  t.not(secret, late)
  const body = { code: codeAt(secret, clock.now()) }
  const seed = Buffer.alloc(32, 7)
  const one = await owner.call('POST', '/auth/second-factor/confirm', body, { seed })
  const two = await owner.call('POST', '/auth/second-factor/confirm', body, { seed })
  t.equal(one.status, 200)
  t.same(two.body, one.body, 'as under an Idempotency-Key whose answer was lost')
})

test('signing in takes a challenge and a code, each good once', async (t) => {
  const { first, second, factor, clock, authenticator, owner, session } = await open(t)
  const asked = await first()
  t.same(Object.keys(asked.body).sort(), ['challenge', 'expires_in', 'message', 'status'])
  t.equal(asked.body.expires_in, 300)
  const { challenge } = asked.body
  await t.rejects(authenticator.authenticate(challenge), { code: 'unauthenticated' }, 'it is no token')
  const code = factor.code()
  const answer = await second(challenge, code)
  t.match(answer, { status: 200, body: { token: String, expires_in: 86_400, organizations: [{ isCurrent: true }] } })
  t.equal((await session(answer, owner.email).call('GET', '/user')).status, 200)
  clock.advance(STEP_MS)
  t.match(await second(challenge, factor.code()), { status: 401 }, 'a challenge serves once')
  const fresh = (await first()).body.challenge
  t.match(await second(fresh, code), { status: 401, body: { code: 'invalid_credentials' } }, 'and so does a code')
  t.match(await second(`${fresh}x`, factor.code()), { status: 401 })
  clock.advance(300_000)
  t.match(await second(fresh, factor.code()), { status: 401 }, 'within five minutes')
})

test('two who bring one code at the same time are one', async (t) => {
  const { first, second, factor } = await open(t)
  const challenges = await Promise.all([first(), first(), first()])
  const code = factor.code()
  const answers = await Promise.all(challenges.map(({ body }) => second(body.challenge, code)))
  t.same(answers.map(({ status }) => status).sort(), [200, 401, 401])
})

test('a sign-in that the confirmation of a second factor overtakes is none', async (t) => {
  const { signup, over, log, context, clock } = await openIdentity(t)
  const ada = await signup()
  const { secret } = (await ada.call('POST', '/auth/second-factor', { password: PASSWORD })).body.data
  const { identityId = '' } = (await context.people.findByEmail(ada.email)) ?? {}
  let isOn = false
  // The moment between the check of the password and the session.
  const append: typeof log.append = async (stream, events, expected) => {
    if (stream === `sessions-${identityId}` && !isOn) {
      isOn = true
      const body = { code: codeAt(secret, clock.now()) }
      t.equal((await ada.call('POST', '/auth/second-factor/confirm', body)).status, 200)
    }
    return log.append(stream, events, expected)
  }
  const racing = over(Object.assign(Object.create(log), { append }))
  const body = { email: ada.email, password: PASSWORD }
  t.equal((await racing.call('POST', '/auth/login', { body })).status, 401)
  t.ok(isOn)
  t.equal((await context.sessions.live(identityId, 0)).length, 1, 'the other one has ended')
})

test('a code is good again neither within its window nor after a restart', async (t) => {
  const folder = folderOf(t)
  const one = await open(t, folder)
  const code = one.factor.code()
  t.equal((await one.second((await one.first()).body.challenge, code)).status, 200)
  const { clock, owner } = one
  await one.close()
  const two = await openIdentity(t, {}, undefined, folder)
  two.clock.advance(clock.now() - two.clock.now())
  const body = { email: owner.email, password: PASSWORD }
  const { challenge } = (await two.call('POST', '/auth/login', { body })).body
  t.equal((await two.call('POST', '/auth/login/second-factor', { body: { challenge, code } })).status, 401)
  two.clock.advance(STEP_MS)
  const next = codeAt(one.factor.secret, two.clock.now())
  t.equal((await two.call('POST', '/auth/login/second-factor', { body: { challenge, code: next } })).status, 200)
})

test('a clock that is one step off is forgiven, not two', async (t) => {
  const { first, second, factor, clock } = await open(t)
  const at = async (steps: number): Promise<number> => {
    clock.advance(10 * STEP_MS)
    return (await second((await first()).body.challenge, codeAt(factor.secret, clock.now() + steps * STEP_MS))).status
  }
  t.same([await at(-2), await at(-1), await at(0), await at(1), await at(2)], [401, 200, 200, 200, 401])
})

test('guesses are few, and strangers lock nobody out', async (t) => {
  const { first, second, factor, clock } = await open(t)
  const wrong = '000000'
  const { challenge } = (await first({ address: '10.9.9.9' })).body
  for (let i = 0; i < 5; i++) t.equal((await second(challenge, wrong, { address: '10.9.9.9' })).status, 401)
  t.match(
    await second(challenge, factor.code(), { address: '10.9.9.9' }),
    { status: 401 },
    'five codes for a challenge, for the right one too',
  )
  const another = (await first({ address: '10.9.9.8' })).body.challenge
  const answers = await Promise.all(Array.from({ length: 4 }, () => second(another, wrong, { address: '10.9.9.8' })))
  t.same(
    answers.map(({ status }) => status),
    [401, 401, 401, 401],
  )
  const third = (await first({ address: '10.9.9.7' })).body.challenge
  const burst = await Promise.all(Array.from({ length: 4 }, () => second(third, wrong, { address: '10.9.9.7' })))
  t.ok(
    burst.some(({ status }) => status === 429),
    'ten for an identity, over challenges and addresses',
  )
  t.match(await second(third, factor.code(), { address: '10.9.9.7' }), { status: 429, body: { code: 'rate_limited' } })
  // From where the person signed in lately the count is another one.
  t.equal(
    (await second((await first()).body.challenge, factor.code())).status,
    200,
    'whoever has the password keeps nobody out',
  )
  clock.advance(15 * 60_000 + 1)
  const later = (await first({ address: '10.9.9.7' })).body.challenge
  t.equal((await second(later, factor.code(), { address: '10.9.9.7' })).status, 200)
})

test('fifty codes a day from where somebody is not known', async (t) => {
  const { context, clock, owner } = await open(t)
  const count = () => context.throttle.countCode(owner.email, '10.9.9.9', clock.now())
  for (let i = 0; i < 50; i++) {
    await count()
    if (i % 10 === 9) clock.advance(15 * 60_000 + 1)
  }
  await t.rejects(count(), { code: 'rate_limited' })
  clock.advance(86_400_000)
  await count()
})

test('each recovery code signs in once, until there are new ones', async (t) => {
  const { first, second, factor, signIn, clock } = await open(t)
  const [one, two] = factor.recoveryCodes
  const written = one.toUpperCase().replace('-', ' ')
  t.equal((await second((await first()).body.challenge, written)).status, 200, 'however it is typed')
  t.equal((await second((await first()).body.challenge, one)).status, 401)
  const session = await signIn()
  t.equal((await session.call('GET', '/auth/second-factor')).body.data.recoveryCodesLeft, 9)
  const renew = (body: object, seed?: Buffer) =>
    session.call('POST', '/auth/second-factor/recovery-codes', body, { seed })
  clock.advance(STEP_MS)
  t.match(await renew({ password: 'wrong', code: factor.code() }), { status: 403, body: { code: 'wrong_password' } })
  t.match(await renew({ password: PASSWORD, code: '000000' }), { status: 403, body: { code: 'wrong_code' } })
  t.match(await renew({ code: factor.code() }), { status: 400 })
  const body = { password: PASSWORD, code: factor.code() }
  const fresh = await renew(body, Buffer.alloc(32, 9))
  t.equal(fresh.body.data.recoveryCodes.length, 10)
  t.same((await renew(body, Buffer.alloc(32, 9))).body, fresh.body, 'told again to a repeat whose answer was lost')
  t.equal((await renew(body, Buffer.alloc(32, 8))).status, 403)
  t.equal((await second((await first()).body.challenge, two)).status, 401, 'those from before are over')
  t.equal((await second((await first()).body.challenge, fresh.body.data.recoveryCodes[9])).status, 200)
})

test('it is taken off with password and code, which ends other sessions', async (t) => {
  const { signIn, factor, clock, first, call } = await open(t)
  const [session, other] = [await signIn(), await signIn()]
  const off = (body: object) => session.call('DELETE', '/auth/second-factor', body)
  clock.advance(STEP_MS)
  t.equal((await off({ password: PASSWORD })).status, 400)
  t.equal((await off({ password: 'wrong', code: factor.code() })).status, 403)
  t.equal((await off({ password: PASSWORD, code: '000000' })).status, 403)
  t.equal((await off({ password: PASSWORD, code: factor.code() })).status, 200)
  t.equal((await session.call('GET', '/user')).status, 200)
  t.equal((await other.call('GET', '/user')).status, 401)
  t.match((await first()).body, { token: String })
  t.equal((await off({ password: PASSWORD, code: factor.code() })).status, 409)
  t.equal((await call('POST', '/auth/login/second-factor', { body: { challenge: 'x', code: 'y' } })).status, 401)
})

test('a challenge ends with the password and with the factor', async (t) => {
  const { first, second, factor, signIn, clock, call } = await open(t)
  const session = await signIn()
  const before = (await first()).body.challenge
  t.equal((await session.call('PATCH', '/user', { password: NEW, currentPassword: PASSWORD })).status, 200)
  clock.advance(STEP_MS)
  t.equal((await second(before, factor.code())).status, 401)
  const login = () => call('POST', '/auth/login', { body: { email: session.email, password: NEW } })
  const { challenge } = (await login()).body
  clock.advance(STEP_MS)
  await session.call('DELETE', '/auth/second-factor', { password: NEW, code: factor.code() })
  const anew = await enrol({ clock }, session, NEW)
  t.equal((await second(challenge, anew.code())).status, 401)
})

test('forgotten passwords, refresh and switching do not get round it', async (t) => {
  const world = await open(t)
  const { call, second, clock, owner } = world
  // The address is verified by the first link; after that the factor outlives new passwords.
  const verify = { token: await issuedToken(world, owner.email, 'verification'), password: PASSWORD }
  t.equal((await call('POST', '/auth/verify-email', { body: verify })).status, 200)
  t.match(
    (await world.first()).body,
    { token: String },
    'whoever registered an address before its owner does not keep the owner out with a factor of theirs',
  )
  const anew = await enrol(world, await world.login(owner.email))
  const { identityId = '' } = (await world.context.people.findByEmail(owner.email)) ?? {}
  const link = { linkId: crypto.randomUUID(), kind: 'reset', email: owner.email } as const
  const at = new Date(clock.now()).toISOString()
  const issued = { ...link, at, expiresAt: new Date(clock.now() + 3_600_000).toISOString() }
  const origin = { ids: { next: () => crypto.randomUUID() }, metadata: {} }
  await world.context.people.command(identityId, { type: 'issueLink', link: issued, at }, origin)
  const reset = { token: await issuedToken(world, owner.email, 'reset'), password: NEW }
  t.equal((await call('POST', '/auth/reset-password', { body: reset })).status, 200)
  const asked = await call('POST', '/auth/login', { body: { email: owner.email, password: NEW } })
  t.equal(asked.body.token, undefined)
  const session = world.session(await second(asked.body.challenge, anew.code()), owner.email)
  t.equal((await session.call('POST', '/auth/refresh')).status, 200, 'a session has passed it')
})

test('an invitation asks for it before it answers a token', async (t) => {
  const world = await open(t)
  const { call, signup, roleId, owner, second, clock } = world
  const { identityId = '' } = (await world.context.people.findByEmail(owner.email)) ?? {}
  const at = new Date(clock.now()).toISOString()
  const origin = { ids: { next: () => crypto.randomUUID() }, metadata: {} }
  await world.context.people.command(identityId, { type: 'verifyEmail', email: owner.email, at }, origin)
  const factor = await enrol(world, owner)
  const host = await signup()
  const invite = { email: owner.email, name: 'Guest', roleId: await roleId(host, 'planner') }
  t.equal((await host.call('POST', '/user/invite', invite)).status, 201)
  const body = { token: await issuedToken(world, owner.email, 'invitation'), password: PASSWORD }
  const asked = await call('POST', '/auth/accept-invitation', { body })
  t.match(asked, { status: 200, body: { challenge: String } })
  t.notOk('token' in asked.body)
  const answer = await second(asked.body.challenge, factor.code())
  t.match(answer.body, { token: String, data: { organizationId: host.body.data.organizationId } })
  t.equal(answer.body.organizations.length, 2)
})

test('an organization that asks for it opens to nobody without', async (t) => {
  const world = await openIdentity(t)
  const { login, roleId, signup, accessChanges } = world
  const owner = await signup()
  const email = 'field@example.com'
  await owner.call('POST', '/user', {
    ...{ name: 'F', email, password: PASSWORD, roleId: await roleId(owner, 'fieldUser') },
  })
  const field = await login(email)
  await enrol(world, owner)
  accessChanges.length = 0
  const now = new Date(world.clock.now()).toISOString()
  const demanded = { requiresSecondFactor: true, secondFactorFrom: now }
  t.equal((await owner.call('PATCH', '/organization/settings', demanded)).status, 200)
  await until('the demand to be heard', () => accessChanges.some((change) => change.userId === undefined))
  const refused = { status: 403, body: { code: 'second_factor_required' } }
  for (const [method, url, body] of [
    ['GET', '/user'],
    ['PATCH', '/user', { name: 'X' }],
    ['GET', '/tasks'],
    ['GET', '/auth/my-organizations'],
    ['GET', '/auth/sessions'],
    ['POST', '/auth/refresh'],
    ['POST', '/auth/switch-organization', { organizationId: owner.body.data.organizationId, password: PASSWORD }],
  ] as const)
    t.match(await field.call(method, url, body), refused, url)
  const later = await login(email)
  t.match(await later.call('GET', '/user'), refused, 'signing in again does not help')
  t.equal((await owner.call('GET', '/user')).status, 200, 'whoever has one')
  t.match((await later.call('GET', '/auth/second-factor')).body.data, { isOn: false, isRequired: true })
  const theirs = await enrol(world, later)
  t.equal((await later.call('GET', '/user')).status, 200)
  t.equal((await later.call('DELETE', '/auth/second-factor', { password: PASSWORD, code: theirs.code() })).status, 200)
  t.match(await later.call('GET', '/user'), refused, 'taken off, nothing is open again')
  t.equal((await later.call('POST', '/auth/logout')).status, 200)
  t.equal((await owner.call('PUT', '/organization/settings', { language: 'pl' })).status, 200)
  t.equal((await (await login(email)).call('GET', '/user')).status, 200, 'no longer asked for')
})

test('only who has one demands it, and it is due a week later unless another day is named', async (t) => {
  const world = await openIdentity(t, { tokenTtlMs: 30 * DAY_MS })
  const { clock, login, roleId, signup } = world
  const owner = await signup()
  const email = `field.${owner.email}`
  await owner.call('POST', '/user', {
    ...{ name: 'F', email, password: PASSWORD, roleId: await roleId(owner, 'fieldUser') },
  })
  const demand = (body: object) => owner.call('PATCH', '/organization/settings', body)
  const lacking = { status: 409, body: { code: 'conflict', message: /second factor of your own/ } }
  t.match(await demand({ requiresSecondFactor: true }), lacking)
  t.match(await owner.call('PUT', '/organization/settings', { requiresSecondFactor: true }), lacking)
  t.match(await owner.call('PATCH', '/organization', { settings: { requiresSecondFactor: true } }), lacking)
  t.equal((await demand({ language: 'pl' })).status, 200, 'nobody is locked out')
  await enrol(world, owner)
  const week = new Date(clock.now() + 7 * DAY_MS).toISOString()
  t.match((await demand({ requiresSecondFactor: true })).body.data, { secondFactorFrom: week })
  clock.advance(DAY_MS)
  t.match((await demand({ requiresSecondFactor: true, language: 'de' })).body.data, { secondFactorFrom: week })
  const field = await login(email)
  t.equal(field.body.secondFactorDue, week, 'a login says so')
  t.match((await field.call('GET', '/auth/second-factor')).body.data, { isOn: false, isRequired: false, due: week })
  t.equal((await field.call('GET', '/user')).status, 200)
  clock.advance(6 * DAY_MS - 1)
  t.equal((await field.call('GET', '/user')).status, 200, 'until that day')
  clock.advance(1)
  t.match(await field.call('GET', '/user'), { status: 403, body: { code: 'second_factor_required' } })
  t.notOk('secondFactorDue' in (await login(email)).body)
  const day = new Date(clock.now() + 3 * DAY_MS).toISOString()
  t.match((await demand({ secondFactorFrom: Date.parse(day) })).body.data, { secondFactorFrom: day })
  t.equal((await field.call('GET', '/user')).status, 200, 'on another day')
  t.notOk('secondFactorFrom' in (await demand({ requiresSecondFactor: false })).body.data)
  t.match(await demand({ secondFactorFrom: day }), { status: 400, body: { errors: [{ path: '/secondFactorFrom' }] } })
})

test('an administrator takes it off under the rules for passwords', async (t) => {
  const world = await openIdentity(t)
  const { login, roleId, signup, call } = world
  const owner = await signup()
  const made = async (email: string, key: string) => {
    const body = { name: 'N', email, password: PASSWORD, roleId: await roleId(owner, key) }
    const { _id } = (await owner.call('POST', '/user', body)).body.data
    return { id: _id as string, session: await login(email) }
  }
  const admin = await made('admin@example.com', 'admin')
  const field = await made('field@example.com', 'fieldUser')
  const planner = await made('planner@example.com', 'planner')
  const factor = await enrol(world, field.session)
  await enrol(world, owner)
  const off = (by: typeof owner, id: string) => by.call('DELETE', `/user/${id}/second-factor`)
  t.equal((await off(planner.session, field.id)).status, 403, 'not without the permission')
  t.match(await off(admin.session, owner.body.data._id), { status: 403 }, 'not from whoever has more')
  t.equal((await off(await signup(), field.id)).status, 404, 'not from elsewhere')
  const session = async () => {
    const { challenge } = (
      await call('POST', '/auth/login', { body: { email: 'field@example.com', password: PASSWORD } })
    ).body
    const body = { challenge, code: factor.code() }
    return world.session(await call('POST', '/auth/login/second-factor', { body }), 'field@example.com')
  }
  const open = await session()
  t.equal((await off(admin.session, field.id)).status, 200)
  t.equal((await open.call('GET', '/user')).status, 401, 'their sessions end')
  t.ok((await login('field@example.com')).token)
  t.equal((await off(admin.session, field.id)).status, 200, 'once more changes nothing')
})

test('what an administrator takes off leaves other organizations closed until the person chooses a password', async (t) => {
  const world = await openIdentity(t)
  const { login, roleId, signup, call } = world
  const owner = await signup()
  const email = 'admin@example.com'
  const body = { name: 'A', email, password: PASSWORD, roleId: await roleId(owner, 'admin') }
  const { _id } = (await owner.call('POST', '/user', body)).body.data
  const admin = await login(email)
  const further = await admin.call('POST', '/organization', {
    ...{ organizationName: 'Elsewhere', hubName: 'H', hubLat: 1, hubLng: 1 },
  })
  const there = world.session(further, email)
  const { organizationId } = further.body.data
  await enrol(world, there)
  t.equal((await owner.call('DELETE', `/user/${_id}/second-factor`)).status, 200)
  t.equal((await there.call('GET', '/user')).status, 401)
  const elsewhere = { email, password: PASSWORD, organizationId }
  t.equal((await call('POST', '/auth/login', { body: elsewhere })).status, 401)
  // Whoever signs in here may be the administrator: a factor that they set up does not outlive the owner's link.
  await enrol(world, await login(email))
  const token = await issuedToken(world, email, 'reopening')
  t.equal((await call('POST', '/auth/reset-password', { body: { token, password: NEW } })).status, 200)
  t.ok((await call('POST', '/auth/login', { body: { ...elsewhere, password: NEW } })).body.token)
  const host = await signup()
  const invited = await host.call('POST', '/user/invite', { email, roleId: await roleId(host, 'planner') })
  t.match(await host.call('DELETE', `/user/${invited.body.data._id}/second-factor`), { status: 403 }, 'not the origin')
})

test('neither the secret nor a recovery code stands in the log or in a table in clear', async (t) => {
  const { factor, log, tables, projections, first, second } = await open(t)
  await second((await first()).body.challenge, factor.recoveryCodes[0])
  const words = [factor.secret, ...factor.recoveryCodes, ...factor.recoveryCodes.map((code) => code.replace('-', ''))]
  const abort = new AbortController()
  let events = 0
  for await (const batch of log.follow({ prefixes: [''] }, undefined, abort.signal)) {
    for (const { data, metadata } of batch.events) {
      const text = `${Buffer.from(data).toString()} ${JSON.stringify(metadata)}`
      events++
      for (const word of words) t.notOk(text.includes(word))
    }
    if (batch.caughtUp) break
  }
  t.ok(events > 10)
  for (const { name } of projections.flatMap((one) => one.tables))
    for await (const { row } of tables.scanAll(name))
      for (const word of words) t.notOk(JSON.stringify(row).includes(word))
})
