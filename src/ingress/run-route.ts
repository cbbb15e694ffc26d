import type { Caller } from '../kernel/caller.ts'
import { assertNoFaults, Failure, invalid } from '../kernel/errors.ts'
import type { Logger } from '../kernel/logger.ts'
import type { Idempotency, IdempotentRequest, KeptAnswer, Run } from '../kit/http/idempotency.ts'
import { idSource } from '../kit/commands/ids.ts'
import { SETTLE_TIMEOUT_MS, type Settle } from '../kit/consumers/settle.ts'
import type { IdSource, Reply, RouteRequest } from '../kit/http/route.ts'
import { identityOf } from './authenticate.ts'
import { begunStream, type StreamEnded } from './begun-stream.ts'
import { type BodyReader, hashOf } from './body.ts'
import type { CompiledRoute } from './compile-route.ts'
import { assertPlain, assertType } from './content-type.ts'
import type { Headers } from './cors.ts'
import type { Exchange } from './exchange.ts'
import { parseJson } from './json-body.ts'
import { answerData, answerFailure, answerJson, type Answered } from './reply.ts'

export interface Call {
  exchange: Exchange
  route: CompiledRoute
  params: { [name: string]: string }
  reader: BodyReader | undefined
  now: number
  correlationId: string
  /** Routes `forDevices` only. */
  credential?: string
}

export interface StreamAnswer {
  status: number
  headers: Headers
  stream: AsyncIterable<Uint8Array | string>
  /** Absent where unknown. */
  bytes?: number
}

export interface RunOptions {
  idempotency: Idempotency
  settle: Settle
  logger: Logger
}

const KEY = /^[\x21-\x7e]{1,255}$/

/** Checks the input, runs the handler once for each Idempotency-Key, and waits until the writer can read the write. */
export const runRoute = async (
  call: Call,
  caller: Caller | undefined,
  options: RunOptions,
): Promise<Answered | StreamAnswer> => {
  const { params, query } = checkAddress(call)
  const requestWith = (body: unknown, run?: Run): RouteRequest =>
    requestOf(call, { caller, params, query, body, now: run?.now ?? call.now, run })
  const taken = await takeBody(call, requestWith)
  try {
    return await runOnce(call, caller, taken, (run) => requestWith(taken.body, run), options)
  } catch (error) {
    await taken.discard?.()
    throw error
  }
}

const runOnce = async (
  call: Call,
  caller: Caller | undefined,
  taken: Taken,
  make: (run?: Run) => RouteRequest,
  options: RunOptions,
): Promise<Answered | StreamAnswer> => {
  const repeat = await repeatOf(call, taken.hash, caller)
  if (repeat === undefined) return begunAnswer(call, await handle(call, make(), options))
  const begun = await options.idempotency.begin(repeat)
  if ('body' in begun) {
    await taken.discard?.()
    const { isBase64, body, ...kept } = begun
    return { ...kept, body: isBase64 === true ? Buffer.from(body, 'base64') : body }
  }
  const revokedToken = call.route.declaration.revokesToken === true ? call.exchange.bearer : undefined
  let answer: Answered | StreamAnswer
  try {
    answer = await begunAnswer(call, await handle(call, make(begun), options), (kept) =>
      recorded(options.logger, kept === undefined ? begun.open() : begun.done(kept, undefined)),
    )
  } catch (error) {
    if (error instanceof Failure && error.status < 500 && error.status !== 429)
      await recorded(options.logger, begun.done(keptOf(answerFailure(error)), undefined))
    else await recorded(options.logger, begun.open())
    throw error
  }
  if ('stream' in answer) return answer
  const isKept = typeof answer.body === 'string' && answer.status < 500 && answer.status !== 429
  await recorded(options.logger, isKept ? begun.done(keptOf(answer), revokedToken) : begun.open())
  return answer
}

/** The answer that may still be read with a token revoked by this very call; undefined for none. */
export const keptForRevoked = async (call: Call, { idempotency }: RunOptions): Promise<KeptAnswer | undefined> => {
  const token = call.exchange.bearer
  const repeat = token === undefined ? undefined : await repeatOf(call, () => hashOfBody(call), undefined)
  return repeat === undefined ? undefined : idempotency.answerForRevoked(token as string, repeat)
}

/** Whether this call was begun by the caller before, and has no answer yet. */
export const isBegun = async (call: Call, caller: Caller, { idempotency }: RunOptions): Promise<boolean> => {
  const repeat = await repeatOf(call, () => hashOfBody(call), caller)
  return repeat !== undefined && idempotency.isBegun(repeat)
}

const hashOfBody = async ({ reader }: Call): Promise<string> =>
  hashOf(reader === undefined ? Buffer.alloc(0) : await reader.bytes())

const checkAddress = ({
  route,
  params,
  exchange,
}: Call): { params: { [name: string]: string }; query: { [name: string]: unknown } } => {
  const checked = { ...params }
  // A parameter that no resource can have names a missing resource.
  if (route.params(checked).length > 0) throw new Failure('not_found')
  const query = parseQuery(exchange.queryText)
  assertNoFaults(route.query(query), 'The query')
  return { params: checked, query }
}

/** Repeated parameters become arrays. Without a prototype, so that no name has another meaning. */
const parseQuery = (text: string): { [name: string]: unknown } => {
  const query = Object.create(null) as { [name: string]: unknown }
  if (text === '') return query
  for (const [name, value] of new URLSearchParams(text)) {
    const before = query[name]
    if (before === undefined) query[name] = value
    else if (Array.isArray(before)) before.push(value)
    else query[name] = [before, value]
  }
  return query
}

/** The body of a request, read or received. */
interface Taken {
  body: unknown
  hash(): Promise<string>
  discard?(): Promise<void>
}

const takeBody = async (call: Call, requestWith: (body: unknown) => RouteRequest): Promise<Taken> => {
  const { receive } = call.route.declaration
  if (receive === undefined) {
    const { bytes, body } = await readBody(call)
    return { body, hash: () => hashOf(bytes, call.exchange.headers.get('content-type')) }
  }
  assertTypes(call)
  if (call.reader === undefined) throw noBody()
  const { body, fingerprint, discard } = await receive(requestWith(call.reader.pieces()) as never)
  return { body, hash: () => hashOf(Buffer.from(fingerprint)), discard }
}

const readBody = async (call: Call): Promise<{ bytes: Buffer; body: unknown }> => {
  const { route, reader } = call
  const none = Buffer.alloc(0)
  if (route.contentTypes.length === 0) return { bytes: none, body: undefined }
  if (reader !== undefined && route.bodyRequired) assertTypes(call)
  const bytes = reader === undefined ? none : await reader.bytes()
  if (bytes.length === 0) {
    if (route.bodyRequired) throw noBody()
    return { bytes, body: undefined }
  }
  if (!route.bodyRequired) assertTypes(call)
  if (route.body === undefined) return { bytes, body: bytes }
  const body = await parseJson(bytes, route.declaration.takesAnyNames)
  assertNoFaults(route.body(body))
  return { bytes, body }
}

const assertTypes = ({ route, exchange }: Call): void => {
  assertPlain(exchange.headers.get('content-encoding'))
  assertType(route, exchange.headers.get('content-type'))
}

const noBody = (): Failure => new Failure('invalid', { message: 'The request needs a body.' })

const requestOf = (
  { exchange, correlationId, credential }: Call,
  checked: {
    caller: Caller | undefined
    params: RouteRequest['params']
    query: RouteRequest['query']
    body: unknown
    now: number
    run?: Run
  },
): RouteRequest => ({
  caller: checked.caller as Caller,
  params: checked.params,
  query: checked.query,
  body: checked.body,
  headers: { get: (name) => exchange.headers.get(name.toLowerCase()) },
  credential,
  now: checked.now,
  ids: idsOf(checked.now, checked.run),
  correlationId,
  traceparent: traceparentOf(exchange),
  requestMark: checked.run?.mark,
  address: exchange.client.address,
  network: exchange.client.network,
  isLocal: exchange.isLocal,
  get signal() {
    return exchange.signal
  },
})

/** Most requests make no id: randomness is drawn at the first one. */
const idsOf = (now: number, { seed, isRepeat = false }: Partial<Run> = {}): IdSource => {
  let source: IdSource | undefined
  const next = (): string => {
    source ??= idSource(now, seed)
    return source.next()
  }
  return { isRepeat, ...(seed === undefined && { isRandom: true as const }), next }
}

const traceparentOf = ({ headers }: Exchange): string | undefined => {
  const value = headers.get('traceparent')
  return value !== undefined && /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/.test(value) ? value : undefined
}

const repeatOf = async (
  { route, params, exchange }: Call,
  hashBody: () => Promise<string>,
  caller: Caller | undefined,
): Promise<IdempotentRequest | undefined> => {
  const key = exchange.headers.get('idempotency-key')
  if (key === undefined || !route.idempotent) return undefined
  if (!KEY.test(key)) throw invalid('/Idempotency-Key', 'must be 1 to 255 visible ASCII characters')
  const bodyHash = await hashBody()
  return {
    key,
    caller: caller === undefined ? `address:${exchange.client.address}` : identityOf(caller),
    operationId: route.declaration.operationId,
    fingerprint: JSON.stringify([Object.entries(params).sort(), exchange.queryText, bodyHash]),
  }
}

interface Handled {
  reply: Reply
  isPending: boolean
}

const handle = async (call: Call, request: RouteRequest, options: RunOptions): Promise<Handled> => {
  const { handler, settles, settleTimeoutMs = SETTLE_TIMEOUT_MS } = call.route.declaration
  const reply = await handler(request as never)
  if (reply.wrote === undefined) return { reply, isPending: false }
  try {
    return { reply, isPending: !(await options.settle(reply.wrote, settleTimeoutMs, settles?.(request.params))) }
  } catch (error) {
    // The append is done: there is no error answer any more.
    options.logger.warn('an answer did not wait for what follows its write', {
      correlationId: call.correlationId,
      error: String(error),
    })
    return { reply, isPending: true }
  }
}

/** An answer, of a stream with its first piece. */
const begunAnswer = async (call: Call, handled: Handled, ended?: StreamEnded): Promise<Answered | StreamAnswer> => {
  const answer = answerOf(handled)
  const isRead = 'stream' in answer && call.exchange.method !== 'HEAD'
  return isRead ? { ...answer, stream: await begunStream(answer, ended) } : answer
}

const answerOf = ({ reply, isPending }: Handled): Answered | StreamAnswer => {
  const headers: Headers = {}
  for (const [name, value] of Object.entries(reply.headers ?? {})) headers[name.toLowerCase()] = value
  if (isPending) headers['waymark-pending'] = 'true'
  const status = reply.status ?? 200
  if (reply.stream !== undefined) return { status, headers, stream: reply.stream, bytes: reply.streamBytes }
  if (reply.raw !== undefined)
    return { status, headers: { 'content-type': 'application/octet-stream', ...headers }, body: reply.raw }
  if (reply.data !== undefined) return answerData(status, reply.data, reply.body ?? {}, headers)
  return answerJson(status, reply.body ?? {}, headers)
}

const keptOf = ({ status, headers, body }: Answered): KeptAnswer => ({ status, headers, body: body as string })

/** The work is done whether or not its answer can be kept. */
const recorded = async (logger: Logger, keeping: Promise<void>): Promise<void> => {
  try {
    await keeping
  } catch (error) {
    logger.warn('the answer to an Idempotency-Key could not be kept', { error: String(error) })
  }
}
