// Calls of the public API. The token is only in memory; when it has ended, the session's cookie renews it once.

const API = '/api/v3'
/** Longest wait for reads to catch up with a write, if the service reports that they have not yet. */
const PENDING_MS = 2_000
/** After a sleep or a change of network a connection may stay silent: a read aborts, the next gets a new one. */
const READ_MS = 60_000
/** A change may take longer to be carried out, and what it sends to arrive over a slow network. */
const CHANGE_MS = 120_000
const SLOWEST_CHARACTERS_PER_MS = 4
const SILENT = new Error('no answer')

export interface Problem {
  path: string
  message: string
}

export class ApiError extends Error {
  status: number
  code: string
  problems: Problem[]
  requestId: string | undefined

  constructor(status: number, message: string, code = '', problems: Problem[] = [], requestId?: string) {
    super(message)
    this.status = status
    this.code = code
    this.problems = problems
    this.requestId = requestId
  }
}

// biome-ignore lint/suspicious/noExplicitAny: answer of any route
export type Json = any

type Words = (key: 'unreachable' | 'unworded', values?: { status: number }) => string

interface Bearer {
  token: string | undefined
  /** Returns whether there is a new token. */
  renew(): Promise<boolean>
  /** Something was refused that was not before: permissions may have been taken away. */
  refused(): void
}

let bearer: Bearer = { token: undefined, renew: async () => false, refused: () => undefined }
let words: Words = (key) => key
/** Lead of the server's clock over this machine's. */
let clockOffsetMs = 0
/** Reads that were refused, without ids: what a role never had is refused again and again, and tells nothing. */
const refusedReads = new Set<string>()
const VARIABLE = /\?.*|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g

export const useBearer = (one: Bearer): void => {
  bearer = one
  refusedReads.clear()
}

/** Failures that the service has no words for are told in the reader's language. */
export const useWords = (one: Words): void => {
  words = one
}

/** The server's time: displayed ages do not depend on this machine's clock. */
export const serverNow = (): number => Date.now() + clockOffsetMs

export interface Asked {
  body?: unknown
  headers?: { [name: string]: string }
  signal?: AbortSignal
  /** For calls that create a session: they are sent without a token. */
  isAnonymous?: boolean
  /** It is sent although the page is closed. */
  isKeptAlive?: boolean
}

/** @throws ApiError, also if the service cannot be reached (status 0) */
export const ask = async (method: string, path: string, asked: Asked = {}): Promise<Response> => {
  const sent = bearer.token
  const response = await send(method, path, asked)
  if (isNewRefusal(method, path, response)) bearer.refused()
  if (response.status !== 401 || asked.isAnonymous) return checked(response)
  const isRenewed = bearer.token !== sent || (await bearer.renew())
  return checked(isRenewed ? await send(method, path, asked) : response)
}

const isNewRefusal = (method: string, path: string, { status }: Response): boolean => {
  if (method !== 'GET') return status === 403
  const read = path.replace(VARIABLE, '')
  const wasRefused = refusedReads.has(read)
  if (status === 403) refusedReads.add(read)
  else refusedReads.delete(read)
  return status === 403 && !wasRefused
}

const send = async (method: string, path: string, asked: Asked): Promise<Response> => {
  const { body, headers, signal, isAnonymous, isKeptAlive } = asked
  const all: { [name: string]: string } = { ...headers }
  if (body !== undefined) all['content-type'] = 'application/json'
  if (!isAnonymous && bearer.token !== undefined) all.authorization = `Bearer ${bearer.token}`
  const text = body === undefined ? undefined : JSON.stringify(body)
  const silence = new AbortController()
  const limitMs = method === 'GET' ? READ_MS : CHANGE_MS + (text?.length ?? 0) / SLOWEST_CHARACTERS_PER_MS
  const limit = setTimeout(() => silence.abort(SILENT), limitMs)
  const response = await fetch(API + path, {
    method,
    headers: all,
    body: text,
    keepalive: isKeptAlive ?? false,
    signal: signal === undefined ? silence.signal : AbortSignal.any([signal, silence.signal]),
  })
    .catch((error: Error) => {
      if (error.name === 'AbortError') throw error
      throw new ApiError(0, words('unreachable'))
    })
    .finally(() => clearTimeout(limit))
  const date = Date.parse(response.headers.get('date') ?? '')
  // The header has whole seconds: on average it is half a second behind.
  if (!Number.isNaN(date)) clockOffsetMs = date + 500 - Date.now()
  return response
}

const checked = async (response: Response): Promise<Response> => {
  if (response.headers.has('waymark-pending')) await new Promise((resume) => setTimeout(resume, PENDING_MS))
  if (response.ok) return response
  const answer = (await response.json().catch(() => ({}))) as Json
  const requestId = response.headers.get('x-request-id') ?? undefined
  throw new ApiError(
    response.status,
    answer.message ?? words('unworded', { status: response.status }),
    answer.code,
    answer.errors,
    requestId,
  )
}

export const get = async (path: string, signal?: AbortSignal): Promise<Json> =>
  (await ask('GET', path, { signal })).json()

export const post = async (path: string, body: unknown = {}): Promise<Json> =>
  (await ask('POST', path, { body })).json()

/** Most rows that the service answers at once. */
const PAGE_ROWS = 500

/** The first rows of a list, as many as there are up to `count`. */
export const getPage = async (path: string, count: number): Promise<{ data: Json[]; nextCursor: string | null }> => {
  const data: Json[] = []
  const separator = path.includes('?') ? '&' : '?'
  let nextCursor: string | null = ''
  while (nextCursor !== null && data.length < count) {
    const limit = Math.min(PAGE_ROWS, count - data.length)
    const page: Json = await get(
      `${path}${separator}limit=${limit}${nextCursor && `&cursor=${encodeURIComponent(nextCursor)}`}`,
    )
    data.push(...page.data)
    nextCursor = page.nextCursor
  }
  return { data, nextCursor }
}

export const getAll = async (path: string, max: number): Promise<Json[]> => (await getPage(path, max)).data

/** Rows as they arrive, one per line. */
export const getLines = async (path: string, onRow: (row: Json) => void, signal?: AbortSignal): Promise<void> => {
  const response = await ask('GET', path, { signal })
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ''
  for (;;) {
    const { done, value } = await reader.read()
    if (done) break
    const lines = (rest + value).split('\n')
    rest = lines.pop()!
    for (const line of lines) if (line !== '') onRow(JSON.parse(line))
  }
  if (rest.trim() !== '') onRow(JSON.parse(rest))
}

/** `nothing` if the caller lacks the permission, or the service the feature. */
export const orNothing = async <Answer>(asking: Promise<Answer>, nothing: Answer): Promise<Answer> => {
  try {
    return await asking
  } catch (error) {
    if (error instanceof ApiError && [400, 403, 404].includes(error.status)) return nothing
    throw error
  }
}
