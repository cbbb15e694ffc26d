import { setTimeout as pause } from 'node:timers/promises'
import { ErrorReply } from 'redis'
import { type Argument, type Client, openClient } from './clients.ts'
import { type Asked, Deadlines } from './deadlines.ts'
import { down, failureOf } from './failures.ts'
import { LIBRARY, LIBRARY_CODE } from './functions.ts'
import type { RedisUrl } from './redis-url.ts'
import { Replicas } from './replicas.ts'

/** One server, a cluster or a master behind sentinels, with one interface and a deadline for each question. */
export interface RedisConnection {
  readonly isCluster: boolean
  /** Sends a command to the key's server; with `server`, to no other master behind sentinels. Answers hold Buffers. @throws Failure engine_down, overloaded */
  call(key: string, args: Argument[], server?: string): Promise<unknown>
  /**
   * Calls one of our functions on keys of one place, the first of which names it. In a cluster all keys that it may
   * touch are named: while their slot moves, none is touched, and the call is made again. `server` as in `call`.
   */
  fcall(name: string, keys: readonly string[], args: readonly Argument[], server?: string): Promise<unknown>
  /** Host and port of the key's server, as far as is known. */
  serverOf(key: string): string
  /** The same command on every master. */
  everywhere(args: Argument[]): Promise<unknown[]>
  /** Resolves if every master takes writes. @throws Failure engine_down, as where the memory is full */
  takesWrites(): Promise<void>
  /** All keys that match, one master after the other. */
  keys(pattern: string): AsyncIterable<string[]>
  /** Calls back with what is told on a channel, over a connection of its own to the key's server. @throws Failure engine_down; ErrorReply for a user without that right */
  listen(channel: string, listener: (text: string) => void): Promise<{ close(): void }>
  /** Resolves when a replica has all that was written to the servers of these keys, where they have replicas. @throws Failure engine_down */
  replicated(keys: readonly string[]): Promise<void>
  close(): Promise<void>
}

/** The first version with functions. */
const VERSION_MIN = 7

/** @throws Failure engine_down; Error for a server that is too old, or would drop rows when its memory is full. */
export const connectRedis = async (url: RedisUrl, deadlineMs: number): Promise<RedisConnection> => {
  const open = (): Promise<Client> => openClient(url, deadlineMs)
  const connection = new Connection(await open(), open, deadlineMs)
  try {
    await connection.assertVersion()
    await connection.loadLibrary()
    await connection.assertKeepsRows()
    return connection
  } catch (error) {
    await connection.close()
    throw error
  }
}

/** Commands without side effects: they may be repeated. */
const READS = new Set<Argument>(['GET', 'HGET', 'HGETALL', 'SSCAN', 'SCARD'])
const READ_FUNCTIONS = new Set(['rows', 'page', 'changes', 'walk', 'check'].map((name) => `${LIBRARY}_${name}`))
const isRead = ([command, name]: readonly Argument[]): boolean =>
  command === 'FCALL' ? READ_FUNCTIONS.has(name as string) : READS.has(command)

/** The keys of a moving slot are elsewhere soon. */
const MOVING_MS = 20

/** `open` opens the replacement of a client whose servers do not answer. */
export class Connection implements RedisConnection {
  private client: Client
  private replicas: Replicas
  private readonly open: () => Promise<Client>
  private readonly deadlineMs: number
  private readonly deadlines: Deadlines
  private readonly answeredAtMs = new Map<string, number>()
  /** Clients that were given up, while some of their servers may still answer. */
  private readonly leaving = new Set<Client>()
  private isOpening = false
  private isClosed = false

  constructor(client: Client, open: () => Promise<Client>, deadlineMs: number) {
    this.client = client
    this.replicas = new Replicas(client)
    this.open = open
    this.deadlineMs = deadlineMs
    this.deadlines = new Deadlines(deadlineMs)
  }

  get isCluster(): boolean {
    return this.client.isCluster
  }

  call(key: string, args: Argument[], server?: string): Promise<unknown> {
    const { client } = this
    const send = (to: Client): Promise<unknown> => to.send(key, args, server)
    const ask = isRead(args)
      ? (asked: Asked) => send(client).catch((error) => this.again(asked, client, error, send))
      : () => send(client)
    return this.asked(client.nameOf(key), ask)
  }

  /** Repeats a question once where its client was given up for another one meanwhile. */
  private again(
    { isLate }: Asked,
    client: Client,
    error: unknown,
    ask: (next: Client) => Promise<unknown>,
  ): Promise<unknown> {
    if (isLate || this.client === client || error instanceof ErrorReply) throw error
    return ask(this.client)
  }

  fcall(name: string, keys: readonly string[], args: readonly Argument[], server?: string): Promise<unknown> {
    const named = this.isCluster ? keys : keys.slice(0, 1)
    const command = ['FCALL', `${LIBRARY}_${name}`, String(named.length), ...named, ...args]
    return this.withLibrary(() => this.call(keys[0], command, server))
  }

  private async withLibrary(ask: () => Promise<unknown>): Promise<unknown> {
    const endMs = performance.now() + this.deadlineMs
    for (;;) {
      try {
        return await ask()
      } catch (error) {
        // A server that replaced another one does not know the functions yet.
        const reason = reasonOf(error)
        if (/function not found/i.test(reason)) await this.loadLibrary()
        else if (!reason.startsWith('TRYAGAIN')) throw error
        if (performance.now() > endMs) throw error
        await pause(MOVING_MS)
      }
    }
  }

  serverOf(key: string): string {
    return this.client.nameOf(key)
  }

  async everywhere(args: Argument[]): Promise<unknown[]> {
    const masters = await this.asked('masters', () => this.client.masters())
    return Promise.all(masters.map((master) => this.asked(master.name, () => master.sendCommand(args))))
  }

  async *keys(pattern: string): AsyncGenerator<string[]> {
    for (const master of await this.asked('masters', () => this.client.masters())) {
      let cursor = '0'
      do {
        const scan = ['SCAN', cursor, 'MATCH', pattern, 'COUNT', '500']
        const [next, keys] = (await this.asked(master.name, () => master.sendCommand(scan))) as [Buffer, Buffer[]]
        cursor = String(next)
        if (keys.length > 0) yield keys.map(String)
      } while (cursor !== '0')
    }
  }

  async takesWrites(): Promise<void> {
    await this.withLibrary(() => this.everywhere(['FCALL', `${LIBRARY}_takes_writes`, '0']))
  }

  async replicated(keys: readonly string[]): Promise<void> {
    const { client, replicas } = this
    const byServer = new Map(keys.map((key) => [client.nameOf(key), key]))
    const have = ([name, key]: [string, string], asked: Asked): Promise<void> =>
      replicas.have(name, key).catch((error) => {
        // Once more where the connection was given up meanwhile; another server may lack the written data.
        const isGivenUp = this.replicas !== replicas && this.client.nameOf(key) === name
        if (asked.isLate || !isGivenUp) throw error
        return this.replicas.have(name, key)
      })
    const forget = (): void => this.forgetReplicas(replicas)
    await Promise.all([...byServer].map((one) => this.asked('replicas', (asked) => have(one, asked), forget)))
  }

  async listen(channel: string, listener: (text: string) => void): Promise<{ close(): void }> {
    const { client } = this
    const other = await client.openAnother(client.nameOf(channel))
    try {
      await other.subscribe(channel, listener)
      return other
    } catch (error) {
      other.close()
      throw error
    }
  }

  async loadLibrary(): Promise<void> {
    await this.everywhere(['FUNCTION', 'LOAD', 'REPLACE', LIBRARY_CODE])
  }

  async assertVersion(): Promise<void> {
    for (const info of await this.everywhere(['INFO', 'server'])) {
      const version = /redis_version:([\d.]+)/.exec(String(info))?.[1] ?? 'unknown'
      if (!(Number.parseInt(version, 10) >= VERSION_MIN))
        throw new Error(`--tables is Redis ${version}; Waymark needs Redis ${VERSION_MIN}.0 or newer`)
    }
  }

  /** A server may refuse the question (ACL); then its operator is responsible. */
  async assertKeepsRows(): Promise<void> {
    const answers = await this.everywhere(['CONFIG', 'GET', 'maxmemory-policy']).catch(() => [])
    for (const answer of answers) {
      const policy = (answer as unknown[]).map(String)[1]
      if (policy !== undefined && policy !== 'noeviction')
        throw new Error(
          `--tables is a Redis that drops rows when its memory is full: set maxmemory-policy to noeviction (it is ${policy})`,
        )
    }
  }

  async close(): Promise<void> {
    if (this.isClosed) return
    this.isClosed = true
    this.replicas.close()
    for (const client of [this.client, ...this.leaving]) client.close()
    this.leaving.clear()
  }

  private async asked<Answer>(
    server: string,
    ask: (asked: Asked) => Promise<Answer>,
    onSilence: () => unknown = () => this.openAgain(),
  ): Promise<Answer> {
    if (this.isClosed) throw down()
    try {
      const answer = await this.deadlines.within(ask, (askedAtMs) => {
        if ((this.answeredAtMs.get(server) ?? 0) < askedAtMs) void onSilence()
        return new Error(`no answer for ${this.deadlineMs} ms`)
      })
      this.answeredAtMs.set(server, performance.now())
      return answer
    } catch (error) {
      if (error instanceof ErrorReply) this.answeredAtMs.set(server, performance.now())
      throw failureOf(error)
    }
  }

  /** The connections of the waiters are silent, and perhaps only theirs. */
  private forgetReplicas(silent: Replicas): void {
    if (this.replicas !== silent || this.isClosed) return
    this.replicas = new Replicas(this.client)
    silent.close()
  }

  /** A server no longer answers: its connection may have died unseen, which its own writes keep it from noticing. */
  private async openAgain(): Promise<void> {
    if (this.isOpening || this.isClosed) return
    this.isOpening = true
    const [silent, replicas] = [this.client, this.replicas]
    try {
      this.client = await this.open()
      this.replicas = new Replicas(this.client)
      this.answeredAtMs.clear()
      replicas.close()
      if (this.isClosed) this.client.close()
      else this.giveUp(silent)
    } catch {
      // The next unanswered question tries again.
    } finally {
      this.isOpening = false
    }
  }

  /** Other servers of a cluster may be answering: their answers are awaited. */
  private giveUp(client: Client): void {
    if (!client.isCluster) return client.close()
    this.leaving.add(client)
    setTimeout(() => this.leaving.delete(client) && client.close(), this.deadlineMs).unref()
  }
}

/** The server's own words, where it sent the error. */
const reasonOf = (error: unknown): string => {
  const { cause, message } = error as Error
  return cause instanceof ErrorReply ? cause.message : message
}
