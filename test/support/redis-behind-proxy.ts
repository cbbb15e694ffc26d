import type { Test } from 'tap'
import { openRedisTables } from '../../src/engines/redis-tables/redis-tables.ts'
import { folderOf } from './folder-of.ts'
import { openClient, openRedisServer } from './redis-server.ts'
import { TcpProxy } from './tcp-proxy.ts'

/** Tables on a server of their own that are reached through a proxy, and a client beside it. */
export const redisBehindProxy = async (t: Test, deadlineMs?: number) => {
  const server = await openRedisServer(folderOf(t))
  const proxy = await TcpProxy.open(server.port)
  const admin = await openClient(server.url)
  const tables = await openRedisTables({ url: `redis://127.0.0.1:${proxy.port}`, ...(deadlineMs && { deadlineMs }) })
  t.teardown(async () => {
    await tables.close()
    admin.destroy()
    await proxy.close()
    await server.kill('SIGKILL')
  })
  return { tables, admin, proxy }
}
