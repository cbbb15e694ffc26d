import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { test } from 'tap'
import { folderOf } from '../support/folder-of.ts'
import { mailsIn } from '../support/read-mail.ts'
import { codeAt } from '../support/code-at.ts'
import { call, signUp, startService, until } from '../support/service.ts'

const run = promisify(execFile)
const NEW = 'Another-horse-8-battery'

test('whoever runs the installation lets an owner in who is locked out', { timeout: 900_000 }, async (t) => {
  const service = await startService(folderOf(t))
  t.teardown(() => service.kill())
  const waymark = (...args: string[]) =>
    run(process.execPath, ['dist/src/main.js', 'reset-password', ...args, '--data', service.data])
  const { token, email, password } = await signUp(service)
  const { stdout } = await waymark(email.toUpperCase())
  const secret = new RegExp(`^${service.url}/reset-password\\?token=([\\w-]+)\n`).exec(stdout)?.[1]
  t.ok(secret, stdout)
  const reset = () => call(service, 'POST', '/auth/reset-password', { body: { token: secret, password: NEW } })
  t.equal((await reset()).status, 200)
  t.equal((await reset()).status, 400, 'once')
  t.equal((await call(service, 'GET', '/user', { token })).status, 401, 'sessions end')
  const login = (pass: string) => call(service, 'POST', '/auth/login', { body: { email, password: pass } })
  t.equal((await login(password)).status, 401)
  t.equal((await login(NEW)).status, 200)
  await until('the mail of the signup', () => mailsIn(join(service.data, 'mail')).length > 0)
  t.notOk(
    mailsIn(join(service.data, 'mail')).some(({ text }) => text.includes('reset-password')),
    'nothing is mailed',
  )

  const { token: fresh } = (await login(NEW)).json
  const begun = await call(service, 'POST', '/auth/second-factor', { token: fresh, body: { password: NEW } })
  const code = codeAt(begun.json.data.secret, Date.now())
  t.equal((await call(service, 'POST', '/auth/second-factor/confirm', { token: fresh, body: { code } })).status, 200)
  const setBy = async (...args: string[]): Promise<void> => {
    const link = /token=([\w-]+)\n/.exec((await waymark(email, ...args)).stdout)?.[1]
    const body = { token: link, password: NEW }
    t.equal((await call(service, 'POST', '/auth/reset-password', { body })).status, 200)
  }
  await setBy()
  t.match((await login(NEW)).json, { challenge: String }, 'the link alone leaves the second factor on')
  await setBy('--second-factor')
  t.match((await login(NEW)).json, { token: String })

  await t.rejects(waymark('nobody@example.com'), { code: 2, stderr: 'nobody has the address nobody@example.com\n' })
  await t.rejects(waymark(), { code: 2, stderr: /name one e-mail/ })
  await service.stop()
  await t.rejects(waymark(email), { code: 2, stderr: /no service runs on/ })
})
