import { Failure } from '../../kernel/errors.ts'
import type { Reply } from './protocol.ts'

type OperationReply = Extract<Reply, { id: number }>

/** Something that waits for the worker. */
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

/** Chunks on their way to one reader; the worker's credit bounds how many. */
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

/** TIMEOUT_EXCEEDED, MEMORY_LIMIT_EXCEEDED, TOO_MANY_PARTS, QUERY_WAS_CANCELLED */
const OVERLOADED = new Set([159, 241, 252, 394])
/** Cannot write, read, open or close a file, not enough space, corrupted data, connection refused by the lock. */
const DOWN = new Set([24, 27, 33, 74, 75, 76, 77, 198, 209, 210, 225, 226, 228, 236, 243, 246, 499])

/** What the failure of an operation means to a client; anything else is a fault of the program and stays an Error. */
export const failureOf = (reply: Extract<Reply, { kind: 'failed' }>, down = false): Failure => {
  const cause = new Error(reply.message)
  if (down || (reply.code !== undefined && DOWN.has(reply.code))) {
    return new Failure('engine_down', {
      message: 'The history does not answer; try again later.',
      retryAfterSeconds: 1,
      cause,
    })
  }
  if (reply.late || (reply.code !== undefined && OVERLOADED.has(reply.code))) {
    return new Failure('overloaded', {
      message: 'The history could not answer this within its limits; narrow the question or try again later.',
      retryAfterSeconds: 5,
      cause,
    })
  }
  return new Failure('internal', { cause })
}
