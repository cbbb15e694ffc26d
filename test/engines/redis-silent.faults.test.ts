import { test } from 'tap'
import { openRedisTables } from '../../src/engines/redis-tables/redis-tables.ts'
import { folderOf } from '../support/folder-of.ts'
import { openRedisServer, withoutRedis } from '../support/redis-server.ts'
import { until } from '../support/service.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'
import { whenUp } from '../support/when-up.ts'

test('a connection that dies unseen is down, and another one takes its place', {
  skip: withoutRedis,
}, async (t) => {
  const server = await openRedisServer(folderOf(t))
  const proxy = await TcpProxy.open(server.port)
  // A busy machine may miss so short a deadline.
  const tables = await whenUp(() => openRedisTables({ url: `redis://127.0.0.1:${proxy.port}`, deadlineMs: 400 }))
  t.teardown(async () => {
    await tables.close()
    await proxy.close()
    await server.kill('SIGKILL')
  })
  await whenUp(() => tables.declare({ name: 'things', version: 1 }))
  await whenUp(() => tables.commit([{ table: 'things', scope: 's', id: 'a', row: { on: true } }]))
  proxy.silence()
  await t.rejects(tables.get('things', 's', 'a'), { code: 'engine_down' })
  await t.rejects(tables.ping(), { code: 'engine_down' })
  proxy.speak()
  const isThere = (): Promise<boolean> =>
    tables.get('things', 's', 'a').then(
      (row) => row?.on === true,
      () => false,
    )
  await until('an answer over another connection', isThere)
})
