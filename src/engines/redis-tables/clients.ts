import { createClient, createCluster, createSentinel, RESP_TYPES } from 'redis'
import { down } from './failures.ts'
import type { RedisUrl } from './redis-url.ts'
import { slotOf } from './slots.ts'

export type Argument = string | Buffer

export interface Master {
  /** Host and port. */
  name: string
  sendCommand(args: Argument[]): Promise<unknown>
}

/** A connection besides those that commands are sent over. */
export interface Another {
  sendCommand(args: Argument[]): Promise<unknown>
  /** Has the connection do nothing but listen, also where it is made anew. */
  subscribe(channel: string, listener: (text: string) => void): Promise<void>
  close(): void
}

/** One server, a cluster, or the master behind sentinels, through the library. */
export interface Client {
  isCluster: boolean
  /** Sends a command to the key's server; answers hold Buffers. `server`: to no other one behind sentinels, by name. */
  send(key: string, args: Argument[], server?: string): Promise<unknown>
  /** Host and port of the key's server, as far as is known. */
  nameOf(key: string): string
  masters(): Promise<Master[]>
  /** Another connection to that server, for what keeps a connection waiting. */
  openAnother(name: string): Promise<Another>
  close(): void
}

const QUEUE_MAX = 10_000
const RECONNECT_MS_MAX = 2_000
/** Time without reaching a cluster's master after which the other nodes are asked for its successor. */
const REFRESH_MS = 500
const TYPES = { [RESP_TYPES.BLOB_STRING]: Buffer } as const

/** @throws Failure engine_down when nothing answers within the time */
export const openClient = async (url: RedisUrl, deadlineMs: number): Promise<Client> => {
  if (url.sentinel !== undefined) return sentinelClient(url, url.sentinel, deadlineMs)
  let failure: unknown
  for (const address of url.addresses) {
    try {
      return await firstClient(url, address, deadlineMs)
    } catch (error) {
      failure = error
    }
  }
  throw down(failure)
}

/** A client of that server, or of the cluster that it belongs to. */
const firstClient = async (url: RedisUrl, address: RedisUrl['addresses'][0], deadlineMs: number): Promise<Client> => {
  const one = await openOne(url, address, deadlineMs)
  try {
    if (!/cluster_enabled:1/.test(String(await one.sendCommand(['INFO', 'cluster']))))
      return singleClient(url, address, one)
  } catch (error) {
    one.destroy()
    throw error
  }
  one.destroy()
  return clusterClient(url)
}

/** Used part of the library's client of one server. */
interface OneClient extends Pick<Another, 'sendCommand' | 'subscribe'> {
  destroy(): void
}

const openOne = async (
  url: RedisUrl,
  { host, port }: RedisUrl['addresses'][0],
  deadlineMs: number,
): Promise<OneClient> => {
  let hasConnected = false
  const options = clientOptions(url)
  // A server that never answered fails at once; one that did is retried for ever.
  const first = (retries: number, cause: Error): number | Error => (hasConnected ? reconnectStrategy(retries) : cause)
  const socket = { ...options.socket, host, port, reconnectStrategy: first }
  const one = createClient({ ...options, database: url.database, socket })
  one.on('error', () => undefined) // each command reports it
  const { promise: late, reject } = deferred()
  const timer = setTimeout(() => reject(new Error(`no answer for ${deadlineMs} ms`)), deadlineMs)
  try {
    await Promise.race([one.connect(), late])
    hasConnected = true
  } catch (error) {
    one.destroy()
    throw error
  } finally {
    clearTimeout(timer)
  }
  return {
    sendCommand: (args) => one.sendCommand(args, { typeMapping: TYPES }),
    subscribe: (channel, listener) => one.subscribe(channel, listener),
    destroy: () => one.destroy(),
  }
}

const deferred = (): { promise: Promise<never>; reject(error: Error): void } => {
  let reject: (error: Error) => void = () => undefined
  const promise = new Promise<never>((_, failed) => (reject = failed))
  promise.catch(() => undefined)
  return { promise, reject }
}

const reconnectStrategy = (retries: number): number => Math.min(50 * 2 ** Math.min(retries, 6), RECONNECT_MS_MAX)

const clientOptions = ({ username, password, tls }: RedisUrl) => ({
  RESP: 2 as const,
  ...(username !== undefined && { username }),
  ...(password !== undefined && { password }),
  disableOfflineQueue: true,
  commandsQueueMaxLength: QUEUE_MAX,
  pingInterval: 2_000,
  socket: {
    connectTimeout: 3_000,
    socketTimeout: 10_000,
    reconnectStrategy,
    ...(tls !== undefined && { tls: true as const, ...tls }),
  },
  commandOptions: { typeMapping: TYPES },
})

/** Opens another connection; `name` is host and port. */
const another =
  (url: RedisUrl) =>
  async (name: string): Promise<Another> => {
    const colon = name.lastIndexOf(':')
    const address = { host: name.slice(0, colon), port: Number(name.slice(colon + 1)) }
    const one = await openOne(url, address, clientOptions(url).socket.connectTimeout)
    return { ...one, close: () => one.destroy() }
  }

const singleClient = (url: RedisUrl, { host, port }: RedisUrl['addresses'][0], client: OneClient): Client => {
  const name = `${host}:${port}`
  return {
    isCluster: false,
    send: (_key, args) => client.sendCommand(args),
    nameOf: () => name,
    masters: async () => [{ name, sendCommand: (args) => client.sendCommand(args) }],
    openAnother: another(url),
    close: () => client.destroy(),
  }
}

const clusterClient = async (url: RedisUrl): Promise<Client> => {
  const { username, password, socket, ...defaults } = clientOptions(url)
  const cluster = createCluster({
    rootNodes: url.addresses.map(({ host, port }) => ({ socket: { host, port } })),
    RESP: 2,
    topologyRefreshOnReconnectionAttemptStrategy: REFRESH_MS,
    defaults: { ...defaults, username, password, socket },
  })
  cluster.on('error', () => undefined) // each command reports it
  await cluster.connect()
  return {
    isCluster: true,
    send: (key, args) => cluster.sendCommand(key, false, args, { typeMapping: TYPES }),
    nameOf: (key) => cluster.slots[slotOf(key)]?.master.address ?? '',
    masters: () =>
      Promise.all(
        cluster.masters.map(async (master) => {
          const client = await cluster.nodeClient(master)
          return {
            name: master.address,
            sendCommand: (args: Argument[]) => client.sendCommand(args, { typeMapping: TYPES }),
          }
        }),
      ),
    openAnother: another(url),
    close: () => cluster.destroy(),
  }
}

const sentinelClient = async (url: RedisUrl, name: string, deadlineMs: number): Promise<Client> => {
  const sentinel = createSentinel({
    name,
    sentinelRootNodes: url.addresses,
    RESP: 2,
    // Else simultaneous first callers wait for a moment without sending a command.
    reserveClient: true,
    nodeClientOptions: { ...clientOptions(url), database: url.database },
    ...(url.tls !== undefined && { sentinelClientOptions: { socket: { tls: true as const, ...url.tls } } }),
  })
  sentinel.on('error', () => undefined) // each command reports it
  await sentinel.connect().catch((error: unknown) => {
    throw down(error)
  })
  const send = sentOnce(sentinel, deadlineMs)
  const nameOf = (): string => {
    const { host, port } = sentinel.getMasterNode() ?? { host: '', port: 0 }
    return `${host}:${port}`
  }
  return {
    isCluster: false,
    send: (_key, args, server) => send(args, server),
    nameOf,
    masters: async () => [{ name: nameOf(), sendCommand: (args) => send(args) }],
    openAnother: another(url),
    close: () => sentinel.destroy(),
  }
}

const serverOf = ({ options }: Sender): string => {
  const { host = '', port = 0 }: { host?: string; port?: number } = options?.socket ?? {}
  return `${host}:${port}`
}

interface Sender {
  options?: { socket?: object }
  sendCommand(args: Argument[], options: { typeMapping: typeof TYPES }): Promise<unknown>
}

/**
 * Sends each command once, within its time. The library by itself holds any number of commands while there is no
 * master, for however long, and resends to the next master commands that the one before may have executed. With
 * `server`, nothing is sent to another master than that one.
 */
export const sentOnce = (
  sentinel: Pick<ReturnType<typeof createSentinel>, '_execute'>,
  deadlineMs: number,
): ((args: Argument[], server?: string) => Promise<unknown>) => {
  let waiting = 0
  return (args, server) => {
    if (waiting >= QUEUE_MAX) return Promise.reject(new Error('The queue is full'))
    const endMs = performance.now() + deadlineMs
    waiting++
    return new Promise((resolve, reject) => {
      let isOver = false
      const send = async (client: Sender): Promise<void> => {
        if (isOver || performance.now() > endMs) throw new Error('no master within the time')
        if (server !== undefined && server !== serverOf(client)) throw new Error(`${server} is no longer the master`)
        isOver = true
        try {
          resolve(await client.sendCommand(args, { typeMapping: TYPES }))
        } catch (error) {
          // A server that is no longer the master has done nothing; the library looks for the new one.
          isOver = !String((error as Error).message).startsWith('READONLY')
          if (isOver) reject(error as Error)
          throw error
        }
      }
      sentinel
        ._execute(false, send)
        .catch(reject)
        .finally(() => waiting--)
    })
  }
}
