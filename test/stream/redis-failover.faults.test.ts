import { test } from 'tap'
import { folderOf } from '../support/folder-of.ts'
import { openRedisCluster } from '../support/redis-cluster.ts'
import { withoutRedis } from '../support/redis-server.ts'
import { type Sender, sendThrough } from '../support/send-through.ts'
import { call, startService, until } from '../support/service.ts'
import { beginDay, checkDay, checkRebuilt, checkRevoked } from '../support/stream-checks.ts'

const FIXES = 400
const BALLAST_BYTES = 24_000_000

test('a master of the cluster dies under load with writes that its replica lacks: tables equal a fresh replay', {
  skip: withoutRedis,
  timeout: 900_000,
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
  const begun = await beginDay(t, service, FIXES)
  const { token, organizationId, day, setting, revoked } = begun

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
  await checkRevoked(t, service, revoked)
  await checkDay(t, service, begun)
  await checkRebuilt(t, `${folder}/data`, ['directory', 'access', 'automations', 'latest-position', 'matcher'])
})
