import { randomUUID } from 'node:crypto'
import { type Test, test } from 'tap'
import { createClient } from 'redis'
import { folderOf } from '../support/folder-of.ts'
import { openRedisServer, withoutRedis } from '../support/redis-server.ts'
import { type Sender, sendThrough } from '../support/send-through.ts'
import { allPages, call, type Service, startService, until } from '../support/service.ts'
import { beginDay, checkDay, checkRebuilt } from '../support/stream-checks.ts'

const FIXES = 800

/** Calls with a token again and again, and counts how it is answered. */
const hammer = (service: Service, token: string) => {
  const seen = new Map<number, number>()
  let isOver = false
  const calling = (async () => {
    while (!isOver) {
      const { status } = await call(service, 'GET', '/user', { token })
      seen.set(status, (seen.get(status) ?? 0) + 1)
    }
  })()
  const end = async (): Promise<void> => {
    isOver = true
    await calling
  }
  return { seen, end }
}

/** Creates something of several kinds under keys; answers what repeats each request and holds it to the first answer. */
const createUnderKeys = async (t: Test, service: Service, token: string) => {
  const email = `${randomUUID()}@example.com`
  const signup = { name: 'Eve', email, password: 'Correct-horse-7-battery', organizationName: 'Repeated' }
  const office = { hubName: 'Main', hubLat: 52.2, hubLng: 21 }
  const requests = [
    ['/hub', { token, body: { name: 'Repeated', lat: 1, lng: 2 } }],
    ['/geofence-group', { token, body: { name: 'Repeated' } }],
    ['/tracker', { token, body: { name: 'Repeated', externalId: 'repeated' } }],
    ['/auth/signup', { body: { ...signup, ...office } }],
  ] as const
  const headers = { 'idempotency-key': randomUUID() }
  const send = async (again: boolean) => {
    const answers: [string, number, string][] = []
    for (const [path, request] of requests) {
      let answer = await call(service, 'POST', path, { ...request, headers })
      // What the log says of keys is being read.
      if (again)
        await until(
          path,
          async () => (answer = await call(service, 'POST', path, { ...request, headers })).status < 500,
        )
      answers.push([path, answer.status, answer.json.data._id])
    }
    return answers
  }
  const first = await send(false)
  return async (): Promise<void> => {
    t.same(await send(true), first, 'a repeat under a key that Redis forgot answers what is there')
    for (const list of ['/hubs', '/geofence-groups', '/trackers']) {
      await until(list, async () => (await call(service, 'GET', list, { token })).status === 200)
      const named = (await allPages(service, list, token)).filter(({ name }) => name === 'Repeated')
      t.equal(named.length, 1, `${list} has one`)
    }
    const other = await call(service, 'POST', '/hub', { token, headers, body: { name: 'Another', lat: 1, lng: 2 } })
    t.match(other, { status: 422, json: { code: 'key_reused' } })
  }
}

test('Redis is flushed under load: nobody is let in meanwhile, all comes back from the log by itself', {
  skip: withoutRedis,
  timeout: 900_000,
}, async (t) => {
  const folder = folderOf(t)
  const redis = await openRedisServer(folder)
  const admin = createClient({ url: redis.url })
  admin.on('error', () => undefined)
  await admin.connect()
  const flags = ['--tables', redis.url, '--webhook-schedule', '1s,1s,2s,2s,5s,5s,5s']
  const service = await startService(`${folder}/data`, flags)
  let sender: Sender | undefined
  t.teardown(async () => {
    sender?.stop()
    await service.kill()
    admin.destroy()
    await redis.kill('SIGKILL')
  })
  const begun = await beginDay(t, service, FIXES)
  const { token, day, setting, revoked } = begun
  const status = async (path: string): Promise<number> => (await fetch(`${service.url}${path}`)).status

  const repeat = await createUnderKeys(t, service, token)
  const intruder = hammer(service, revoked)
  const owner = hammer(service, token)
  for (const [from, to] of [
    [0, 0.4],
    [0.4, 0.8],
    [0.8, 1],
  ]) {
    sender = sendThrough(() => service, setting.ingestKey, day.fixes.slice(from * FIXES, to * FIXES))
    if (to === 1) break
    await until('a point', () => sender!.acknowledged > 0)
    const refused = owner.seen.get(503) ?? 0
    await admin.flushAll()
    await until('the loss to be noticed', () => (owner.seen.get(503) ?? 0) > refused)
    // In this order: the service says that it is ready until it looked again.
    await until('the owner to be let in', async () => (await call(service, 'GET', '/user', { token })).status === 200)
    await until('to be ready', async () => (await status('/readyz')) === 200)
    await repeat()
    await sender.ended
  }
  await sender?.ended

  await Promise.all([intruder.end(), owner.end()])
  t.same([...intruder.seen.keys()].sort(), [401, 503], `a revoked token: ${[...intruder.seen]}`)
  t.same([...owner.seen.keys()].sort(), [200, 503], `a good token: ${[...owner.seen]}`)
  await checkDay(t, service, begun)
  await checkRebuilt(t, `${folder}/data`, ['directory', 'access', 'automations', 'latest-position', 'matcher'])
})
