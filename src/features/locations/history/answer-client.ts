import { Worker } from 'node:worker_threads'
import { Failure, type ErrorCode } from '../../../kernel/errors.ts'
import type { AnswerSpec } from './answer.ts'

export type AnswerRequest =
  | { kind: 'open'; id: number; spec: AnswerSpec }
  | { kind: 'push'; id: number; chunk: Uint8Array }
  | { kind: 'end'; id: number }
  | { kind: 'drop'; id: number }

export type AnswerReply = {
  id: number
  bytes?: Uint8Array
  nextCursor?: string | null
  failure?: { code: ErrorCode; message: string }
}

interface Made {
  bytes: Uint8Array
  nextCursor: string | null
}

interface Wait {
  resolve(made: Made): void
  reject(error: unknown): void
}

const waits = new Map<number, Wait>()
let worker: Worker | undefined
let nextId = 1

/**
 * Runs an `AnswerMaker` in a worker that all answers share (started at the first use; it never keeps the process alive).
 * One chunk of each answer is there at a time, so a slow client holds two chunks and no more. Returns the cursor of the
 * next page, null where there is none.
 */
export async function* makeAnswer(
  chunks: AsyncIterable<Uint8Array>,
  spec: AnswerSpec,
): AsyncGenerator<Uint8Array, string | null> {
  const id = nextId++
  const to = started()
  to.postMessage({ kind: 'open', id, spec } satisfies AnswerRequest)
  try {
    for await (const chunk of chunks) {
      const { bytes } = await ask(to, { kind: 'push', id, chunk }, wholeBuffer(chunk))
      if (bytes.byteLength > 0) yield bytes
    }
    const { bytes, nextCursor } = await ask(to, { kind: 'end', id })
    yield bytes
    return nextCursor
  } finally {
    to.postMessage({ kind: 'drop', id } satisfies AnswerRequest)
  }
}

const ask = (to: Worker, request: AnswerRequest, transfer: ArrayBuffer[] = []): Promise<Made> =>
  new Promise((resolve, reject) => {
    if (to !== worker) reject(down())
    else {
      waits.set(request.id, { resolve, reject })
      to.postMessage(request, transfer)
    }
  })

const started = (): Worker => {
  if (worker !== undefined) return worker
  const made = new Worker(new URL('./answer-worker.js', import.meta.url))
  made.on('message', ({ id, bytes, nextCursor = null, failure }: AnswerReply) => {
    const wait = waits.get(id)
    waits.delete(id)
    if (bytes !== undefined) wait?.resolve({ bytes, nextCursor })
    else wait?.reject(new Failure(failure?.code ?? 'internal', { message: failure?.message }))
  })
  const end = (): void => {
    if (worker === made) worker = undefined
    for (const { reject } of waits.values()) reject(down())
    waits.clear()
  }
  made.on('error', end)
  made.on('exit', end)
  made.unref()
  worker = made
  return made
}

const down = (): Failure =>
  new Failure('engine_down', { message: 'The worker that makes answers has ended; try again.', retryAfterSeconds: 1 })

const wholeBuffer = ({ buffer, byteLength }: Uint8Array): ArrayBuffer[] =>
  buffer instanceof ArrayBuffer && buffer.byteLength === byteLength ? [buffer] : []
