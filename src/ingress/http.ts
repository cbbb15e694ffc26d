import { randomUUID } from 'node:crypto'
import type { HttpRequest, HttpResponse } from 'uWebSockets.js'
import type { Clock } from '../kernel/clock.ts'
import { Failure } from '../kernel/errors.ts'
import type { Logger } from '../kernel/logger.ts'
import { pause } from '../kit/consumers/retry.ts'
import type { Metrics } from '../kit/operations/metrics.ts'
import type { AddressOf } from './address.ts'
import type { Admission } from './authenticate.ts'
import { BodyReader, type BodyBudget } from './body.ts'
import { corsHeaders, optionsHeaders, type Headers } from './cors.ts'
import { deviceCredential } from './device-credential.ts'
import { Exchange } from './exchange.ts'
import { rateLimitHeaders } from './limits.ts'
import type { IngressLimits } from './options.ts'
import { answerFailure, refuseAtOnce, sendAhead, sendAnswer, sendStream, type Answered } from './reply.ts'
import type { Match, Router } from './router.ts'
import { isBegun, keptForRevoked, runRoute, type Call, type RunOptions, type StreamAnswer } from './run-route.ts'

export interface HttpOptions extends RunOptions {
  router: Router
  admission: Admission
  budget: BodyBudget
  limits: IngressLimits
  clock: Clock
  logger: Logger
  metrics: Metrics
  corsOrigins: readonly string[]
  isolatedHost: string | undefined
  isTls: boolean
  /** Paths that are WebSocket channels. */
  channelPaths: ReadonlySet<string>
  addressOf: AddressOf
}

/** Bytes of an unwanted body that are read before the answer: then the connection can be reused. */
const UNREAD_BYTES_MAX = 256 * 1024
/** Bytes read from a client that keeps sending although it was answered: some read the answer only after sending. */
const LINGER_BYTES_MAX = 64 * 1024 * 1024
const LINGER_MS = 1_000

export class HttpDoor {
  /** Connections are ended with their answer. */
  isClosing = false
  private readonly options: HttpOptions
  private running = 0
  private idle: (() => void)[] = []

  constructor(options: HttpOptions) {
    this.options = options
  }

  /** The request object is not used after this returns. */
  handle(res: HttpResponse, req: HttpRequest): void {
    const exchange = new Exchange(res, req, this.options.addressOf)
    if (exchange.fault !== undefined) return this.refuse(exchange, exchange.fault)
    const match = this.options.router.find(exchange.method === 'HEAD' ? 'GET' : exchange.method, exchange.path)
    this.running++
    void this.serve(exchange, match, this.readerOf(exchange, match))
      .catch((error: unknown) => this.broken(exchange, error))
      .finally(() => this.ended())
  }

  /** Resolves when no request is under way. */
  async drained(): Promise<void> {
    while (this.running > 0) await new Promise<void>((resolve) => this.idle.push(resolve))
  }

  private refuse(exchange: Exchange, fault: Failure): void {
    this.options.metrics.httpRequests.inc({ method: 'none', route: 'none', status: fault.status })
    refuseAtOnce(exchange, fault)
  }

  private broken(exchange: Exchange, error: unknown): void {
    this.options.logger.error('a request was not answered', { error: describe(error) })
    if (!exchange.over) exchange.res.close()
  }

  private ended(): void {
    this.running--
    if (this.running === 0) for (const resolve of this.idle.splice(0)) resolve()
  }

  private readerOf(exchange: Exchange, match: Match | undefined): BodyReader | undefined {
    if (!exchange.hasBody) return undefined
    const { clock, budget, limits } = this.options
    const bytesMax = match === undefined || match.route.contentTypes.length === 0 ? 0 : match.route.bodyBytesMax
    const reader = new BodyReader(exchange.res, exchange.declaredBytes, {
      clock,
      budget,
      network: exchange.client.network,
      bytesMax,
      timeoutMs: limits.bodyTimeoutMs,
      isStreamed: match?.route.declaration.receive !== undefined,
    })
    exchange.whenOver(() => reader.release())
    return reader
  }

  private async serve(exchange: Exchange, match: Match | undefined, reader: BodyReader | undefined): Promise<void> {
    const { clock, metrics } = this.options
    const startedAt = clock.monotonic()
    const correlationId = randomUUID()
    const answer = await this.answer(exchange, match, reader, clock.now(), correlationId)
    const labels = { method: match?.route.method ?? 'none', route: match?.route.path ?? 'none' }
    metrics.httpRequests.inc({ ...labels, status: answer.status })
    try {
      await this.send(exchange, reader, answer, correlationId)
    } catch (error) {
      if (!exchange.isEndedBy(error))
        this.options.logger.error('an answer broke off', {
          correlationId,
          operationId: match?.route.operationId,
          error: describe(error),
        })
    }
    exchange.finish()
    metrics.httpSeconds.observe(labels, (clock.monotonic() - startedAt) / 1000)
  }

  private async answer(
    exchange: Exchange,
    match: Match | undefined,
    reader: BodyReader | undefined,
    now: number,
    correlationId: string,
  ): Promise<Answered | StreamAnswer> {
    try {
      if (this.running > this.options.limits.requestsMax) throw new Failure('overloaded', { retryAfterSeconds: 1 })
      this.options.admission.countAddress(exchange)
      // Code at the origin of add-ons finds nothing there to act on.
      if (this.isIsolated(exchange) && match?.route.declaration.isolated !== true) throw new Failure('not_found')
      if (match === undefined) return this.withoutRoute(exchange)
      return await this.run({ exchange, route: match.route, params: match.params, reader, now, correlationId })
    } catch (error) {
      // Nobody reads it; it gets the status by which proxies count a request that its client closed.
      if (exchange.isEndedBy(error)) return answerFailure(new Failure('internal', { status: 499 }))
      const failure = this.failureOf(error, match, correlationId)
      return answerFailure(match?.route.declaration.forDevices === true ? laterForDevices(failure) : failure)
    }
  }

  private async run(found: Call): Promise<Answered | StreamAnswer> {
    const { exchange, route, params, reader } = found
    const isOfDevice = route.declaration.forDevices === true
    const credential = isOfDevice ? await deviceCredential(exchange, params.key, reader) : exchange.bearer
    const call = isOfDevice ? { ...found, credential } : found
    let caller: Awaited<ReturnType<Admission['admit']>>
    try {
      caller = await this.options.admission.admit(exchange, route.declaration, credential)
    } catch (error) {
      const isRevoked = error instanceof Failure && error.code === 'unauthenticated'
      const answer = isRevoked ? await this.repeated(call) : undefined
      if (answer === undefined) throw error
      return answer
    }
    return runRoute(call, caller, this.options)
  }

  /** For a repeat of the call that revoked its own token: its answer, or its rest where a crash interrupted it. */
  private async repeated(call: Call): Promise<Answered | StreamAnswer | undefined> {
    if (call.route.declaration.revokesToken !== true) return undefined
    const kept = await keptForRevoked(call, this.options)
    if (kept !== undefined) return kept
    const caller = await this.options.admission.admitRevoked(call.exchange, call.route.declaration)
    return (await isBegun(call, caller, this.options)) ? runRoute(call, caller, this.options) : undefined
  }

  private isIsolated({ headers }: Exchange): boolean {
    const { isolatedHost } = this.options
    return isolatedHost !== undefined && headers.get('host')?.toLowerCase() === isolatedHost
  }

  private withoutRoute(exchange: Exchange): Answered {
    const { router, channelPaths, corsOrigins } = this.options
    const methods = router.methodsAt(exchange.path)
    if (methods.length === 0) {
      if (!channelPaths.has(exchange.path.replace(/\/$/, ''))) throw new Failure('not_found')
      const failure = new Failure('invalid', { status: 426, message: 'Open a WebSocket at this address.' })
      const answer = answerFailure(failure)
      return { ...answer, headers: { ...answer.headers, upgrade: 'websocket' } }
    }
    const origin = corsHeaders(corsOrigins, exchange.headers.get('origin'))
    const headers = optionsHeaders(methods, origin?.['access-control-allow-origin'] !== undefined)
    if (exchange.method === 'OPTIONS') return { status: 204, headers, body: '' }
    const answer = answerFailure(new Failure('method_not_allowed'))
    return { ...answer, headers: { ...answer.headers, ...headers } }
  }

  private failureOf(error: unknown, match: Match | undefined, correlationId: string): Failure {
    const fields = { correlationId, operationId: match?.route.operationId }
    if (!(error instanceof Failure)) {
      this.options.logger.error('a request failed unexpectedly', { ...fields, error: describe(error) })
      return new Failure('internal')
    }
    if (error.status >= 500)
      this.options.logger.warn('a request failed', {
        ...fields,
        code: error.code,
        error: error.message,
        cause: describe(error.cause),
      })
    return error
  }

  private async send(
    exchange: Exchange,
    reader: BodyReader | undefined,
    answer: Answered | StreamAnswer,
    correlationId: string,
  ): Promise<void> {
    const headers = this.commonHeaders(exchange, correlationId)
    const isUnread = reader !== undefined && !reader.complete && !(await reader.discarded(UNREAD_BYTES_MAX))
    const closeConnection = this.isClosing || isUnread
    if ('stream' in answer)
      return sendStream(exchange, { ...answer, headers: { ...headers, ...answer.headers } }, closeConnection)
    if (!isUnread || exchange.method === 'HEAD') return sendAnswer(exchange, answer, { headers, closeConnection })
    sendAhead(exchange, answer, headers)
    await this.linger(exchange, reader)
  }

  /** A connection that is closed while its client sends is reset, and the answer on its way lost with it. */
  private async linger(exchange: Exchange, reader: BodyReader): Promise<void> {
    if (!(await reader.discarded(LINGER_BYTES_MAX)) && !exchange.over) {
      exchange.res.pause()
      await pause(this.options.clock, LINGER_MS)
    }
    // Data written while uWebSockets.js parses leaves after that.
    await new Promise((resolve) => setImmediate(resolve))
    if (!exchange.over) exchange.res.close()
  }

  private commonHeaders(exchange: Exchange, correlationId: string): Headers {
    const headers: Headers = {
      'x-request-id': correlationId,
      ...corsHeaders(this.options.corsOrigins, exchange.headers.get('origin')),
      ...rateLimitHeaders(exchange.allowances),
    }
    if (this.options.isTls) headers['strict-transport-security'] = 'max-age=31536000'
    return headers
  }
}

/** Some devices delete the data that they have sent at any status of 4xx. */
const laterForDevices = (failure: Failure): Failure =>
  failure.status === 429 || failure.status === 408
    ? new Failure('overloaded', { ...failure.details, status: undefined, message: failure.message })
    : failure

const describe = (error: unknown): string | undefined => {
  if (error === undefined) return undefined
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}
