import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { createBrotliDecompress, createGunzip, createGzip } from 'node:zlib'
import { quoteString } from '../../../src/engines/chdb/parameters.ts'
import type { HistoryFormat, HistoryParameters, HistoryStore } from '../../../src/engines/history-store.ts'
import type { Failure } from '../../../src/kernel/errors.ts'
import { freePort } from '../free-port.ts'
import { formOf, valuesOf } from './parameters.ts'

/** What the front does wrong on demand, until it is told otherwise. */
export type FrontFault =
  /** Takes requests and never answers; cuts them off when it ends. */
  | 'hang'
  /** Cuts the connection in the middle of an answer, and without an answer to a write (which is done). */
  | 'cut'
  /** Answers 500 with a page of a proxy. */
  | 'proxyError'
  /** Refuses inserts with TOO_MANY_PARTS. */
  | 'tooManyParts'
  /** Ends answers with an exception behind their first bytes, marked with a tag as servers since 25.11 do. */
  | 'taggedException'
  /** The same without a tag, as older servers. */
  | 'bareException'

/** What the client asked for, beside the values of parameters. */
export interface FrontRequest {
  query: string
  /** Settings and the like in the address. */
  settings: { [name: string]: string }
  /** `Content-Encoding` and the type of the body. */
  encoding: string | undefined
  /** `Authorization`. */
  authorization: string | undefined
  isForm: boolean
}

export interface ClickhouseFront {
  url: string
  /** Requests that hang. */
  readonly hanging: number
  /** The last hundred, without pings: they come whenever the machine is slow. */
  readonly requests: readonly FrontRequest[]
  fault: FrontFault | undefined
  /** Milliseconds before each answer. */
  delayMs: number
  /** Stops listening and cuts every connection; `listen` takes the same port again. */
  refuse(): Promise<void>
  listen(): Promise<void>
  close(): Promise<void>
}

export interface FrontOptions {
  store: HistoryStore
  port?: number
  /** `X-ClickHouse-Server-Display-Name` and what `version()` answers. */
  version?: string
}

const TAG = 'waymarkfronttag1'
const ANSWER_PART_BYTES = 50_000
/** As the client asks it. */
const PING = `SELECT 'ping'`
const REQUESTS_MAX = 100

/**
 * The part of ClickHouse's HTTP interface that Waymark uses, with the engine in process behind it: queries in the address
 * or the body, parameters in the address or a form, formats, compression, exceptions with their numbers. It runs the real
 * SQL, so that only the transport is a stand-in.
 */
export const openClickhouseFront = async (options: FrontOptions): Promise<ClickhouseFront> => {
  const front = new Front({ ...options, port: options.port || (await freePort()) })
  await front.listen()
  return front
}

class Front implements ClickhouseFront {
  private current: FrontFault | undefined
  delayMs = 0
  readonly requests: FrontRequest[] = []
  private readonly server = createServer((request, response) => void this.serve(request, response))
  private readonly sockets = new Set<Socket>()
  private readonly hung = new Set<Socket>()
  private readonly store: HistoryStore
  private readonly version: string
  private readonly port: number

  constructor({ store, port, version = '25.3.6.56' }: FrontOptions & { port: number }) {
    this.store = store
    this.port = port
    this.version = version
    this.server.on('connection', (socket) => {
      this.sockets.add(socket)
      socket.on('close', () => this.sockets.delete(socket))
    })
  }

  get fault(): FrontFault | undefined {
    return this.current
  }

  set fault(fault: FrontFault | undefined) {
    this.current = fault
    for (const socket of this.hung) socket.destroy()
    this.hung.clear()
  }

  get hanging(): number {
    return this.hung.size
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`
  }

  async listen(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.server.once('error', reject)
      this.server.listen(this.port, '127.0.0.1', resolve)
    })
  }

  async refuse(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.server.close(() => resolve()))
    for (const socket of this.sockets) socket.destroy()
    await closed
  }

  async close(): Promise<void> {
    await this.refuse()
  }

  private async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const body = await bodyOf(request)
      if (this.fault === 'hang') return void this.hung.add(request.socket)
      if (this.delayMs > 0) await new Promise((resume) => setTimeout(resume, this.delayMs))
      if (this.fault === 'proxyError') return void response.writeHead(500).end('<html>Bad gateway</html>')
      await this.answer(request, body, response)
    } catch (error) {
      fail(response, error as Error)
    }
  }

  private async answer(request: IncomingMessage, body: Buffer, response: ServerResponse): Promise<void> {
    const address = new URL(request.url ?? '/', this.url).searchParams
    const form = formOf(request.headers['content-type'], body)
    const parameters = new Map([...address, ...form].filter(([name]) => name.startsWith('param_')))
    const query = address.get('query') ?? body.toString()
    if (query !== PING) this.record(request, query, address)
    const insert = /^INSERT INTO (\w+) FORMAT Native$/.exec(query)
    if (insert !== null) {
      if (this.fault === 'tooManyParts') throw new Error('Code: 252. DB::Exception: Too many parts. (TOO_MANY_PARTS)')
      const token = address.get('insert_deduplication_token') ?? ''
      await this.store.insert(insert[1], body, token)
      return this.done(request, response)
    }
    const sql = query.replaceAll('version()', quoteString(this.version))
    const values = valuesOf(sql, parameters)
    const [, asked, format] = /^([\s\S]*)\nFORMAT (\w+)$/.exec(sql) ?? []
    // Else what the engine itself is set to would be told.
    const text = asked && /\bsystem\.settings\b/.test(asked) ? `${asked} SETTINGS ${settingsOf(address)}` : asked
    if (text !== undefined) return this.stream(request, response, text, values, format as HistoryFormat, address)
    await this.store.command(onOneNode(sql), values)
    this.done(request, response)
  }

  private record({ headers }: IncomingMessage, query: string, address: URLSearchParams): void {
    const settings = Object.fromEntries([...address].filter(([name]) => !/^(query$|param_)/.test(name)))
    const isForm = headers['content-type']?.startsWith('multipart/form-data') === true
    this.requests.push({
      query,
      settings,
      encoding: headers['content-encoding'],
      authorization: headers.authorization,
      isForm,
    })
    if (this.requests.length > REQUESTS_MAX) this.requests.shift()
  }

  private done(request: IncomingMessage, response: ServerResponse): void {
    if (this.fault === 'cut') request.socket.destroy()
    else response.writeHead(200, { 'X-ClickHouse-Summary': '{}' }).end()
  }

  private async stream(
    request: IncomingMessage,
    response: ServerResponse,
    sql: string,
    values: HistoryParameters,
    format: HistoryFormat,
    settings: URLSearchParams,
  ): Promise<void> {
    const left = new AbortController()
    response.once('close', () => left.abort())
    const isGzip = /\bgzip\b/.test(request.headers['accept-encoding'] ?? '')
    const chunks = this.store.query(sql, values, format, left.signal)[Symbol.asyncIterator]()
    // The status is told only when the engine has begun to answer, as a server does.
    let next = await chunks.next()
    const headers: { [name: string]: string } = isGzip ? { 'Content-Encoding': 'gzip' } : {}
    if (this.fault === 'taggedException') headers['X-ClickHouse-Exception-Tag'] = TAG
    response.writeHead(200, headers)
    const out = isGzip ? createGzip({ level: 1 }) : response
    if (isGzip) out.pipe(response)
    try {
      for (; !next.done; next = await chunks.next()) {
        for (let at = 0; at < next.value.byteLength; at += ANSWER_PART_BYTES) {
          const isTaken = out.write(next.value.subarray(at, at + ANSWER_PART_BYTES))
          if (this.fault === 'cut') return void request.socket.destroy()
          if (this.fault === 'taggedException' || this.fault === 'bareException')
            return void out.end(exceptionOf(this.fault, format, settings))
          if (!isTaken && !left.signal.aborted) await once(out, 'drain', { signal: left.signal }).catch(() => undefined)
        }
      }
      out.end()
    } finally {
      await chunks.return?.()
    }
  }
}

/**
 * A statement for every node of a cluster as its one node runs it, without the coordination that replicas need: there is
 * no keeper in process. `Distributed` tables stay what they are.
 */
const onOneNode = (sql: string): string =>
  sql
    .replace(/ ON CLUSTER '[^']+'/g, '')
    .replace(/\bReplicated(\w*MergeTree)\('[^']*', '[^']*'(?:, )?([^)]*)\)/g, '$1($2)')

/** Those in the address that decide whether writes are durable, as a clause. */
const settingsOf = (address: URLSearchParams): string =>
  ['async_insert', 'insert_quorum', 'distributed_foreground_insert', 'max_memory_usage']
    .flatMap((name) => (address.has(name) ? [`${name} = ${quoteString(address.get(name) as string)}`] : []))
    .join(', ')

const exceptionOf = (fault: FrontFault, format: HistoryFormat, settings: URLSearchParams): string => {
  const message =
    'Code: 241. DB::Exception: Memory limit exceeded. (MEMORY_LIMIT_EXCEEDED) (version 25.3.6.56 (official build))'
  const isRow = format.startsWith('JSON') && settings.get('http_write_exception_in_output_format') !== '0'
  if (fault === 'bareException' && isRow) return `${JSON.stringify({ exception: message })}\n`
  if (fault === 'bareException') return `${message}\n`
  return `\r\n__exception__\r\n${TAG}\r\n${message}\n${message.length + 1} ${TAG}\r\n__exception__\r\n`
}

const DECOMPRESSIONS: { [encoding: string]: typeof createGunzip | typeof createBrotliDecompress | undefined } = {
  gzip: createGunzip,
  br: createBrotliDecompress,
}
const PART_BYTES = 256 * 1024

const bodyOf = async (request: IncomingMessage): Promise<Buffer> => {
  const decompress = DECOMPRESSIONS[request.headers['content-encoding'] ?? '']
  const parts: Buffer[] = []
  for await (const part of decompress ? request.pipe(decompress({ chunkSize: PART_BYTES })) : request)
    parts.push(part as Buffer)
  return Buffer.concat(parts)
}

/** The failure as a server words it: its number in a header, 503 and the like never used for a query that is wrong. */
const fail = (response: ServerResponse, error: Error): void => {
  const cause = (error as Failure).cause as Error | undefined
  const message = cause?.message ?? error.message
  const [, code = '1000'] = /Code: (\d+)/.exec(message) ?? []
  if (response.headersSent) return void response.destroy()
  const text = /DB::Exception/.test(message) ? message : `Code: ${code}. DB::Exception: ${message}. (UNKNOWN_EXCEPTION)`
  response.writeHead(500, { 'X-ClickHouse-Exception-Code': code }).end(`${text}\n`)
}
