import { setTimeout as pause } from 'node:timers/promises'
import { ErrorReply } from 'redis'
import type { RedisConnection } from './connection.ts'

/** Time between two attempts to listen. */
const RETRY_MS = 1_000

/** Announcements between processes, heard over a separate connection: a listening one can do nothing else. */
export class Announcements {
  private readonly connection: RedisConnection
  private readonly channel: string
  private readonly listeners: ((text: string) => void)[] = []
  private stop = new AbortController()
  private isClosed = false

  constructor(connection: RedisConnection, prefix: string) {
    this.connection = connection
    this.channel = `${prefix}:{told}`
  }

  async tell(text: string): Promise<void> {
    await this.connection.call(this.channel, ['PUBLISH', this.channel, text])
  }

  hear(listener: (text: string) => void): void {
    this.listeners.push(listener)
    if (this.listeners.length === 1) this.listenAgain()
  }

  /** Another server may have the channel by now. */
  listenAgain(): void {
    if (this.listeners.length === 0 || this.isClosed) return
    this.stop.abort()
    this.stop = new AbortController()
    void this.listen(this.stop.signal)
  }

  close(): void {
    this.isClosed = true
    this.stop.abort()
  }

  private async listen(signal: AbortSignal): Promise<void> {
    const said = (text: string): void => {
      if (!signal.aborted) for (const listener of this.listeners) listener(text)
    }
    while (!signal.aborted) {
      try {
        const { close } = await this.connection.listen(this.channel, said)
        if (signal.aborted) close()
        else signal.addEventListener('abort', close, { once: true })
        return
      } catch (error) {
        if (error instanceof ErrorReply) return // a user without that right
        await pause(RETRY_MS, undefined, { signal, ref: false }).catch(() => undefined)
      }
    }
  }
}
