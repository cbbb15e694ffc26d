import type { Failure } from '../../kernel/errors.ts'
import { failureOfCode, historyDown, historyOverloaded } from '../clickhouse-sql/failures.ts'
import type { Reply } from './protocol.ts'

type OperationReply = Extract<Reply, { id: number }>

/** A pending request to the worker. */
export interface Operation {
  receive(reply: OperationReply): void
  fail(error: unknown): void
}

export class WriteWait implements Operation {
  private readonly resolve: () => void
  readonly fail: (error: unknown) => void

  constructor(resolve: () => void, reject: (error: unknown) => void) {
    this.resolve = resolve
    this.fail = reject
  }

  receive(reply: OperationReply): void {
    if (reply.kind === 'end') this.resolve()
    else if (reply.kind === 'failed') this.fail(failureOf(reply))
  }
}

/** Chunks for one reader; the worker's credit bounds their number. */
export class ChunkStream implements Operation {
  /** The worker has nothing more to do for this query. */
  ended = false
  private readonly chunks: Uint8Array[] = []
  private failure: { error: unknown } | undefined
  private wake: (() => void) | undefined

  receive(reply: OperationReply): void {
    if (reply.kind === 'chunk') this.chunks.push(reply.bytes)
    else if (reply.kind === 'end') this.ended = true
    else {
      this.ended = true
      this.failure ??= { error: failureOf(reply) }
    }
    this.wake?.()
  }

  /** Fails the reader at once, whatever chunks wait. */
  fail(error: unknown): void {
    this.chunks.length = 0
    this.failure ??= { error }
    this.wake?.()
  }

  /** The next chunk, or undefined at the end. */
  async take(): Promise<Uint8Array | undefined> {
    for (;;) {
      const chunk = this.chunks.shift()
      if (chunk !== undefined) return chunk
      if (this.failure !== undefined) throw this.failure.error
      if (this.ended) return undefined
      await new Promise<void>((resume) => (this.wake = resume))
      this.wake = undefined
    }
  }
}

/** The failure of an operation for a client; anything else is a fault of the program and stays an Error. */
export const failureOf = (reply: Extract<Reply, { kind: 'failed' }>, down = false): Failure => {
  const cause = new Error(reply.message)
  if (down) return historyDown(cause)
  return reply.late ? historyOverloaded(cause) : failureOfCode(reply.code, cause)
}
