import { parentPort } from 'node:worker_threads'
import { Failure } from '../../../kernel/errors.ts'
import { AnswerMaker } from './answer.ts'
import type { AnswerReply, AnswerRequest } from './answer-client.ts'

/** Builds answers off the event loop: simplifying and formatting are pure CPU work. */
const makers = new Map<number, AnswerMaker>()

parentPort!.on('message', (request: AnswerRequest) => {
  const { id, kind } = request
  if (kind === 'open') makers.set(id, new AnswerMaker(request.spec))
  else if (kind === 'drop') makers.delete(id)
  else reply(request, makers.get(id))
})

function reply(
  request: Extract<AnswerRequest, { kind: 'push' | 'names' | 'end' }>,
  maker: AnswerMaker | undefined,
): void {
  const { id, kind } = request
  try {
    if (maker === undefined) throw new Error(`no answer ${id}`)
    const unnamed = kind === 'push' ? maker.push(request.chunk) : []
    if (unnamed.length > 0) return parentPort!.postMessage({ id, unnamed } satisfies AnswerReply)
    const { bytes, nextCursor } =
      kind === 'end' ? maker.end() : { bytes: maker.write(kind === 'names' ? request.names : []), nextCursor: null }
    const answer: AnswerReply = { id, bytes, nextCursor }
    parentPort!.postMessage(answer, bytes.byteLength > 0 ? [bytes.buffer as ArrayBuffer] : [])
  } catch (error) {
    const answer: AnswerReply =
      error instanceof Failure
        ? { id, failure: { code: error.code, message: error.message } }
        : { id, failure: { code: 'internal', message: String(error) } }
    parentPort!.postMessage(answer)
  }
}
