import { test } from 'tap'
import { createClient } from 'redis'
import { folderOf } from '../support/folder-of.ts'
import { MemoryWatch } from '../support/memory-watch.ts'
import { openRedisServer, withoutRedis } from '../support/redis-server.ts'
import { type Sender, sendThrough } from '../support/send-through.ts'
import { call, startService, until } from '../support/service.ts'
import { beginDay, checkDay, checkRevoked } from '../support/stream-checks.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'

const FIXES = 400
const ASKED_AT_ONCE = 300

test('Redis is silent, then slow, then begins anew without its data: requests end, readiness says so, all recovers by itself', {
  skip: withoutRedis,
  timeout: 900_000,
}, async (t) => {
  const folder = folderOf(t)
  let redis = await openRedisServer(folder)
  const proxy = await TcpProxy.open(redis.port)
  const flags = ['--tables', `redis://127.0.0.1:${proxy.port}`, '--webhook-schedule', '1s,1s,2s,2s,5s,5s,5s']
  const service = await startService(`${folder}/data`, flags)
  let sender: Sender | undefined
  t.teardown(async () => {
    sender?.stop()
    await service.kill()
    await proxy.close()
    await redis.kill('SIGKILL')
  })
  const begun = await beginDay(t, service, FIXES)
  const { token, day, setting, revoked } = begun
  const readiness = async () => {
    const answer = await fetch(`${service.url}/readyz`)
    return { status: answer.status, body: await answer.text() }
  }
  const send = (part: number): void => {
    const from = (FIXES * part) / 4
    sender = sendThrough(() => service, setting.ingestKey, day.fixes.slice(from, from + FIXES / 4))
  }

  const memory = new MemoryWatch(service.process.pid)
  send(0)
  proxy.silence()
  await until('not to be ready', async () => (await readiness()).status === 503)
  t.match((await readiness()).body, /tables/, 'what does not answer is named')
  const asked = Array.from({ length: ASKED_AT_ONCE }, () => call(service, 'GET', '/trackers', { token }))
  const statuses = new Set((await Promise.all(asked)).map(({ status }) => status))
  t.ok(
    [...statuses].every((status) => status === 503 || status === 429),
    `every request ended: ${[...statuses]}`,
  )
  t.equal((await fetch(`${service.url}/healthz`)).status, 200)
  proxy.speak()
  await until('to be ready over another connection', async () => (await readiness()).status === 200)
  t.ok(proxy.connections <= 8, `${proxy.connections} connections`)
  await sender?.ended

  send(1)
  const admin = createClient({ url: redis.url })
  admin.on('error', () => undefined)
  await admin.connect()
  await admin.sendCommand(['CLIENT', 'PAUSE', '2500', 'ALL'])
  admin.destroy()
  const paused = await call(service, 'GET', '/user', { token })
  t.ok([200, 503].includes(paused.status), 'a slow server is waited for, up to the deadline')
  await sender?.ended

  send(2)
  await redis.kill('SIGKILL')
  t.equal((await call(service, 'GET', '/user', { token })).status, 503)
  await until('not to be ready', async () => (await readiness()).status === 503)
  redis = await openRedisServer(folder)
  proxy.target = redis.port
  await until('the owner to be let in', async () => {
    t.not((await call(service, 'GET', '/user', { token: revoked })).status, 200, 'a token that was revoked stays so')
    return (await call(service, 'GET', '/user', { token })).status === 200
  })
  await until('to be ready', async () => (await readiness()).status === 200)
  await sender?.ended
  send(3)
  await sender?.ended
  await checkRevoked(t, service, revoked)
  memory.end(t)
  await checkDay(t, service, begun)
})
