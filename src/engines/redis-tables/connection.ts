import { setTimeout as pause } from 'node:timers/promises'
import { createClient, createCluster, createSentinel, ErrorReply, RESP_TYPES } from 'redis'
import { down, failureOf } from './failures.ts'
import { LIBRARY, LIBRARY_CODE } from './functions.ts'

export type Argument = string | Buffer

/** One server, a cluster or a master behind sentinels, asked the same way. */
export interface RedisConnection {
  readonly isCluster: boolean
  /** Sends a command to whoever has the key. Answers hold Buffers. @throws Failure engine_down, overloaded */
  call(key: string, args: Argument[]): Promise<unknown>
  /** Calls one of our functions on a key. */
  fcall(name: string, key: string, args: Argument[]): Promise<unknown>
  /** The same command on every master. */
  everywhere(args: Argument[]): Promise<unknown[]>
  /** One master after the other: all keys that match. */
  keys(pattern: string): AsyncIterable<string[]>
  close(): Promise<void>
}

export interface RedisUrl {
  /** `redis(s)://user:password@host:6379/0`; `?sentinel=<name of the master>` where host is a sentinel. */
  url: string
  /** How long one command may take before the engine counts as down. */
  deadlineMs: number
}

const QUEUE_MAX = 10_000
const RECONNECT_MS_MAX = 2_000
const TYPES = { [RESP_TYPES.BLOB_STRING]: Buffer } as const

/** What the kinds of client have in common here. */
interface Node {
  sendCommand(args: Argument[]): Promise<unknown>
}

interface Client {
  isCluster: boolean
  send(key: string, args: Argument[]): Promise<unknown>
  masters(): Promise<Node[]>
  close(): Promise<void>
}

/** @throws Failure engine_down; Error for a server that would drop rows when its memory is full. */
export const connectRedis = async (options: RedisUrl): Promise<RedisConnection> => {
  const open = (): Promise<Client> => openClient(options)
  const connection = new Connection(await open(), open, options.deadlineMs)
  try {
    await connection.loadLibrary()
    await connection.assertKeepsRows()
    return connection
  } catch (error) {
    await connection.close()
    throw error
  }
}

class Connection implements RedisConnection {
  private client: Client
  private readonly open: () => Promise<Client>
  private readonly deadlineMs: number
  private answeredAtMs = 0
  private isOpening = false
  private isClosed = false

  constructor(client: Client, open: () => Promise<Client>, deadlineMs: number) {
    this.client = client
    this.open = open
    this.deadlineMs = deadlineMs
  }

  get isCluster(): boolean {
    return this.client.isCluster
  }

  call(key: string, args: Argument[]): Promise<unknown> {
    return this.asked(() => this.client.send(key, args))
  }

  async fcall(name: string, key: string, args: Argument[]): Promise<unknown> {
    const command = ['FCALL', `${LIBRARY}_${name}`, '1', key, ...args]
    try {
      return await this.call(key, command)
    } catch (error) {
      // A server that was put in the place of another one does not know them yet.
      if (!/function not found/i.test(String(error))) throw error
      await this.loadLibrary()
      return this.call(key, command)
    }
  }

  async everywhere(args: Argument[]): Promise<unknown[]> {
    return this.asked(async () => Promise.all((await this.client.masters()).map((master) => master.sendCommand(args))))
  }

  async *keys(pattern: string): AsyncGenerator<string[]> {
    for (const master of await this.asked(() => this.client.masters())) {
      let cursor = '0'
      do {
        const scan = ['SCAN', cursor, 'MATCH', pattern, 'COUNT', '500']
        const [next, keys] = (await this.asked(() => master.sendCommand(scan))) as [Buffer, Buffer[]]
        cursor = String(next)
        if (keys.length > 0) yield keys.map(String)
      } while (cursor !== '0')
    }
  }

  async loadLibrary(): Promise<void> {
    await this.everywhere(['FUNCTION', 'LOAD', 'REPLACE', LIBRARY_CODE])
  }

  /** A server may refuse the question (ACL); then whoever runs it vouches for it. */
  async assertKeepsRows(): Promise<void> {
    const answers = await this.everywhere(['CONFIG', 'GET', 'maxmemory-policy']).catch(() => [])
    for (const answer of answers) {
      const text = JSON.stringify(answer, (_key, value) =>
        value?.type === 'Buffer' ? String(Buffer.from(value)) : value,
      )
      if (/allkeys|volatile/.test(text))
        throw new Error(
          '--tables is a Redis that drops rows when its memory is full: set maxmemory-policy to noeviction',
        )
    }
  }

  async close(): Promise<void> {
    if (this.isClosed) return
    this.isClosed = true
    await this.client.close()
  }

  private async asked<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
    if (this.isClosed) throw down()
    const askedAtMs = performance.now()
    const late = new AbortController()
    const deadline = pause(this.deadlineMs, undefined, { signal: late.signal, ref: false }).then(() => {
      if (this.answeredAtMs < askedAtMs) void this.openAgain()
      throw new Error(`no answer for ${this.deadlineMs} ms`)
    })
    deadline.catch(() => undefined)
    try {
      const answer = await Promise.race([ask(), deadline])
      this.answeredAtMs = performance.now()
      return answer
    } catch (error) {
      if (error instanceof ErrorReply) this.answeredAtMs = performance.now()
      throw failureOf(error)
    } finally {
      late.abort()
    }
  }

  /** Nothing is answered any more: the connection may have died unseen, which its own writes keep it from noticing. */
  private async openAgain(): Promise<void> {
    if (this.isOpening || this.isClosed) return
    this.isOpening = true
    const silent = this.client
    try {
      this.client = await this.open()
      await silent.close()
      if (this.isClosed) await this.client.close()
    } catch {
      // The next question that is not answered tries again.
    } finally {
      this.isOpening = false
    }
  }
}

const openClient = async ({ url, deadlineMs }: RedisUrl): Promise<Client> => {
  const sentinel = new URL(url).searchParams.get('sentinel')
  if (sentinel !== null) return sentinelClient(url, sentinel)
  let hasConnected = false
  const options = clientOptions(url)
  // A server that never answered is told of at once; one that did is tried again for ever.
  const first = (retries: number): number | Error =>
    hasConnected ? reconnectStrategy(retries) : new Error('no connection')
  const one = createClient({ ...options, socket: { ...options.socket, reconnectStrategy: first } })
  one.on('error', () => undefined) // each command says so itself
  const { promise: late, reject } = deferred()
  const timer = setTimeout(() => reject(new Error(`no answer for ${deadlineMs} ms`)), deadlineMs)
  try {
    await Promise.race([one.connect(), late])
    hasConnected = true
    const cluster = String(await Promise.race([one.sendCommand(['INFO', 'cluster']), late]))
    if (!/cluster_enabled:1/.test(cluster)) return singleClient(one)
  } catch (error) {
    one.destroy()
    throw down(error)
  } finally {
    clearTimeout(timer)
  }
  one.destroy()
  return clusterClient(url)
}

const deferred = (): { promise: Promise<never>; reject(error: Error): void } => {
  let reject: (error: Error) => void = () => undefined
  const promise = new Promise<never>((_, failed) => (reject = failed))
  promise.catch(() => undefined)
  return { promise, reject }
}

const reconnectStrategy = (retries: number): number => Math.min(50 * 2 ** Math.min(retries, 6), RECONNECT_MS_MAX)

const clientOptions = (url: string) => ({
  url: url.replace(/\?.*$/, ''),
  RESP: 2 as const,
  disableOfflineQueue: true,
  commandsQueueMaxLength: QUEUE_MAX,
  // A connection that went silent is noticed by its unanswered pings.
  pingInterval: 2_000,
  socket: {
    connectTimeout: 3_000,
    socketTimeout: 10_000,
    reconnectStrategy,
  },
  commandOptions: { typeMapping: TYPES },
})

/** What is used of the library's client of one server. */
interface OneClient {
  sendCommand(args: Argument[], options?: { typeMapping: typeof TYPES }): Promise<unknown>
  destroy(): void
}

const singleClient = (client: OneClient): Client => {
  const send = (args: Argument[]): Promise<unknown> => client.sendCommand(args, { typeMapping: TYPES })
  return {
    isCluster: false,
    send: (_key, args) => send(args),
    masters: async () => [{ sendCommand: send }],
    close: async () => client.destroy(),
  }
}

const clusterClient = async (url: string): Promise<Client> => {
  const { url: root, ...defaults } = clientOptions(url)
  const { username, password, protocol } = new URL(root)
  const cluster = createCluster({
    rootNodes: [{ url: root }],
    RESP: 2,
    defaults: {
      ...defaults,
      ...(username !== '' && { username: decodeURIComponent(username) }),
      ...(password !== '' && { password: decodeURIComponent(password) }),
      socket: { ...defaults.socket, ...(protocol === 'rediss:' && { tls: true as const }) },
    },
  })
  cluster.on('error', () => undefined) // each command says so itself
  await cluster.connect().catch((error: unknown) => {
    throw down(error)
  })
  return {
    isCluster: true,
    send: (key, args) => cluster.sendCommand(key, false, args, { typeMapping: TYPES }),
    masters: () =>
      Promise.all(
        cluster.masters.map(async (master) => {
          const client = await cluster.nodeClient(master)
          return { sendCommand: (args: Argument[]) => client.sendCommand(args, { typeMapping: TYPES }) }
        }),
      ),
    close: async () => cluster.destroy(),
  }
}

const sentinelClient = async (url: string, name: string): Promise<Client> => {
  const { hostname, port, username, password } = new URL(url)
  const { url: _url, ...options } = clientOptions(url)
  const sentinel = createSentinel({
    name,
    sentinelRootNodes: [{ host: hostname, port: Number(port) }],
    RESP: 2,
    nodeClientOptions: {
      ...options,
      ...(username !== '' && { username: decodeURIComponent(username) }),
      ...(password !== '' && { password: decodeURIComponent(password) }),
    },
  })
  sentinel.on('error', () => undefined) // each command says so itself
  await sentinel.connect().catch((error: unknown) => {
    throw down(error)
  })
  const send = (args: Argument[]): Promise<unknown> => sentinel.sendCommand(false, args, { typeMapping: TYPES })
  return {
    isCluster: false,
    send: (_key, args) => send(args),
    masters: async () => [{ sendCommand: send }],
    close: async () => sentinel.destroy(),
  }
}
