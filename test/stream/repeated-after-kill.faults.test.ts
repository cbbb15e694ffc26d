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

test('what is told once is told by the repeat of a request that SIGKILL cut short', async (t) => {
  const data = folderOf(t)
  let service = await startService(data)
  t.teardown(() => service.kill())
  const { token, hubId } = await signUp(service)
  const automation = {
    event: 'onTaskCreated',
    automationType: 'webhook',
    automationDetails: { url: 'http://127.0.0.1:9/hook' },
    rules: { fields: {} },
  }
  const requests = Array.from({ length: REQUESTS }, (_, i) => ({
    path: ['/tracker', '/ingest-key', '/automation'][i % 3],
    options: {
      token,
      body: { name: `Thing ${i}`, ...(i % 3 === 2 ? automation : { hubId }) },
      headers: { 'idempotency-key': randomUUID() },
    },
  }))
  const send = async ({ path, options }: (typeof requests)[number]) => {
    const { status, json } = await call(service, 'POST', path, options)
    return { status, told: json.data?.deviceKey ?? json.data?.key ?? json.data?.automationDetails?.secret }
  }
  const sent = requests.map(send)
  t.equal((await Promise.race(sent)).status, 201)
  await service.kill()
  const before = await Promise.allSettled(sent)

  service = await startService(data)
  const again = await Promise.all(requests.map(send))
  t.same(
    again.map(({ status, told }) => ({ status, told: typeof told })),
    requests.map(() => ({ status: 201, told: 'string' })),
  )
  for (const [i, answer] of before.entries()) if (answer.status === 'fulfilled') t.same(again[i], answer.value)
  const points = [{ recordedAt: Date.now(), lat: 52, lng: 21 }]
  for (const { told } of again.filter((_, i) => i % 3 === 0))
    t.equal((await call(service, 'POST', '/location-history/bulk', { token: told, body: { points } })).status, 200)
})
