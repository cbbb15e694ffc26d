import { Buffer } from 'node:buffer'
import type { HttpRequest, HttpResponse } from 'uWebSockets.js'
import type { Failure } from '../kernel/errors.ts'
import type { AddressOf, ClientAddress } from './address.ts'
import type { Allowance } from './limits.ts'
import { readHead } from './request-head.ts'

/** A proxy on this machine speaks for clients behind it. */
const PROXY_HEADERS = [
  'forwarded',
  'via',
  'x-real-ip',
  'x-client-ip',
  'true-client-ip',
  'cf-connecting-ip',
  'x-forwarded-host',
  'x-forwarded-port',
  'x-forwarded-proto',
  'x-forwarded-server',
]

/**
 * One request and the way back to its client. The request object of uWebSockets.js lives only until the first await, so
 * everything needed later is copied here; the response may be used until it has ended or was aborted.
 */
export class Exchange {
  readonly res: HttpResponse
  readonly method: string
  readonly path: string
  readonly queryText: string
  readonly headers: ReadonlyMap<string, string>
  /** Reason why nothing after the head may be read. */
  readonly fault: Failure | undefined
  readonly client: ClientAddress
  /** Rest of each rate limit after the request. */
  readonly allowances: Allowance[] = []
  /** The client is gone, or the answer is complete: the response must not be touched. */
  over = false
  private isAborted = false
  private abort: AbortController | undefined
  private readonly onOver: (() => void)[] = []

  constructor(res: HttpResponse, req: HttpRequest, addressOf: AddressOf) {
    this.res = res
    this.method = req.getCaseSensitiveMethod()
    this.path = req.getUrl()
    this.queryText = req.getQuery() ?? ''
    const { headers, fault } = readHead(req)
    this.headers = headers
    this.fault = fault
    this.client = addressOf(
      Buffer.from(res.getRemoteAddressAsText()).toString('latin1'),
      this.headers.get('x-forwarded-for'),
      this.headers.get('host'),
    )
    res.onAborted(() => {
      this.isAborted = true
      this.finish()
      this.abort?.abort()
    })
  }

  /** Aborts when the client goes away. Made at the first use: most handlers never look. */
  get signal(): AbortSignal {
    this.abort ??= new AbortController()
    if (this.isAborted) this.abort.abort()
    return this.abort.signal
  }

  /** Whether work that `signal` stopped ends in this way: nobody's failure. */
  isEndedBy(error: unknown): boolean {
    return this.isAborted && error === this.abort?.signal.reason
  }

  /** The client runs on this machine, and is no proxy for anybody else. */
  get isLocal(): boolean {
    return this.client.isLocal && !PROXY_HEADERS.some((name) => this.headers.has(name))
  }

  /** Length of the body as the client states it; undefined where it is sent in chunks. */
  get declaredBytes(): number | undefined {
    const length = this.headers.get('content-length')
    return length === undefined ? undefined : Number(length)
  }

  get hasBody(): boolean {
    return (this.declaredBytes ?? 0) > 0 || this.headers.has('transfer-encoding')
  }

  /** The bearer token, undefined where none is sent; another scheme is an empty token, which is never accepted. */
  get bearer(): string | undefined {
    return bearerOf(this.headers.get('authorization'))
  }

  whenOver(run: () => void): void {
    if (this.over) run()
    else this.onOver.push(run)
  }

  /** Call it when the answer has been handed over. */
  finish(): void {
    if (this.over) return
    this.over = true
    for (const run of this.onOver) run()
  }
}

const bearerOf = (authorization: string | undefined): string | undefined => {
  if (authorization === undefined) return undefined
  return /^bearer +(\S+) *$/i.exec(authorization)?.[1] ?? ''
}
