import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createClient } from 'redis'
import { freePort } from './free-port.ts'
import { openRedisServer, type RedisServer } from './redis-server.ts'
import { until } from './service.ts'

const SENTINELS = 3
const DOWN_AFTER_MS = 1_000

/** A master called `main`, its replica, and three sentinels of which two decide, on loopback. */
export const openSentinels = async (folder: string) => {
  const open = async (name: string, args: string[] = []): Promise<RedisServer> => {
    mkdirSync(join(folder, name))
    return openRedisServer(join(folder, name), ['--repl-diskless-sync-delay', '0', ...args])
  }
  const master = await open('master')
  const replica = await open('replica', ['--replicaof', '127.0.0.1', String(master.port)])
  await until('the replica follows', async () => /master_link_status:up/.test(await infoOf(replica, 'replication')))
  const sentinels: RedisServer[] = []
  for (let i = 0; i < SENTINELS; i++) {
    const port = await freePort()
    const path = join(folder, `sentinel-${i}.conf`)
    const lines = [
      `sentinel monitor main 127.0.0.1 ${master.port} 2`,
      `sentinel down-after-milliseconds main ${DOWN_AFTER_MS}`,
      'sentinel failover-timeout main 3000',
    ]
    writeFileSync(path, `${lines.join('\n')}\n`)
    sentinels.push(await openRedisServer(folder, ['--sentinel'], port, path))
  }
  const knowAll = async (sentinel: RedisServer): Promise<boolean> =>
    new RegExp(`slaves=1,sentinels=${SENTINELS}`).test(await infoOf(sentinel, 'sentinel'))
  await until('sentinels know of each other', async () => (await Promise.all(sentinels.map(knowAll))).every(Boolean))
  return {
    master,
    sentinels,
    close: async (): Promise<void> => {
      await Promise.all([...sentinels, replica, master].map((server) => server.kill('SIGKILL')))
    },
  }
}

const infoOf = async ({ url }: RedisServer, section: string): Promise<string> => {
  const client = createClient({ url, RESP: 2 })
  client.on('error', () => undefined)
  await client.connect()
  try {
    return String(await client.sendCommand(['INFO', section]))
  } finally {
    client.destroy()
  }
}
