import { test } from 'tap'
import { Failure } from '../../../src/kernel/errors.ts'
import { Passwords } from '../../../src/features/identity/passwords.ts'

const guard = { admit: async () => undefined, noteFailure: async () => undefined }

test('argon2id hashes, of which only the right password is the password', async (t) => {
  const passwords = new Passwords()
  const hash = await passwords.hash('correct horse')
  t.match(hash, /^\$argon2id\$v=19\$m=19456,t=2,p=1\$/)
  t.ok(await passwords.verify('correct horse', hash, guard))
  t.notOk(await passwords.verify('wrong horse', hash, guard))
  t.notOk(await passwords.verify('no password of anybody', undefined, guard), 'nobody has the decoy')
})

test('a full queue refuses, and serves again when it has emptied', async (t) => {
  const passwords = new Passwords()
  const results = await Promise.allSettled(Array.from({ length: 80 }, () => passwords.hash('correct horse')))
  const refused = results.filter((result) => result.status === 'rejected').map(({ reason }) => reason as Failure)
  t.equal(refused.length, 80 - 2 - 64)
  t.match(refused[0], { code: 'overloaded', status: 503, details: { retryAfterSeconds: 2 } })
  t.match(await passwords.hash('again'), /argon2id/)
})

test('a turn is given on when the guard refuses or counting fails', async (t) => {
  const passwords = new Passwords()
  const refusing = { ...guard, admit: () => Promise.reject(new Failure('rate_limited')) }
  const results = await Promise.allSettled(Array.from({ length: 10 }, () => passwords.verify('x', undefined, refusing)))
  t.ok(results.every((result) => result.status === 'rejected'))
  t.notOk(await passwords.verify('x', undefined, guard))
})
