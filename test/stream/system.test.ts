import { test } from 'tap'
import { request } from 'undici'
import { mailsIn, tokenIn } from '../support/read-mail.ts'
import { ask, signUp, startService, until } from '../support/service.ts'
import { folderOf } from '../support/folder-of.ts'

test('operators see how the service is, nobody else', async (t) => {
  const service = await startService(folderOf(t), ['--staff', 'example.com', '--mail-from', 'a@example.com'])
  t.teardown(() => service.kill())
  const here = async (headers: { [name: string]: string } = {}) => {
    const answer = await request(`${service.url}/api/v3/system`, { headers })
    return { status: answer.statusCode, body: JSON.parse(await answer.body.text()) }
  }
  const { status, body } = await here()
  t.equal(status, 200, 'this machine, without a token')
  t.match(body.data, { version: /^\d+\.\d+\.\d+/, uptimeSeconds: Number, scavengesFailed: 0, deliveries: { dead: 0 } })
  t.same(
    body.data.engines.map(({ name, isUp }: { name: string; isUp: boolean }) => `${name} ${isUp}`),
    ['log true', 'tables true', 'history true', 'files true'],
  )
  t.ok(body.data.disk.freeBytes > 0 && body.data.disk.totalBytes >= body.data.disk.freeBytes)
  t.ok(body.data.consumers.some(({ consumer }: { consumer: string }) => consumer === 'directory'))
  t.equal((await here({ 'x-forwarded-for': '10.1.1.1' })).status, 401, 'a proxy on this machine')
  t.equal((await here({ host: 'map.example.com' })).status, 401, 'a page of another name that leads here')

  const { token, email, password } = await signUp(service)
  const from = (token: string, headers: { [name: string]: string } = {}) =>
    here({ authorization: `Bearer ${token}`, ...headers })
  const elsewhere = { 'x-forwarded-for': '10.1.1.1' }
  t.equal((await from(token)).status, 200, 'this machine, with a token of anybody')
  const before = await from(token, elsewhere)
  t.equal(before.status, 403, 'an address of staff that nobody has shown to be theirs', before.body)
  const linkOf = () => mailsIn(`${service.data}/mail`).find(({ headers }) => headers.to.includes(email))
  await until('the mail', () => linkOf() !== undefined)
  await ask(service, 'POST', '/auth/verify-email', { body: { token: tokenIn(linkOf()!), password } })
  // The password is new, so the token has ended.
  const { token: renewed } = await ask(service, 'POST', '/auth/login', { body: { email, password } })
  await until('an organization of staff', async () => (await from(renewed, elsewhere)).status === 200)
})
