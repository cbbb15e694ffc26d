import { setTimeout as pause } from 'node:timers/promises'
import {
  ANY,
  type AppendExpectedRevision,
  type AppendResult,
  MaxAppendSizeExceededError,
  NO_STREAM,
  WrongExpectedVersionError,
} from '@eventstore/db-client'
import { Failure } from '../../kernel/errors.ts'
import type { NewEvent } from '../../kernel/event.ts'
import type { ExpectedRevision } from '../event-log.ts'
import { type Connection, isPassing, logDown } from './connection.ts'
import { toEventData } from './events.ts'

/** Appends of one stream that may wait for each other. */
const WAITING_MAX = 10_000
const RETRY_MS = [20, 50, 100, 250, 500, 1_000]

export interface AppendQueueOptions {
  /** How long an append whose outcome is unknown is repeated with the same ids before it is given up as unknown. */
  deadlineMs: number
  /** Aborted when the log closes. */
  closed: AbortSignal
}

/** The stream is elsewhere, as the server said; what it says of an erased stream is not what the port says. */
export class Refused extends Error {}

/** Appends with one in flight for each stream, in the order in which they came. */
export class AppendQueue {
  private readonly connection: Connection
  private readonly options: AppendQueueOptions
  private readonly tails = new Map<string, { last: Promise<unknown>; waiting: number }>()

  constructor(connection: Connection, options: AppendQueueOptions) {
    this.connection = connection
    this.options = options
  }

  /** @throws Refused, Failure engine_down (the outcome is unknown), too_large, overloaded */
  async append(stream: string, events: readonly NewEvent[], expected: ExpectedRevision): Promise<AppendResult> {
    const tail = this.tails.get(stream) ?? { last: Promise.resolve(), waiting: 0 }
    if (tail.waiting >= WAITING_MAX)
      throw new Failure('overloaded', { message: 'Too many writes wait for the log.', retryAfterSeconds: 1 })
    this.tails.set(stream, tail)
    tail.waiting++
    const before = tail.last
    const own = (async () => {
      await before
      return this.untilKnown(stream, events, expected)
    })()
    tail.last = own.catch(() => undefined)
    try {
      return await own
    } finally {
      tail.waiting--
      if (tail.waiting === 0) this.tails.delete(stream)
    }
  }

  private async untilKnown(
    stream: string,
    events: readonly NewEvent[],
    expected: ExpectedRevision,
  ): Promise<AppendResult> {
    const { deadlineMs, closed } = this.options
    const until = performance.now() + deadlineMs
    const data = events.map(toEventData)
    for (let tries = 0; ; tries++) {
      if (closed.aborted) throw logDown()
      try {
        return await this.connection.client.appendToStream(stream, data, {
          expectedRevision: toExpected(expected),
          credentials: this.connection.credentials,
          requiresLeader: true,
          deadline: Math.max(1, Math.min(deadlineMs, until - performance.now())),
        })
      } catch (error) {
        if (error instanceof WrongExpectedVersionError) throw new Refused(undefined, { cause: error })
        if (error instanceof MaxAppendSizeExceededError) throw new Failure('too_large', { cause: error })
        const waitMs = RETRY_MS[Math.min(tries, RETRY_MS.length - 1)]
        if (!isPassing(error) || performance.now() + waitMs >= until) throw logDown(error)
        await pause(waitMs, undefined, { signal: closed }).catch(() => undefined)
      }
    }
  }
}

const toExpected = (expected: ExpectedRevision): AppendExpectedRevision => {
  if (expected === 'any') return ANY
  return expected === 'none' ? NO_STREAM : BigInt(expected)
}
