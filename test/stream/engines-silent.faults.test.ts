import { test } from 'tap'
import { ENGINES, startEngines } from '../support/engine-servers.ts'
import { openFlood } from '../support/flood.ts'
import { folderOf } from '../support/folder-of.ts'
import { MemoryWatch } from '../support/memory-watch.ts'
import { withoutRedis } from '../support/redis-server.ts'
import { type Sender, sendThrough } from '../support/send-through.ts'
import { ask, call, signUp, startService, until } from '../support/service.ts'
import { beginDay, checkDay, checkRevoked } from '../support/stream-checks.ts'

const FIXES = 150
const ASKED_AT_ONCE = 200
/** Of a stranger, two frames of almost a megabyte each. */
const CONNECTIONS = 150
/** So much of them may be held, with what V8 has yet to collect; without the bound it was 447 MB. */
const SILENT_MB_MAX = 300

test('all engines silent at once, under a flood: each is named, nothing is promised, memory is bounded, all recovers', {
  skip: withoutRedis,
  timeout: 600_000,
}, async (t) => {
  const folder = folderOf(t)
  const { flags, servers } = await startEngines(t, `${folder}/engines`)
  // A dead connection is given up after 12 s instead of 20.
  flags[1] += '&keepAliveTimeout=2000'
  const proxies = ENGINES.map((name) => servers[name].proxy)
  const service = await startService(`${folder}/data`, [...flags, '--webhook-schedule', '1s,1s,2s,2s,5s,5s,5s'])
  let sender: Sender | undefined
  t.teardown(async () => {
    sender?.stop()
    await service.kill()
  })
  const begun = await beginDay(t, service, FIXES)
  const { token, day, setting, revoked } = begun
  const stranger = await signUp(service)
  const gateway = { token: stranger.token, body: { name: 'gateway', autoCreate: true } }
  const foreign = (await ask(service, 'POST', '/ingest-key', gateway)).data.key
  const flood = await openFlood(service, foreign, CONNECTIONS)
  sender = sendThrough(() => service, setting.ingestKey, day.fixes)
  await until('points', () => sender!.acknowledged >= FIXES / 3)
  const readiness = () => call(service, 'GET', '//readyz')

  const memory = new MemoryWatch(service.process.pid)
  for (const proxy of proxies) proxy.silence()
  await until('readyz to name them all', async () => {
    const { status, json } = await readiness()
    return status === 503 && ENGINES.every((name) => json.engines?.includes(name))
  })
  const promised = sender.acknowledged
  const flooding = flood.send()
  const paths = ['/trackers', '/location-histories', '/user', '/hubs']
  const asked = Array.from({ length: ASKED_AT_ONCE }, (_, i) => call(service, 'GET', paths[i % 4], { token }))
  const writing = Array.from({ length: 20 }, () => call(service, 'POST', '/hub', { token, body: { name: 'Never' } }))
  const statuses = new Set((await Promise.all([...asked, ...writing])).map(({ status }) => status))
  t.ok(
    [...statuses].every((status) => status === 503 || status === 429 || status === 400),
    `${[...statuses]}`,
  )
  t.comment(`${((await flooding) / 2 ** 20).toFixed(0)} MB of the flood were sent`)
  memory.end(t, SILENT_MB_MAX)
  t.equal((await call(service, 'GET', '//healthz')).status, 200)
  t.ok(sender.acknowledged - promised <= 20, 'a frame that was under way, and none after it, was acknowledged')
  for (const proxy of proxies) {
    proxy.speak()
    proxy.cut()
  }
  await until('readyz', async () => (await readiness()).status === 200)
  await sender.ended
  await checkDay(t, service, begun)
  await checkRevoked(t, service, revoked)
})
