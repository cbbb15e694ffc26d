import { test, type Test } from 'tap'
import { PasswordStrength } from '../../../src/features/identity/passwords/password-strength.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { issuedToken, openIdentity, PASSWORD } from '../../support/open-identity.ts'

const NAMES = ['Zofia Wiśniewska', 'zofia.w@przewozy-krakow.example', 'Green Couriers']
const WEAK = ['password', '        ', 'Passw0rd!', '12345678', 'aaaaaaaaaaaa', 'qwertyuiop', 'abcdefgh', 'changeme1']
const PERSONAL = ['wisniewska', 'Wiśniewska1', 'zofia wiśniewska', 'przewozy', 'greencouriers', 'Green Couriers']
/** Each word more multiplies the guesses that the library counts. */
const PERSONAL_AND_YEARS = ['wisniewskazofia1990', 'Zofia-Couriers-2026', 'GreenZofiaGreen1!']
const STRONG = [
  PASSWORD,
  'correct horse battery staple',
  'żółw-i-kaktus-na-rowerze',
  'kX9!vq2Lm#',
  'a'.repeat(60) + PASSWORD,
  'zofia-83746501924',
  'zofia-kaktus-1990-rower',
]
const refused = {
  status: 400,
  body: { code: 'invalid', errors: [{ path: '/password', message: /easy to guess: it .*\. Take several words/ }] },
}

const openStrength = (t: Test) => {
  const clock = new FakeClock()
  const strength = new PasswordStrength(clock)
  t.teardown(() => strength.close())
  return { clock, strength }
}

/** Everything of identity, with passwords judged as they are by the service. */
const open = async (t: Test) => {
  const world = await openIdentity(t)
  const { context, clock } = world
  const weak = context.strength
  const strength = new PasswordStrength(clock)
  t.teardown(() => strength.close())
  const judge = () => Object.assign(context, { strength })
  judge()
  return { ...world, judge, judgeNot: () => Object.assign(context, { strength: weak }) }
}

test('a password that is easy to guess is refused with the reason, others are taken', async (t) => {
  const { strength } = openStrength(t)
  for (const password of [...WEAK, ...PERSONAL, ...PERSONAL_AND_YEARS])
    await t.rejects(
      strength.assertStrong(password, NAMES, 'somewhere'),
      { code: 'invalid', message: /easy to guess/ },
      password,
    )
  for (const password of STRONG) await t.resolves(strength.assertStrong(password, NAMES, 'somewhere'), password)
  await t.rejects(strength.assertStrong('greencouriers', NAMES, 'somewhere'), {
    message: /your name, your address or your organ/,
  })
  await t.resolves(strength.assertStrong('przewozy-2-lamp', [], 'somewhere'), 'what is a name to nobody')
})

test('judging holds nobody up: neither its dictionaries nor long passwords, and many at a time are refused', async (t) => {
  const { strength, clock } = openStrength(t)
  const random = Array.from({ length: 200 }, (_, i) => String.fromCharCode(33 + ((i * i * 31 + i * 7) % 90))).join('')
  const before = performance.eventLoopUtilization()
  await strength.assertStrong(random, NAMES, 'somewhere')
  t.ok(performance.eventLoopUtilization(before).active < 200, 'the thread of requests is free meanwhile')
  const outcomes = await Promise.allSettled(
    Array.from({ length: 80 }, () => strength.assertStrong(PASSWORD, [], 'somewhere')),
  )
  t.match(
    outcomes.filter(({ status }) => status === 'rejected').map((outcome) => outcome),
    Array.from({ length: 15 }, () => ({ reason: { code: 'overloaded', status: 503 } })),
  )
  const others = Array.from({ length: 80 }, () => strength.assertStrong(PASSWORD, [], 'a flood').catch(() => undefined))
  await t.resolves(strength.assertStrong(PASSWORD, [], 'elsewhere'), 'a flood from one place refuses nobody else')
  await Promise.all(others)
  clock.advance(60_000)
  await t.resolves(strength.assertStrong(PASSWORD, [], 'somewhere'), 'a thread that idled is replaced')
})

test('every way to a password refuses a weak one, and a link that was given one is still good', async (t) => {
  const world = await open(t)
  const { call, signup, roleId } = world
  const signUp = {
    name: 'Ada',
    email: 'x@example.com',
    organizationName: 'Przewozy',
    hubName: 'M',
    hubLat: 1,
    hubLng: 2,
  }
  t.match(await call('POST', '/auth/signup', { body: { ...signUp, password: 'przewozy' } }), refused)
  const owner = await signup({ organizationName: 'Przewozy' })
  const person = { name: 'P', email: 'p@example.com', roleId: await roleId(owner, 'planner') }
  t.match(await owner.call('POST', '/user', { ...person, password: 'password' }), refused)
  const made = await owner.call('POST', '/user', { ...person, password: PASSWORD })
  const path = `/user/${made.body.data._id}`
  t.match(await owner.call('PATCH', path, { password: 'przewozy' }), refused)
  t.match(await owner.call('PUT', path, { ...person, password: 'password' }), refused)
  t.match(await owner.call('PATCH', '/user', { password: 'przewozy', currentPassword: PASSWORD }), refused)
  const byLink = async (url: string, email: string, kind: Parameters<typeof issuedToken>[2]) => {
    const token = await issuedToken(world, email, kind)
    t.match(await call('POST', url, { body: { token, password: 'przewozy' } }), refused, url)
    t.match(await call('POST', url, { body: { token, password: `${PASSWORD}-2` } }), { status: 200 }, url)
  }
  t.equal((await owner.call('PATCH', path, { password: `${PASSWORD}-3` })).status, 200)
  await byLink('/auth/verify-email', owner.email, 'verification')
  await byLink('/auth/reset-password', person.email, 'reopening')
  const back = await world.login(owner.email, `${PASSWORD}-2`)
  await back.call('POST', '/user/invite', { ...person, email: 'i@example.com' })
  await byLink('/auth/accept-invitation', 'i@example.com', 'invitation')
})

test('a weak password from before goes on signing in', async (t) => {
  const { signup, login, judge, judgeNot } = await open(t)
  judgeNot()
  const { email } = await signup({ password: 'password' })
  judge()
  t.match((await login(email, 'password')).body, { token: String })
})
