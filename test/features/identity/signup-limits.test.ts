import { test } from 'tap'
import { Passwords } from '../../../src/features/identity/passwords/passwords.ts'
import { openIdentity, PASSWORD } from '../../support/open-identity.ts'

const HOUR_MS = 3_600_000

const bodyOf = (email: string) => ({
  ...{ name: 'Eve', email, password: PASSWORD, organizationName: 'Greedy Couriers' },
  ...{ hubName: 'Main', hubLat: 52.2, hubLng: 21 },
})

class CountedPasswords extends Passwords {
  hashed = 0
  override hash(password: string, source: string): Promise<string> {
    this.hashed++
    return super.hash(password, source)
  }
}

test('eighty connections that sign up without end leave logins of other addresses as they are', async (t) => {
  const world = await openIdentity(t, { signupsPerAddress: 1_000_000 })
  const passwords = (world.context.passwords = new CountedPasswords())
  const owner = await world.signup()
  let isOver = false
  let signUps = 0
  const loop = async (): Promise<void> => {
    while (!isOver)
      await world.call('POST', '/auth/signup', { body: bodyOf(`p${++signUps}@evil.example`), address: '10.6.6.6' })
  }
  const loops = Array.from({ length: 80 }, loop)
  const statuses: number[] = []
  for (let n = 0; n < 10; n++) {
    const body = { email: owner.email, password: PASSWORD }
    statuses.push((await world.call('POST', '/auth/login', { body, address: `10.0.0.${n}` })).status)
  }
  isOver = true
  await Promise.all(loops)
  t.same(statuses, Array(10).fill(200))
  t.ok(passwords.hashed > 60, 'while passwords were hashed')
})

test('a sign-up that is refused costs no hash: after the first, of a taken address, over the limit', async (t) => {
  const world = await openIdentity(t, { signupsPerAddress: 2 })
  const passwords = (world.context.passwords = new CountedPasswords())
  const from = (address: string, email: string) => world.call('POST', '/auth/signup', { body: bodyOf(email), address })
  t.equal((await from('10.0.0.1', 'a@example.com')).status, 200)
  const taken = await from('10.0.0.1', 'A@example.com')
  t.match(taken, { status: 409, body: { code: 'key_in_use', errors: [{ path: '/email' }] } })
  const over = await from('10.0.0.1', 'b@example.com')
  t.match(over, { status: 429, body: { code: 'rate_limited', message: /Too many sign-ups/ } })
  t.match(over.headers['retry-after'] ?? over.headers['Retry-After'], /^3\d\d\d$/)
  t.equal(passwords.hashed, 1)
  const elsewhere = world.over(world.log)
  elsewhere.runs.stopCarryingOn()
  t.equal(
    (await elsewhere.call('POST', '/auth/signup', { body: bodyOf('c@example.com'), address: '10.0.0.1' })).status,
    429,
  )
  t.equal((await from('10.0.0.2', 'd@example.com')).status, 200, 'another address has its own')
  world.clock.advance(HOUR_MS + 1)
  t.equal((await from('10.0.0.1', 'e@example.com')).status, 200)

  world.context.config.signup = 'first'
  passwords.hashed = 0
  const refused = await Promise.all(Array.from({ length: 80 }, (_, n) => from('10.0.0.3', `f${n}@example.com`)))
  t.ok(refused.every(({ status, body }) => status === 403 && body.code === 'not_available'))
  t.equal(passwords.hashed, 0)
})

test('one person makes so many organizations, by sign-up and by either path, also from thirty connections', async (t) => {
  const world = await openIdentity(t, { organizationsPerUser: 5 })
  const { email } = await world.signup()
  const sessions = await Promise.all(Array.from({ length: 30 }, () => world.login(email)))
  const hub = { hubName: 'Main', hubLat: 52.2, hubLng: 21 }
  const made = await Promise.all(
    sessions.map((session, n) => {
      const path = n % 2 === 0 ? '/organization' : '/auth/create-organization'
      return session.call('POST', path, { organizationName: `More ${n}`, ...hub })
    }),
  )
  t.equal(made.filter(({ status }) => status === 200).length, 4)
  const refused = made.filter(({ status }) => status !== 200)
  t.equal(refused.length, 26)
  for (const { status, body } of refused)
    t.match({ status, body }, { status: 409, body: { code: 'quota', limit: 5, used: 5, message: /5 organizations/ } })
  const last = await world.login(email)
  const { body } = await last.call('GET', '/auth/my-organizations')
  t.equal(body.data.length, 5)

  t.equal((await last.call('DELETE', '/organization', { password: PASSWORD })).status, 200)
  const again = await world.login(email)
  t.equal((await again.call('POST', '/organization', { organizationName: 'Once more', ...hub })).status, 200)
  const other = await world.signup()
  t.equal((await other.call('POST', '/organization', { organizationName: 'Others', ...hub })).status, 200)
})
