import { test } from 'tap'
import { startProcess } from '../support/engine-servers.ts'
import { folderOf } from '../support/folder-of.ts'
import { MemoryWatch } from '../support/memory-watch.ts'
import { type Sender, sendThrough } from '../support/send-through.ts'
import { ask, call, signUp, startService, until } from '../support/service.ts'
import { beginDay, checkDay, checkRebuilt, checkRevoked } from '../support/stream-checks.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'
import { seeded } from '../support/random.ts'

const FIXES = 420
const SCRIPT = 'dist/test/support/eventstoredb/main.js'
const TABLES = ['directory', 'latest-position', 'transitions']

test('a log that is slow, cut off, silent, and killed under load: refused by name meanwhile, whole afterwards', {
  timeout: 600_000,
}, async (t) => {
  const random = seeded(23)
  const folder = folderOf(t)
  let running = await startProcess(SCRIPT, `${folder}/log`)
  const proxy = await TcpProxy.open(running.port)
  // A dead connection is given up after 12 s instead of 20.
  const url = `esdb://127.0.0.1:${proxy.port}?tls=false&keepAliveTimeout=2000`
  const service = await startService(`${folder}/data`, ['--log', url, '--webhook-schedule', '1s,1s,2s,2s,5s,5s,5s'])
  let sender: Sender | undefined
  t.teardown(async () => {
    sender?.stop()
    await service.kill()
    await proxy.close()
    running.child.kill('SIGKILL')
  })
  const begun = await beginDay(t, service, FIXES)
  const { token, day, setting, revoked } = begun
  const stranger = { token: (await signUp(service)).token, body: { name: 'gateway', autoCreate: true } }
  const foreign = (await ask(service, 'POST', '/ingest-key', stranger)).data
  sender = sendThrough(() => service, setting.ingestKey, day.fixes)
  const more = (points: number) => {
    const from = sender!.acknowledged
    return until('points', () => sender!.acknowledged >= Math.min(FIXES, from + points) || sender!.isOver)
  }
  const readiness = () => call(service, 'GET', '//readyz')
  const isReady = async (): Promise<boolean> => (await readiness()).status === 200

  await more(60)
  const memory = new MemoryWatch(service.process.pid)
  proxy.slow(500)
  await more(20)
  proxy.slow(0)

  await more(Math.floor(random() * 60))
  proxy.silence()
  const before = sender.acknowledged
  await until('readyz to name the log', async () => {
    const { status, json } = await readiness()
    return status === 503 && json.engines?.includes('log')
  })
  t.same((await readiness()).json.engines, ['log'], 'and no other engine')
  const point = { externalId: 'elsewhere', recordedAt: Date.now() - 1_000, lat: 1, lng: 1 }
  const bulk = await call(service, 'POST', '/location-history/bulk', { token: foreign.key, body: { points: [point] } })
  t.match(bulk, { status: 503, json: { code: 'engine_down' } })
  t.match(await call(service, 'POST', '/geofence-group', { token, body: { name: 'Night' } }), { status: 503 })
  t.ok(sender.acknowledged - before <= 20, 'a frame that was under way, and none after it, was acknowledged')
  proxy.speak()
  await until('readyz', isReady)

  for (let round = 0; round < 2; round++) {
    await more(20 + Math.floor(random() * 60))
    if (round === 1) proxy.cut()
    running.child.kill('SIGKILL')
    running = await startProcess(SCRIPT, `${folder}/log`)
    proxy.target = running.port
    t.comment(`killed at ${sender.acknowledged} of ${FIXES} points`)
  }
  await sender.ended
  t.equal(sender.acknowledged, day.fixes.length, 'all is acknowledged in the end')
  await until('readyz', isReady)
  memory.end(t)
  await until('the token to be good', async () => (await call(service, 'GET', '/user', { token })).status === 200)
  await checkRevoked(t, service, revoked)
  await checkDay(t, service, begun)
  await checkRebuilt(t, `${folder}/data`, TABLES)
})
