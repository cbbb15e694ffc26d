// Creates each thing once: where an answer was lost, the service recognizes the request that is sent again.
import { patch } from './change.ts'
import { ApiError, type Asked, ask, type Json, serverNow } from './client.ts'

const LOOK_MS = 1_000
/** An import may take a minute. */
const LOOKS_MAX = 60

/** Keys of requests that may have been carried out although no answer came, by what was sent. */
const unanswered = new Map<string, string>()

/** @throws ApiError */
export const create = async (path: string, body: unknown, asked: Pick<Asked, 'isAnonymous'> = {}): Promise<Json> => {
  const sent = `${path} ${JSON.stringify(body)}`
  const key = unanswered.get(sent) ?? newId()
  unanswered.set(sent, key)
  try {
    const answer = await once(() => ask('POST', path, { ...asked, body, headers: { 'idempotency-key': key } }))
    unanswered.delete(sent)
    return answer
  } catch (error) {
    if (isFinal(error)) unanswered.delete(sent)
    throw error
  }
}

/**
 * Creates a record under an id that the form chose. If an earlier request of the form was carried out, and what it
 * holds was changed since, that record is changed.
 * @throws ApiError
 */
export const createOrChange = async (path: string, id: string, body: object): Promise<Json> => {
  try {
    return await create(path, { _id: id, ...body })
  } catch (error) {
    if (!isThere(error)) throw error
    return patch(`${path}/${id}`, body)
  }
}

/** A UUIDv7. `crypto.randomUUID` is offered to secure pages only, and services in a local network often have none. */
export const newId = (): string => {
  const time = serverNow().toString(16).padStart(12, '0')
  const random = [...crypto.getRandomValues(new Uint8Array(10))]
    .map((byte) => byte.toString(16).padStart(2, '0'))
    .join('')
  const variant = '89ab'[Number.parseInt(random[3]!, 16) % 4]
  return `${time.slice(0, 8)}-${time.slice(8)}-7${random.slice(0, 3)}-${variant}${random.slice(4, 7)}-${random.slice(7, 19)}`
}

/** The answer of the first request, where that is still being carried out. */
const once = async (send: () => Promise<Response>): Promise<Json> => {
  for (let looks = 1; ; looks++) {
    try {
      return await (await send()).json()
    } catch (error) {
      if (!isRunning(error) || looks === LOOKS_MAX) throw error
    }
    await new Promise((resume) => setTimeout(resume, LOOK_MS))
  }
}

/** Whether the request was answered for good: sent once more, it is another one. */
const isFinal = (error: unknown): boolean =>
  error instanceof ApiError && error.status !== 0 && error.status !== 429 && error.status < 500 && !isRunning(error)

const isRunning = (error: unknown): boolean => error instanceof ApiError && error.code === 'in_progress'

const isThere = (error: unknown): boolean =>
  error instanceof ApiError && error.status === 409 && error.problems.some(({ path }) => path === '/_id')
