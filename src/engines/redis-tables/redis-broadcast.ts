import { randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { ErrorReply } from 'redis'
import type { Broadcast } from '../broadcast.ts'
import type { Another } from './clients.ts'
import type { RedisConnection } from './connection.ts'

const SENDER_BYTES = 8
/** Maximum of what is on its way to the servers. */
const SENDING_BYTES_MAX = 8 * 1024 * 1024
/** Time without telling on a topic that nobody else heard, or whose server did not answer. */
const SILENT_MS = 1_000
/** Time between two attempts to hear. */
const RETRY_MS = 1_000

/** Sharded channels, each on the server of its slot, heard over one more connection to each server. */
export class RedisBroadcast implements Broadcast {
  private readonly connection: RedisConnection
  private readonly prefix: string
  /** Begins each message: servers send it to its sender too. */
  private readonly sender = randomBytes(SENDER_BYTES)
  private readonly listeners = new Map<string, (bytes: Uint8Array) => void>()
  private readonly silentUntilMs = new Map<string, number>()
  private readonly servers = new Map<string, Promise<Another>>()
  private sendingBytes = 0
  private stop = new AbortController()

  constructor(connection: RedisConnection, prefix: string) {
    this.connection = connection
    this.prefix = prefix
  }

  tell(topic: string, bytes: Uint8Array): void {
    const isSilent = performance.now() < (this.silentUntilMs.get(topic) ?? 0)
    if (isSilent || this.stop.signal.aborted || this.sendingBytes + bytes.byteLength > SENDING_BYTES_MAX) return
    this.sendingBytes += bytes.byteLength
    void this.send(topic, Buffer.concat([this.sender, bytes])).finally(() => (this.sendingBytes -= bytes.byteLength))
  }

  hear(topic: string, listener: (bytes: Uint8Array) => void): () => void {
    this.listeners.set(topic, listener)
    const { signal } = this.stop
    if (!signal.aborted) void this.listen(topic, signal)
    return () => this.end(topic, listener)
  }

  /** Other servers may have the channels by now. */
  hearAgain(): void {
    if (this.stop.signal.aborted) return
    this.close()
    this.stop = new AbortController()
    for (const topic of this.listeners.keys()) void this.listen(topic, this.stop.signal)
  }

  close(): void {
    this.stop.abort()
    for (const opening of this.servers.values())
      void opening.then(
        (server) => server.close(),
        () => undefined,
      )
    this.servers.clear()
  }

  private end(topic: string, listener: (bytes: Uint8Array) => void): void {
    if (this.listeners.get(topic) !== listener) return // another one hears it by now
    this.listeners.delete(topic)
    const ending = this.servers.get(this.serverOf(topic))?.then((server) => server.sUnsubscribe(this.channelOf(topic)))
    ending?.catch(() => undefined) // what comes is left out anyway
  }

  private async send(topic: string, message: Buffer): Promise<void> {
    const channel = this.channelOf(topic)
    const heard = await this.connection.call(channel, ['SPUBLISH', channel, message]).catch(() => 0)
    const others = Number(heard) - (this.listeners.has(topic) ? 1 : 0)
    if (others <= 0) this.silentUntilMs.set(topic, performance.now() + SILENT_MS)
  }

  private async listen(topic: string, signal: AbortSignal): Promise<void> {
    const heard = (message: Buffer): void => {
      if (signal.aborted || this.sender.equals(message.subarray(0, SENDER_BYTES))) return
      this.listeners.get(topic)?.(message.subarray(SENDER_BYTES))
    }
    while (!signal.aborted && this.listeners.has(topic)) {
      try {
        const server = await this.serverNamed(this.serverOf(topic))
        return await server.sSubscribe(this.channelOf(topic), heard)
      } catch (error) {
        if (error instanceof ErrorReply) return // a user without that right
        await pause(RETRY_MS, undefined, { signal, ref: false }).catch(() => undefined)
      }
    }
  }

  private serverNamed(name: string): Promise<Another> {
    const opening = this.servers.get(name) ?? this.connection.openAnother(name)
    this.servers.set(name, opening)
    opening.catch(() => this.servers.delete(name))
    return opening
  }

  private serverOf(topic: string): string {
    return this.connection.serverOf(this.channelOf(topic))
  }

  private channelOf(topic: string): string {
    return `${this.prefix}:{${topic}}`
  }
}
