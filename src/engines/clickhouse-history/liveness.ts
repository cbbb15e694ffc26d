import type { Readable } from 'node:stream'
import { type ClickHouseClient, ClickHouseError, createClient } from '@clickhouse/client'
import { Failure } from '../../kernel/errors.ts'
import { failureOfCode, historyDown } from '../clickhouse-sql/failures.ts'
import { BrokenAnswer } from './checked-body.ts'

/** Tells a slow server from a dead one, over a connection of its own: a server that is busy for us still answers. */
export class Liveness {
  private readonly client: ClickHouseClient
  private readonly quietMs: number
  private pinging: Promise<void> | undefined
  private isClosed = false

  constructor(shared: NonNullable<Parameters<typeof createClient>[0]>, { quietMs }: { quietMs: number }) {
    this.client = createClient({ ...shared, request_timeout: quietMs, max_open_connections: 1 })
    this.quietMs = quietMs
  }

  /** Whether the server answers, and admits its user. Concurrent callers share the answer. @throws Failure */
  ping(): Promise<void> {
    this.pinging ??= this.ask().finally(() => {
      this.pinging = undefined
    })
    return this.pinging
  }

  /** Waits as long as it takes, or until the server no longer answers pings: then `giveUp` ends the wait. */
  async whileAlive<Answer>(waiting: Promise<Answer>, giveUp: () => void): Promise<Answer> {
    let timer: NodeJS.Timeout | undefined
    let isOver = false
    const look = (): void => {
      timer = setTimeout(() => {
        this.ping().then(
          () => isOver || look(),
          // A full server refuses a ping, and works on.
          (error) => isOver || (error.code === 'overloaded' ? look() : giveUp()),
        )
      }, this.quietMs)
    }
    look()
    try {
      return await waiting
    } finally {
      isOver = true
      clearTimeout(timer)
    }
  }

  /** The chunks of an answer, each awaited in that way. */
  async *watched(body: Readable, giveUp: () => void): AsyncGenerator<Uint8Array> {
    const chunks = body[Symbol.asyncIterator]()
    for (;;) {
      const { value, done } = await this.whileAlive(chunks.next(), giveUp)
      if (done === true) return
      yield value
    }
  }

  async close(): Promise<void> {
    this.isClosed = true
    await this.client.close()
  }

  private async ask(): Promise<void> {
    if (this.isClosed) throw historyDown()
    const answer = await this.client.ping({ select: true })
    if (!answer.success) throw failureOf(answer.error)
  }
}

/** The failure that an error of the client or the server is for the caller. */
export const failureOf = (error: unknown): Failure => {
  if (error instanceof Failure) return error
  if (error instanceof ClickHouseError) return failureOfCode(Number(error.code), error)
  if (error instanceof BrokenAnswer) return failureOfCode(error.code, error)
  return historyDown(error)
}
