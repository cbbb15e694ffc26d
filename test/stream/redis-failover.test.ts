import { test } from 'tap'
import { askControl } from '../../src/cli/control-socket.ts'
import { folderOf } from '../support/folder-of.ts'
import { realDay } from '../support/real-day.ts'
import { openRedisCluster } from '../support/redis-cluster.ts'
import { hasRedis } from '../support/redis-server.ts'
import { type Sender, sendThrough } from '../support/send-through.ts'
import { ask, call, signUp, startService, until } from '../support/service.ts'
import { checkDeliveries, checkHistory, checkTransitions, prepare } from '../support/stream-checks.ts'
import { openReceiver } from '../support/webhook-receiver.ts'

const FIXES = 400
const BALLAST_BYTES = 24_000_000

test('a master of the cluster dies under load with writes that its replica lacks: tables equal a fresh replay', {
  skip: hasRedis() ? false : 'redis-server is not installed (apt-get install redis-server)',
  timeout: 240_000,
}, async (t) => {
  const folder = folderOf(t)
  const cluster = await openRedisCluster(folder)
  const flags = ['--tables', cluster.url, '--webhook-schedule', '1s,1s,2s,2s,5s,5s,5s']
  const service = await startService(`${folder}/data`, flags)
  let sender: Sender | undefined
  t.teardown(async () => {
    sender?.stop()
    await service.kill()
    await cluster.close()
  })
  const day = await realDay(t, FIXES, Date.now())
  const receiver = await openReceiver(t)
  const { token, email, password, organizationId } = await signUp(service)
  const setting = await prepare(service, token, day, receiver)
  const revoked = (await ask(service, 'POST', '/auth/login', { body: { email, password } })).token
  await ask(service, 'POST', '/auth/logout', { token: revoked })

  // The one that has the organization's rows.
  const place = `wm:{o:${organizationId}}`
  const master = await cluster.masterOf(place)
  const replica = cluster.servers[cluster.servers.indexOf(master) + 3]
  sender = sendThrough(() => service, setting.ingestKey, day.fixes)
  await until('points', () => sender!.acknowledged > 0)
  replica.process.kill('SIGSTOP')
  // More than sockets hold for it: what is written from now on dies with the master.
  await cluster.ask(master, 'SET', `${place}:ballast`, 'x'.repeat(BALLAST_BYTES))
  const reached = sender.acknowledged
  await until('points that no replica has', () => sender!.acknowledged > reached || sender!.isOver)
  await master.kill('SIGKILL')
  replica.process.kill('SIGCONT')
  await until('the owner to be let in', async () => {
    const [own, other] = [
      await call(service, 'GET', '/user', { token }),
      await call(service, 'GET', '/user', { token: revoked }),
    ]
    t.not(other.status, 200)
    return own.status === 200
  })
  await sender.ended
  await until('to be ready', async () => (await fetch(`${service.url}/readyz`)).status === 200)
  t.equal((await call(service, 'GET', '/user', { token: revoked })).status, 401)
  const trackers = await checkHistory(t, service, setting, day)
  const transitions = await checkTransitions(t, service, setting, day, trackers)
  await checkDeliveries(t, receiver, transitions)
  for (const name of ['directory', 'access', 'automations', 'latest-position', 'matcher']) {
    const answer = await askControl(`${folder}/data`, { command: 'rebuild', name })
    t.match(
      answer,
      { ok: true, report: { differing: 0 } },
      `${name} equals a fresh replay: ${answer?.error ?? 'rebuilt'}`,
    )
  }
})
