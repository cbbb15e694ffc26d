import { test } from 'tap'
import { Failure } from '../../../src/kernel/errors.ts'
import { Passwords } from '../../../src/features/identity/passwords/passwords.ts'

const guardOf = (network: string, isKnown = false) => ({
  network,
  isKnown: async () => isKnown,
  admit: async () => undefined,
  noteFailure: async () => undefined,
})

const guard = guardOf('10.0.0.1')

test('argon2id hashes, of which only the right password is the password', async (t) => {
  const passwords = new Passwords()
  const hash = await passwords.hash('correct horse', '10.0.0.1')
  t.match(hash, /^\$argon2id\$v=19\$m=19456,t=2,p=1\$/)
  t.ok(await passwords.verify('correct horse', hash, guard))
  t.notOk(await passwords.verify('wrong horse', hash, guard))
  t.notOk(await passwords.verify('no password of anybody', undefined, guard), 'nobody has the decoy')
})

test('a full queue refuses, and serves again when it has emptied', async (t) => {
  const passwords = new Passwords()
  const results = await Promise.allSettled(
    Array.from({ length: 80 }, () => passwords.hash('correct horse', '10.0.0.1')),
  )
  const refused = results.filter((result) => result.status === 'rejected').map(({ reason }) => reason as Failure)
  t.equal(refused.length, 80 - 2 - 64)
  t.match(refused[0], { code: 'overloaded', status: 503, details: { retryAfterSeconds: 2 } })
  t.match(await passwords.hash('again', '10.0.0.1'), /argon2id/)
})

test('new passwords and the logins of one network leave places to the logins of others, soon', async (t) => {
  const passwords = new Passwords()
  const hash = await passwords.hash('correct horse', '10.0.0.1')
  const order: string[] = []
  const flood = [
    ...Array.from({ length: 200 }, () => passwords.hash('many', '10.0.0.1')),
    ...Array.from({ length: 200 }, () => passwords.verify('guess', hash, guard)),
  ].map((work) =>
    work.then(
      () => order.push('flood'),
      () => undefined,
    ),
  )
  const logins = Array.from({ length: 5 }, (_, n) => passwords.verify('correct horse', hash, guardOf(`10.0.1.${n}`)))
  t.same(await Promise.all(logins.map((login) => login.finally(() => order.push('login')))), Array(5).fill(true))
  await Promise.all(flood)
  t.ok(order.lastIndexOf('login') < 30, `after ${order.lastIndexOf('login')} of ${order.length}`)
})

test('guesses from everywhere keep nobody out who logs in from where they did before', async (t) => {
  const passwords = new Passwords()
  const hash = await passwords.hash('correct horse', '10.0.0.1')
  const guesses = Array.from({ length: 200 }, (_, n) => passwords.verify('guess', hash, guardOf(`10.1.0.${n}`)))
  const settled = Promise.allSettled(guesses)
  const own = passwords.verify('correct horse', hash, guardOf('10.0.0.1', true))
  await t.rejects(passwords.verify('correct horse', hash, guardOf('10.2.0.1')), { code: 'overloaded' })
  t.ok(await own)
  await settled
})

test('a turn is given on when the guard refuses or counting fails', async (t) => {
  const passwords = new Passwords()
  const refusing = { ...guard, admit: () => Promise.reject(new Failure('rate_limited')) }
  const results = await Promise.allSettled(Array.from({ length: 10 }, () => passwords.verify('x', undefined, refusing)))
  t.ok(results.every((result) => result.status === 'rejected'))
  t.notOk(await passwords.verify('x', undefined, guard))
})
