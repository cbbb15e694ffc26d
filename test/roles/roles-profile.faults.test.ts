import { test } from 'tap'
import { folderOf } from '../support/folder-of.ts'
import { openHaproxy, withoutHaproxy } from '../support/haproxy.ts'
import { tracksOf } from '../support/real-day.ts'
import { withoutRedis } from '../support/redis-server.ts'
import { METRICS_TOKEN, openRoleProcesses } from '../support/role-processes.ts'
import { sendThrough } from '../support/send-through.ts'
import { call, until } from '../support/service.ts'
import { beginDay, checkDay, checkRevoked } from '../support/stream-checks.ts'
import { watchPositions } from '../support/watch-positions.ts'

const FIXES = 400

test('the processes of the profile `roles` behind its HAProxy are one service, also while one after the other is stopped', {
  skip: withoutRedis || withoutHaproxy,
  timeout: 900_000,
}, async (t) => {
  const folder = folderOf(t)
  const processes = await openRoleProcesses(t, folder)
  const proxy = await openHaproxy(t, folder, (name) => processes.get(name).port)
  const isServed = async (path: string): Promise<boolean> =>
    (await call(proxy, 'GET', path).catch(() => undefined))?.status === 200
  await until('HAProxy to know the API', () => isServed('//readyz'))

  const begun = await beginDay(t, proxy, FIXES)
  const { day, setting, token, revoked } = begun
  const watching = [
    await watchPositions(processes.get('live-1'), token),
    await watchPositions(processes.get('live-2'), token),
  ]
  const sender = sendThrough(() => proxy, setting.ingestKey, day.fixes)
  const third = (part: number) =>
    until(`${part} thirds of the points`, () => sender.isOver || sender.acknowledged >= (part * FIXES) / 3)

  await third(1)
  t.equal(await processes.get('ingress-1').stop(), 0, 'an ingress process stops in order under the senders')
  processes.running.delete('ingress-1')
  await third(2)
  await processes.start('ingress-1')
  t.equal(await processes.get('ingress-2').stop(), 0)
  processes.running.delete('ingress-2')
  await sender.ended
  t.equal(sender.acknowledged, day.fixes.length, 'all was acknowledged through whichever was there')
  await processes.start('ingress-2')

  t.equal(await processes.get('live-1').stop(), 0)
  processes.running.delete('live-1')
  watching[0] = await watchPositions(proxy, token)

  await checkDay(t, proxy, begun)
  const { data } = (await call(proxy, 'GET', '/live-positions', { token })).json
  t.equal(data.length, tracksOf(day.fixes).size, 'each tracker has a position')
  for (const { newest, close } of watching) {
    await until('live positions', () =>
      (data as { trackerId: string; recordedAt: string }[]).every(
        ({ trackerId, recordedAt }) => newest.get(trackerId)?.recordedAt === recordedAt,
      ),
    )
    close()
  }
  await checkRevoked(t, proxy, revoked)

  t.equal(
    (await call(proxy, 'GET', '//metrics', { token: METRICS_TOKEN })).status,
    404,
    'metrics are not shown outside',
  )
  for (const [name, service] of processes.running) {
    const metrics = await call(service, 'GET', '//metrics', { token: METRICS_TOKEN })
    t.match(metrics.text, /^waymark_engine_up\{engine="files"\} 1$/m, `Prometheus reads ${name}`)
  }
  t.equal(await processes.get('api').stop(), 0)
  processes.running.delete('api')
  const none = await call(proxy, 'GET', '/trackers', { token })
  t.match(none, { status: 503, headers: { 'retry-after': '1' }, json: { status: false, code: 'overloaded' } })
  t.equal(await proxy.stop(), 0, 'HAProxy ends by itself once nothing is open')
})
