import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { createClient } from 'redis'
import { freePort } from './free-port.ts'
import { openRedisServer, type RedisServer } from './redis-server.ts'
import { until } from './service.ts'

const MASTERS = 3
const SLOTS = 16_384
/** A master that is silent for so long is replaced. */
const NODE_TIMEOUT_MS = 1_000

export interface RedisCluster {
  url: string
  /** Three masters, then the replica of each in the same order. */
  servers: RedisServer[]
  /** Asks one server. */
  ask(server: RedisServer, ...args: string[]): Promise<unknown>
  /** Which of the masters has the slot of a key, by what they say now. */
  masterOf(key: string): Promise<RedisServer>
  close(): Promise<void>
}

/** A real cluster of three masters with a replica each on loopback, made without waiting for a disk. */
export const openRedisCluster = async (folder: string): Promise<RedisCluster> => {
  const buses = await Promise.all(Array.from({ length: 2 * MASTERS }, freePort))
  const servers = await Promise.all(buses.map((bus, i) => openNode(join(folder, `node-${i}`), bus)))
  const ask = async (server: RedisServer, ...args: string[]): Promise<unknown> => {
    const client = createClient({ url: server.url, RESP: 2 })
    client.on('error', () => undefined)
    await client.connect()
    try {
      return await client.sendCommand(args)
    } finally {
      client.destroy()
    }
  }
  const close = async (): Promise<void> => {
    await Promise.all(servers.map((server) => server.kill('SIGKILL')))
  }
  try {
    await joinNodes(servers, buses, ask)
  } catch (error) {
    await close()
    throw error
  }
  const masterOf = async (key: string): Promise<RedisServer> => {
    const living = servers.find(({ process }) => process.exitCode === null && process.signalCode === null)!
    const slot = Number(await ask(living, 'CLUSTER', 'KEYSLOT', key))
    const ranges = (await ask(living, 'CLUSTER', 'SLOTS')) as [number, number, [string, number]][]
    const [, , [, port]] = ranges.find(([from, to]) => slot >= from && slot <= to)!
    return servers.find((server) => server.port === port)!
  }
  return { url: servers[0].url, servers, ask, masterOf, close }
}

const openNode = (folder: string, bus: number): Promise<RedisServer> => {
  mkdirSync(folder, { recursive: true })
  return openRedisServer(folder, [
    ...['--cluster-enabled', 'yes', '--cluster-port', String(bus), '--cluster-node-timeout', String(NODE_TIMEOUT_MS)],
    ...['--repl-diskless-sync', 'yes', '--repl-diskless-sync-delay', '0', '--cluster-replica-validity-factor', '0'],
  ])
}

const joinNodes = async (
  servers: readonly RedisServer[],
  buses: readonly number[],
  ask: RedisCluster['ask'],
): Promise<void> => {
  const masters = servers.slice(0, MASTERS)
  await Promise.all(
    masters.map(async (server, i) => {
      const from = Math.floor((SLOTS * i) / MASTERS)
      await ask(server, 'CLUSTER', 'ADDSLOTSRANGE', String(from), String(Math.floor((SLOTS * (i + 1)) / MASTERS) - 1))
      await ask(server, 'CLUSTER', 'SET-CONFIG-EPOCH', String(i + 1))
    }),
  )
  for (const [i, { port }] of servers.entries())
    if (i > 0) await ask(servers[0], 'CLUSTER', 'MEET', '127.0.0.1', String(port), String(buses[i]))
  const ids = (await Promise.all(masters.map((server) => ask(server, 'CLUSTER', 'MYID')))).map(String)
  const replicas = servers.slice(MASTERS)
  for (const [i, replica] of replicas.entries()) {
    await until('a replica knows its master', async () =>
      String(await ask(replica, 'CLUSTER', 'NODES')).includes(ids[i]),
    )
    await ask(replica, 'CLUSTER', 'REPLICATE', ids[i])
  }
  await until('every node sees all slots served', async () => {
    const infos = await Promise.all(servers.map((server) => ask(server, 'CLUSTER', 'INFO')))
    return infos.every((info) => /cluster_state:ok/.test(String(info)))
  })
  await until('every replica follows its master', async () => {
    const infos = await Promise.all(replicas.map((server) => ask(server, 'INFO', 'replication')))
    return infos.every((info) => /master_link_status:up/.test(String(info)))
  })
}
