import { spawnSync } from 'node:child_process'
import { chmodSync, chownSync, copyFileSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { ask, call, signUp, startService, type Service } from '../support/service.ts'
import { folderOf } from '../support/folder-of.ts'

const NOBODY = 65_534

const waymark = (args: readonly string[], user?: number): { code: number | null; out: string; error: string } => {
  const { status, stdout, stderr } = spawnSync(process.execPath, ['dist/src/main.js', ...args], {
    encoding: 'utf8',
    timeout: 900_000,
    ...(user !== undefined && { uid: user, gid: user }),
  })
  return { code: status, out: stdout, error: stderr }
}

const kidOf = (token: string): string => JSON.parse(Buffer.from(token.split('.')[0], 'base64url').toString()).kid
const fileOf = (data: string): { tokenKeys: { kid: string; verifiesUntil?: number }[] } =>
  JSON.parse(readFileSync(join(data, 'keys.json'), 'utf8'))
const statusOf = async (service: Service, token: string): Promise<number> =>
  (await call(service, 'GET', '/user', { token })).status

test('the token key is rotated in a running service and alone; who is signed in stays so', {
  timeout: 900_000,
}, async (t) => {
  const data = folderOf(t)
  let service = await startService(data)
  t.teardown(() => service.kill())
  const owner = await signUp(service)
  const login = async (): Promise<string> =>
    (await ask(service, 'POST', '/auth/login', { body: { email: owner.email, password: owner.password } })).token
  const first = owner.token

  const rotated = waymark(['doctor', '--rotate-token-key', '--data', data])
  t.equal(rotated.code, 0, rotated.error)
  t.match(rotated.out, new RegExp(`those of key ${kidOf(first)} are valid until`))
  const second = await login()
  t.not(kidOf(second), kidOf(first))
  t.match(rotated.out, `signed with key ${kidOf(second)}`)
  t.same(
    fileOf(data).tokenKeys.map(({ kid }) => kid),
    [kidOf(second), kidOf(first)],
  )
  const left = (fileOf(data).tokenKeys[1].verifiesUntil ?? 0) - Date.now()
  t.ok(left > 23 * 3_600_000 && left <= 24 * 3_600_000, 'for --token-ttl')
  t.equal(statSync(join(data, 'keys.json')).mode & 0o777, 0o600)
  for (const token of [first, second]) t.equal(await statusOf(service, token), 200)
  t.equal(await service.stop(), 0)

  const alone = waymark(['doctor', '--rotate-token-key', '--data', data, '--token-ttl', '2h'])
  t.equal(alone.code, 0, alone.error)
  t.equal(fileOf(data).tokenKeys.length, 3)
  service = await startService(data)
  const third = await login()
  t.match(alone.out, `signed with key ${kidOf(third)}`)
  for (const token of [first, second, third]) t.equal(await statusOf(service, token), 200, 'after a restart')
  t.equal(await service.stop(), 0)

  // What was signed with the keys before has ended.
  const file = fileOf(data)
  const ended = file.tokenKeys.map((key) =>
    key.verifiesUntil === undefined ? key : { ...key, verifiesUntil: Date.now() - 1 },
  )
  writeFileSync(join(data, 'keys.json'), JSON.stringify({ ...file, tokenKeys: ended }))
  service = await startService(data)
  t.same(
    fileOf(data).tokenKeys.map(({ kid }) => kid),
    [kidOf(third)],
    'the keys have left the file',
  )
  t.same(
    [await statusOf(service, first), await statusOf(service, second), await statusOf(service, third)],
    [401, 401, 200],
  )
  t.equal(await service.stop(), 0)

  const none = waymark(['doctor', '--rotate-token-key', '--data', join(data, 'elsewhere')])
  t.match(none, { code: 2, error: /^there is no keyring at [^\n]*\n$/ })
})

test('a keyring that cannot be written says so and stays as it is', async (t) => {
  // Nothing is read-only for the superuser.
  const user = process.getuid?.() === 0 ? NOBODY : undefined
  if (waymark(['help'], user).code !== 0)
    return void t.pass('as another user', { skip: 'another user cannot run the command here' })
  const data = folderOf(t)
  chmodSync(data, 0o755) // the other user has to get into it
  const made = join(data, 'made')
  mkdirSync(made)
  const service = await startService(made)
  await service.stop()
  const secret = join(data, 'secret')
  mkdirSync(secret)
  const keys = join(secret, 'keys.json')
  copyFileSync(join(made, 'keys.json'), keys)
  if (user !== undefined) chownSync(keys, user, user)
  const before = readFileSync(keys)
  chmodSync(secret, 0o555)
  t.teardown(() => chmodSync(secret, 0o755))
  for (const mode of [0o600, 0o400]) {
    chmodSync(keys, mode)
    // The test runner adds lines of its own where it cannot write as the other user either.
    t.match(waymark(['doctor', '--rotate-token-key', '--data', data, '--keys', keys], user), {
      code: 2,
      out: '',
      error: /^the keyring .*keys\.json cannot be written \(E[A-Z]+\), as a secret .*read-only[^\n]*\n/,
    })
    t.same(readFileSync(keys), before)
  }
})
