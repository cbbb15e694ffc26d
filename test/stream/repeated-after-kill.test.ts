import { randomUUID } from 'node:crypto'
import { test } from 'tap'
import { folderOf } from '../support/folder-of.ts'
import { ask, call, signUp, startService } from '../support/service.ts'

const REQUESTS = 40

test('requests that SIGKILL cut short are completed at once by their repeats, each once', async (t) => {
  const data = folderOf(t)
  let service = await startService(data)
  t.teardown(() => service.kill())
  const { token } = await signUp(service)
  const requests = Array.from({ length: REQUESTS }, (_, i) => ({
    token,
    body: { name: `Hub ${i}`, lat: 52.2, lng: 21 },
    headers: { 'idempotency-key': randomUUID() },
  }))
  const send = (request: (typeof requests)[number]) => call(service, 'POST', '/hub', request)
  const sent = requests.map(send)
  const first = await Promise.race(sent)
  t.equal(first.status, 201)
  await service.kill()
  const answered = (await Promise.allSettled(sent)).filter(({ status }) => status === 'fulfilled')
  t.comment(`${REQUESTS - answered.length} of ${REQUESTS} had no answer`)

  service = await startService(data)
  const again = await Promise.all(requests.map(send))
  t.same(
    again.map(({ status }) => status),
    requests.map(() => 201),
  )
  const hubs = await ask(service, 'GET', '/hubs?limit=100', { token })
  t.same(
    hubs.data
      .map(({ name }: { name: string }) => name)
      .filter((name: string) => name.startsWith('Hub '))
      .sort(),
    requests.map(({ body }) => body.name).sort(),
  )
})

test('a phone that refreshed its token when SIGKILL came is not logged out', async (t) => {
  const data = folderOf(t)
  let service = await startService(data)
  t.teardown(() => service.kill())
  const { email, password } = await signUp(service)
  const logins = Array.from({ length: 20 }, () => ask(service, 'POST', '/auth/login', { body: { email, password } }))
  const requests = (await Promise.all(logins)).map(({ token }) => ({
    token: token as string,
    headers: { 'idempotency-key': randomUUID() },
  }))
  const send = (request: (typeof requests)[number]) => call(service, 'POST', '/auth/refresh', request)
  const sent = requests.map(send)
  t.equal((await Promise.race(sent)).status, 200)
  await service.kill()
  const answered = (await Promise.allSettled(sent)).filter(({ status }) => status === 'fulfilled')
  t.comment(`${requests.length - answered.length} of ${requests.length} had no answer`)

  service = await startService(data)
  for (const answer of await Promise.all(requests.map(send))) {
    t.equal(answer.status, 200)
    t.equal((await call(service, 'GET', '/user', { token: answer.json.token })).status, 200)
  }
})
