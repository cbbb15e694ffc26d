import { Worker } from 'node:worker_threads'
import { Failure, type ErrorCode } from '../../../kernel/errors.ts'
import type { AnswerSpec, TrackerName } from './answer.ts'

export type AnswerRequest =
  | { kind: 'open'; id: number; spec: AnswerSpec }
  | { kind: 'push'; id: number; chunk: Uint8Array }
  | { kind: 'names'; id: number; names: TrackerName[] }
  | { kind: 'end'; id: number }
  | { kind: 'drop'; id: number }

export type AnswerReply = {
  id: number
  /** Trackers whose names are needed before bytes can be written. */
  unnamed?: string[]
  bytes?: Uint8Array
  nextCursor?: string | null
  failure?: { code: ErrorCode; message: string }
}

interface Made {
  unnamed?: string[]
  bytes: Uint8Array
  nextCursor: string | null
}

/** Looks up names of trackers, in the order of the ids. */
export type LookUpNames = (trackerIds: readonly string[]) => Promise<(string | undefined)[]>

const NO_BYTES = new Uint8Array(0)

interface Wait {
  resolve(made: Made): void
  reject(error: unknown): void
}

const waits = new Map<number, Wait>()
let worker: Worker | undefined
let nextId = 1

/**
 * Runs an `AnswerMaker` in a worker that all answers share (started at first use; it never keeps the process alive).
 * One chunk of each answer is processed at a time, so a slow client holds at most two chunks. Returns the cursor of the
 * next page, null if there is none.
 */
export async function* makeAnswer(
  chunks: AsyncIterable<Uint8Array>,
  spec: AnswerSpec,
  lookUpNames?: LookUpNames,
): AsyncGenerator<Uint8Array, string | null> {
  const id = nextId++
  const to = started()
  to.postMessage({ kind: 'open', id, spec } satisfies AnswerRequest)
  try {
    for await (const chunk of chunks) {
      let made = await ask(to, { kind: 'push', id, chunk }, wholeBuffer(chunk))
      if (made.unnamed !== undefined)
        made = await ask(to, { kind: 'names', id, names: await namesOf(made.unnamed, lookUpNames) })
      const { bytes } = made
      if (bytes.byteLength > 0) yield bytes
    }
    const { bytes, nextCursor } = await ask(to, { kind: 'end', id })
    yield bytes
    return nextCursor
  } finally {
    to.postMessage({ kind: 'drop', id } satisfies AnswerRequest)
  }
}

const namesOf = async (trackerIds: readonly string[], lookUp: LookUpNames | undefined): Promise<TrackerName[]> => {
  const names = (await lookUp?.(trackerIds)) ?? []
  return trackerIds.map((trackerId, i) => [trackerId, names[i] ?? null])
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
  made.on('message', ({ id, unnamed, bytes = NO_BYTES, nextCursor = null, failure }: AnswerReply) => {
    const wait = waits.get(id)
    waits.delete(id)
    if (failure === undefined) wait?.resolve({ unnamed, bytes, nextCursor })
    else wait?.reject(new Failure(failure.code, { message: failure.message }))
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
