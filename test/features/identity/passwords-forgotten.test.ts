import { test } from 'tap'
import { decodeJson } from '../../../src/kernel/event.ts'
import { openMailbox } from '../../support/mailbox.ts'
import { openIdentity, PASSWORD } from '../../support/open-identity.ts'

const HOUR_MS = 3_600_000
const NEW = 'Another-horse-8-battery'

test('a forgotten password: the same answer for everybody, a link for whoever has an account', async (t) => {
  const world = await openIdentity(t)
  const { signup, call, login, clock } = world
  const { token, next, rest } = await openMailbox(t, world)
  const ada = await signup({ email: 'Ada@Example.com' })
  await next('Ada@Example.com')
  const forgot = (email: string) => call('POST', '/auth/forgot-password', { body: { email } })
  t.same(await forgot('ada@example.com'), await forgot('nobody@example.com'))
  const mail = await next('Ada@Example.com')
  t.match(mail.text, 'https://map.example.com/reset-password?token=')
  t.same(await rest(), [], 'nobody else is written to')

  const first = /token=([\w-]+)/.exec(mail.text)?.[1]
  await forgot('ADA@example.com')
  const second = await token('Ada@Example.com')
  const reset = (body: object) => call('POST', '/auth/reset-password', { body })
  t.equal((await reset({ token: first, password: NEW })).status, 400, 'a newer one ends it')
  t.match(await reset({ token: second, password: 'short' }), { status: 400, body: { errors: [{ path: '/password' }] } })
  t.equal((await reset({ token: second, password: NEW })).status, 200)
  t.match(await reset({ token: second, password: PASSWORD }), { status: 400, body: { errors: [{ path: '/token' }] } })
  await t.rejects(login(ada.email), /401/)
  await login(ada.email, NEW)

  await forgot('ada@example.com')
  const late = await token('Ada@Example.com')
  clock.advance(HOUR_MS)
  t.equal((await reset({ token: late, password: PASSWORD })).status, 400, 'it holds an hour')
})

test('nobody is mailed without end, and is not told', async (t) => {
  const world = await openIdentity(t)
  const { signup, call } = world
  const { rest, next } = await openMailbox(t, world)
  await signup({ email: 'ada@example.com' })
  await next('ada@example.com')
  const answers = new Set<number>()
  for (let i = 0; i < 30; i++)
    answers.add(
      (await call('POST', '/auth/forgot-password', { body: { email: 'ada@example.com' }, address: `10.0.0.${i}` }))
        .status,
    )
  t.same([...answers], [200])
  t.ok((await rest()).length <= 10, 'ten an hour')
  let last = 0
  for (let i = 0; i < 301; i++)
    last = (await call('POST', '/auth/forgot-password', { body: { email: `a${i}@example.com` }, address: '10.1.1.1' }))
      .status
  t.equal(last, 429, 'from one address')
})

test('a changed e-mail takes effect when the new address follows its link', async (t) => {
  const world = await openIdentity(t)
  const { signup, call, login } = world
  const { token, next, rest } = await openMailbox(t, world)
  const ada = await signup({ email: 'ada@example.com' })
  const bob = await signup({ email: 'bob@example.com' })
  const verify = (body: object) => call('POST', '/auth/verify-email', { body })
  t.match(await verify({ token: await token(ada.email) }), { status: 400, body: { errors: [{ path: '/password' }] } })
  await next(bob.email)
  const change = (body: object) => ada.call('PATCH', '/user', body)
  t.match(await change({ email: 'new@example.com' }), { status: 400, body: { errors: [{ path: '/currentPassword' }] } })
  t.equal((await change({ email: 'new@example.com', currentPassword: 'wrong' })).status, 403)
  t.match(await change({ email: bob.email, currentPassword: PASSWORD }), { status: 409, body: { code: 'key_in_use' } })
  t.match(await change({ email: 'new@example.com', currentPassword: PASSWORD, name: 'Ada N' }), {
    status: 200,
    body: { data: { email: 'ada@example.com', pendingEmail: 'new@example.com', name: 'Ada N' } },
  })
  t.match((await next(ada.email)).text, 'new@example.com', 'the old one is told')
  const link = await token('new@example.com')
  await login('ada@example.com')
  t.match(await verify({ token: link }), { status: 400 }, 'unverified as they are, they set a password')
  t.equal((await verify({ token: link, password: NEW })).status, 200)
  await t.rejects(login('ada@example.com', NEW), /401/)
  const again = await login('new@example.com', NEW)
  const me = (await again.call('GET', '/user')).body.data
  t.match(me, { email: 'new@example.com', name: 'Ada N' })
  t.equal(me.pendingEmail, undefined)
  t.equal((await verify({ token: link, password: NEW })).status, 400, 'once')
  t.same(await rest(), [])

  await again.call('PATCH', '/user', { email: 'third@example.com', currentPassword: NEW })
  t.equal((await verify({ token: await token('third@example.com') })).status, 200, 'verified, they need no password')
  await login('third@example.com', NEW)
})

test('an address that somebody took meanwhile stays theirs', async (t) => {
  const world = await openIdentity(t)
  const { signup, call, login } = world
  const { token, next } = await openMailbox(t, world)
  const ada = await signup({ email: 'ada@example.com' })
  await next(ada.email)
  await ada.call('PATCH', '/user', { email: 'new@example.com', currentPassword: PASSWORD })
  const link = await token('new@example.com')
  await signup({ email: 'new@example.com' })
  t.match(await call('POST', '/auth/verify-email', { body: { token: link, password: NEW } }), {
    status: 409,
    body: { code: 'key_in_use' },
  })
  await login('ada@example.com')
})

test('no secret and no link stands in the log, and what was typed is sealed', async (t) => {
  const world = await openIdentity(t)
  const { signup, call, roleId, log } = world
  const { token, rest } = await openMailbox(t, world)
  const ada = await signup({ email: 'ada@example.com' })
  const tokens = [await token('ada@example.com')]
  await ada.call('POST', '/user/invite', { email: 'bob@example.com', roleId: await roleId(ada, 'planner') })
  tokens.push(await token('bob@example.com'))
  for (const email of ['ada@example.com', 'stranger@example.com'])
    await call('POST', '/auth/forgot-password', { body: { email } })
  tokens.push(await token('ada@example.com'))
  t.same(await rest(), [])
  const end = new AbortController()
  let seen = 0
  for await (const { events, caughtUp } of log.follow({ prefixes: [''] }, undefined, end.signal)) {
    for (const { data, type } of events) {
      const text = JSON.stringify(decodeJson(data))
      seen++
      for (const secret of [...tokens, ...tokens.map((one) => one.slice(-32)), 'stranger@example.com', 'token='])
        if (text.includes(secret)) t.fail(`${type} holds ${secret}`)
    }
    if (caughtUp) break
  }
  end.abort()
  t.ok(seen > 10)
})

test("an e-mail that is to be somebody's is not shown any more once its link has run out", async (t) => {
  const { signup, login, clock, roleId } = await openIdentity(t)
  const owner = await signup()
  const email = 'ada@example.com'
  const person = { name: 'Ada', email, password: PASSWORD, roleId: await roleId(owner, 'planner') }
  const { _id } = (await owner.call('POST', '/user', person)).body.data
  const change = { email: 'new@example.com', currentPassword: PASSWORD }
  t.match((await (await login(email)).call('PATCH', '/user', change)).body.data, { pendingEmail: 'new@example.com' })
  clock.advance(7 * 86_400_000 - 1_000)
  const session = await login(email)
  t.equal(session.body.data.pendingEmail, 'new@example.com')
  t.equal((await session.call('GET', '/user')).body.data.pendingEmail, 'new@example.com')
  clock.advance(2_000)
  const [own, others] = [await login(email), await login(owner.email)]
  const [listed] = (await others.call('GET', `/users?email=${email}`)).body.data
  const shown = [own.body.data, listed]
  for (const path of ['/user', `/user/${_id}`, `/user/email/${email}`])
    shown.push((await (path === '/user' ? own : others).call('GET', path)).body.data)
  for (const user of shown) {
    t.equal(user.email, email)
    t.notOk('pendingEmail' in user || 'pendingEmailUntil' in user)
  }
})
