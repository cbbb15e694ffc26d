import { Buffer } from 'node:buffer'
import { STATUS_CODES } from 'node:http'
import type { HttpResponse } from 'uWebSockets.js'
import type { Failure } from '../kernel/errors.ts'
import type { Headers } from './cors.ts'
import type { Exchange } from './exchange.ts'

/** An answer in the form in which it is sent, and kept for an Idempotency-Key. */
export interface Answered {
  status: number
  headers: Headers
  /** Absent only for the HEAD of a stream. */
  body: string | Uint8Array | undefined
  /** Length in the answer to a HEAD, where the body is absent. */
  bytes?: number
}

const JSON_TYPE = 'application/json; charset=utf-8'

/** Part of a stream that is handed to the socket at once; the rest waits until the client has read. */
const STREAM_SLICE_BYTES = 64 * 1024
/** Smaller answers leave only after uWebSockets.js has parsed everything that came in with the request. */
const CORK_BYTES = 16 * 1024
/** While the socket is full, writes are probes: uWebSockets.js sends its queue on a write, and adds the new bytes. */
const PROBE_SLICE_BYTES = 1024

const SECURITY_HEADERS: Headers = {
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-store',
}

export const answerJson = (status: number, body: { [member: string]: unknown }, headers: Headers = {}): Answered => ({
  status,
  headers: { 'content-type': JSON_TYPE, ...headers },
  body: JSON.stringify({ status: true, ...body }),
})

const BEFORE_DATA = Buffer.from('{"status":true,"data":')

/** The same with the unchanged JSON of the member `data`. */
export const answerData = (
  status: number,
  data: Uint8Array,
  body: { [member: string]: unknown },
  headers: Headers,
): Answered => {
  const others = JSON.stringify(body)
  const rest = others === '{}' ? '}' : `,${others.slice(1)}`
  return {
    status,
    headers: { 'content-type': JSON_TYPE, ...headers },
    body: Buffer.concat([BEFORE_DATA, data, Buffer.from(rest)]),
  }
}

/** The error body of the contract; `extra` members come beside it. */
export const answerFailure = (failure: Failure): Answered => {
  const { errors, extra, retryAfterSeconds } = failure.details
  const headers: Headers = { 'content-type': JSON_TYPE }
  if (failure.status === 401) headers['www-authenticate'] = 'Bearer'
  const waitSeconds = retryAfterSeconds ?? (failure.status === 429 || failure.status === 503 ? 1 : undefined)
  if (waitSeconds !== undefined) headers['retry-after'] = String(Math.max(1, Math.ceil(waitSeconds)))
  const body = {
    ...extra,
    status: false,
    message: failure.message,
    code: failure.code,
    ...(errors === undefined ? {} : { errors }),
  }
  return { status: failure.status, headers, body: JSON.stringify(body) }
}

export interface SendOptions {
  /** Beside the answer's own, such as those for CORS. */
  headers: Headers
  /** Ends the connection after the answer. */
  closeConnection: boolean
}

export const sendAnswer = (exchange: Exchange, answer: Answered, { headers, closeConnection }: SendOptions): void => {
  if (exchange.over) return
  const { res } = exchange
  res.cork(() => {
    const bytes = answer.body === undefined ? answer.bytes : Buffer.byteLength(answer.body)
    const hasLength = bytes !== undefined && answer.status !== 204 && answer.status !== 304
    const isBare = !hasLength || exchange.method === 'HEAD'
    const connection: Headers = closeConnection && isBare ? { connection: 'close' } : {}
    // With a length of its own, uWebSockets.js would wait for the body, and cut the connection at its next request.
    const length: Headers = hasLength && isBare ? { 'content-length': String(bytes) } : {}
    writeHead(res, answer.status, SECURITY_HEADERS, headers, answer.headers, connection, length)
    if (isBare) res.endWithoutBody()
    else res.end(answer.body, closeConnection)
  })
  exchange.finish()
}

/** Answers at once, outside of an exchange, and ends the connection. */
export const sendWhole = (res: HttpResponse, { status, headers, body = '' }: Answered, isHead: boolean): void => {
  // uWebSockets.js takes the answer of a HEAD for none and would end the process.
  res.onAborted(() => undefined)
  res.cork(() => {
    writeHead(res, status, SECURITY_HEADERS, headers)
    if (isHead) res.endWithoutBody(Buffer.byteLength(body), true)
    else res.end(body, true)
  })
}

/**
 * Sends a whole answer and leaves the request open, for a client that still sends its body: it need not send all of it
 * to learn that it is refused. uWebSockets.js would end the request, and read on without end; so it takes the answer
 * for the status line. The connection has to be closed afterwards.
 */
export const sendAhead = (exchange: Exchange, { status, headers, body = '' }: Answered, more: Headers): void => {
  if (exchange.over) return
  const all: Headers = {
    ...SECURITY_HEADERS,
    ...more,
    ...headers,
    'content-length': String(Buffer.byteLength(body)),
    connection: 'close',
  }
  const head = Object.entries(all).map(([name, value]) => `${name}: ${withoutLineBreaks(value)}\r\n`)
  const text = `${statusLine(status)}\r\n${head.join('')}\r\n`
  exchange.res.cork(() => exchange.res.writeStatus(Buffer.concat([Buffer.from(text), Buffer.from(body)])))
}

/**
 * Answers a request whose end is not certain, and closes its connection before anything after its head is parsed: an
 * answer padded beyond the amount that uWebSockets.js collects is written at once. Call it before the first await.
 */
export const refuseAtOnce = (exchange: Exchange, failure: Failure): void => {
  const { status, headers, body } = answerFailure(failure)
  const { res } = exchange
  writeHead(res, status, SECURITY_HEADERS, headers)
  res.end(`${body}${' '.repeat(CORK_BYTES)}`, true)
  exchange.finish()
}

/** An answer whose bytes come one after the other. */
export interface Streamed {
  status: number
  headers: Headers
  stream: AsyncIterable<Uint8Array | string>
  /** Number of bytes, where known. */
  bytes?: number
}

/**
 * Sends the chunks of the stream, never more than a slice ahead of the client. Rejects when the stream fails; the
 * connection is then cut, so that the client does not take a part for the whole.
 */
export const sendStream = async (
  exchange: Exchange,
  { status, headers, stream, bytes }: Streamed,
  closeConnection: boolean,
): Promise<void> => {
  const { res } = exchange
  if (exchange.method === 'HEAD') {
    await stream[Symbol.asyncIterator]().return?.()
    return sendAnswer(exchange, { status, headers, body: undefined, bytes }, { headers: {}, closeConnection })
  }
  if (exchange.over) return void (await stream[Symbol.asyncIterator]().return?.())
  const writer = new StreamWriter(exchange, bytes)
  // When a body has begun, ending with `closeConnection` would write the header into it.
  const connection: Headers = closeConnection ? { connection: 'close' } : {}
  res.cork(() =>
    writeHead(res, status, { 'content-type': 'application/octet-stream' }, SECURITY_HEADERS, headers, connection),
  )
  try {
    for await (const chunk of stream) {
      if (chunk.length === 0) continue
      if (!(await writer.write(typeof chunk === 'string' ? Buffer.from(chunk) : chunk))) return
    }
    if (exchange.over) return
    if (bytes !== undefined && bytes > 0) throw new Error('the stream ended before its end')
    res.cork(() => res.end())
    exchange.finish()
  } catch (error) {
    if (!exchange.over) res.close()
    throw error
  }
}

/** Writes with backpressure. */
class StreamWriter {
  private readonly exchange: Exchange
  private readonly bytes: number | undefined
  private resume: (() => void) | undefined
  private isFull = false

  constructor(exchange: Exchange, bytes: number | undefined) {
    this.exchange = exchange
    this.bytes = bytes
    exchange.res.onWritable(() => {
      this.resume?.()
      return true
    })
    exchange.whenOver(() => this.resume?.())
  }

  /** False when the client is gone, or has all. */
  async write(bytes: Uint8Array): Promise<boolean> {
    for (let at = 0; at < bytes.length; ) {
      if (this.exchange.over) return false
      at += this.bytes === undefined ? this.writeSlice(bytes, at) : this.writePart(bytes.subarray(at), this.bytes)
      if (this.isFull) await new Promise<void>((resolve) => (this.resume = resolve))
      this.resume = undefined
    }
    return !this.exchange.over
  }

  private writeSlice(bytes: Uint8Array, at: number): number {
    const slice = bytes.subarray(at, at + (this.isFull ? PROBE_SLICE_BYTES : STREAM_SLICE_BYTES))
    // A small corked write answers before the socket has taken it; the rest then shows at the next one.
    this.exchange.res.cork(() => {
      this.isFull = !this.exchange.res.write(slice)
    })
    return slice.length
  }

  /** uWebSockets.js buffers nothing of a stream of known length: it answers how much of a part it took. */
  private writePart(part: Uint8Array, total: number): number {
    const { res } = this.exchange
    const before = res.getWriteOffset()
    let isTaken = true
    let isDone = false
    res.cork(() => {
      ;[isTaken, isDone] = res.tryEnd(part.subarray(0, STREAM_SLICE_BYTES), total)
    })
    if (isDone) {
      this.exchange.finish()
      return part.length
    }
    this.isFull = !isTaken
    return res.getWriteOffset() - before
  }
}

/** The last of several headers of one name counts. They are not merged: one object of all took 5 µs of each answer. */
const writeHead = (res: HttpResponse, status: number, ...all: readonly Headers[]): void => {
  res.writeStatus(statusLine(status))
  for (let i = 0; i < all.length; i++) {
    const headers = all[i]
    for (const name in headers) if (!isSetAfter(all, i, name)) res.writeHeader(name, withoutLineBreaks(headers[name]))
  }
}

const isSetAfter = (all: readonly Headers[], at: number, name: string): boolean => {
  for (let i = at + 1; i < all.length; i++) if (Object.hasOwn(all[i], name)) return true
  return false
}

const statusLine = (status: number): string => `${status} ${STATUS_CODES[status] ?? 'Unknown'}`

const withoutLineBreaks = (value: string): string => (/[\r\n\0]/.test(value) ? value.replace(/[\r\n\0]+/g, ' ') : value)
