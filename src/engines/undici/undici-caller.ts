import { lookup as systemLookup, type LookupAddress, type LookupOptions } from 'node:dns'
import type { LookupFunction } from 'node:net'
import type { Agent, buildConnector, Dispatcher } from 'undici'
import type { Clock } from '../../kernel/clock.ts'
import { addressGuard, literalAddress, type AddressGuard } from '../address-guard.ts'
import type { HttpCall, HttpCaller, HttpOutcome } from '../http-caller.ts'
import { RecentMap } from '../../kernel/recent-map.ts'

export interface UndiciCallerOptions {
  clock: Clock
  /** CIDR ranges that may be reached although they are special. */
  allow: readonly string[]
  /** Default: the system's resolver. */
  lookup?: (
    hostname: string,
    options: LookupOptions,
    done: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
  ) => void
}

const CONNECT_TIMEOUT_MS = 15_000
const KEEP_ALIVE_MS = 15_000
/** Bytes of an answer that are read to keep the connection; a longer one costs the connection. */
const ANSWER_READ_BYTES_MAX = 64 * 1024
const TARGETS_MAX = 1_000
const HEADER_BYTES_MAX = 16 * 1024

/** Calls by undici, which the first one loads; one pool of kept connections for each origin. */
export const undiciCaller = (options: UndiciCallerOptions): HttpCaller => {
  const guard = addressGuard(options.allow)
  let opened: ReturnType<typeof open> | undefined
  let isClosed = false
  const undici = () => (opened ??= open(guard, options.lookup ?? defaultLookup))
  const targets = new Targets(guard)
  // Else a late call would open connections that nobody closes.
  const closed = () => (isClosed ? 'the caller is closed' : undefined)
  return {
    refusal: (url) => targets.of(url).refusal,
    post: async (call) => {
      const { refusal = closed(), origin, path } = targets.of(call.url)
      if (refusal !== undefined) return { kind: 'failed', error: refusal }
      const { agent } = await undici()
      return post(agent, options.clock, { ...call, origin, path })
    },
    fetch: async (url, options) => {
      const { refusal = closed() } = targets.of(url)
      if (refusal !== undefined) throw new Error(refusal)
      const { agent, fetch } = await undici()
      const answer = await fetch(url, { ...options, redirect: 'manual', dispatcher: agent })
      return answer as unknown as Response
    },
    close: async () => {
      isClosed = true
      await (await opened)?.agent.destroy()
    },
  }
}

const open = async (guard: AddressGuard, lookup: Lookup) => {
  const { Agent, buildConnector, fetch } = await import('undici')
  const agent = new Agent({
    connect: guardedConnector(buildConnector, guard, lookup),
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveMaxTimeout: KEEP_ALIVE_MS,
    headersTimeout: 0,
    bodyTimeout: 0,
    maxHeaderSize: HEADER_BYTES_MAX,
    pipelining: 1,
  })
  return { agent, fetch }
}

type Lookup = NonNullable<UndiciCallerOptions['lookup']>

const defaultLookup: Lookup = (hostname, options, done) => {
  systemLookup(hostname, { ...options, all: true }, done)
}

interface Target {
  refusal?: string
  origin: string
  path: string
}

/** Parsed urls, the last ones remembered: most calls go to the same one as the call before. */
class Targets {
  private readonly guard: AddressGuard
  private readonly known = new RecentMap<string, Target>(TARGETS_MAX / 2)

  constructor(guard: AddressGuard) {
    this.guard = guard
  }

  of(url: string): Target {
    const known = this.known.get(url)
    if (known !== undefined) return known
    const target = targetOf(url, this.guard)
    this.known.set(url, target)
    return target
  }
}

const targetOf = (url: string, guard: AddressGuard): Target => {
  const refusal = refusalOf(url, guard)
  if (refusal !== undefined) return { refusal, origin: '', path: '' }
  const { origin, pathname, search } = new URL(url)
  return { origin, path: pathname + search }
}

const refusalOf = (text: string, guard: AddressGuard): string | undefined => {
  if (!URL.canParse(text)) return 'is not a URL'
  const url = new URL(text)
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return 'must begin with http:// or https://'
  if (url.username !== '' || url.password !== '') return 'must not carry a user name or password; send a header instead'
  const literal = literalAddress(url.hostname)
  if (literal !== undefined && !guard(literal)) return `names an address that may not be called (${literal})`
  if (literal === undefined && /(^|\.)localhost\.*$/.test(url.hostname) && !guard('127.0.0.1') && !guard('::1'))
    return 'names an address that may not be called (localhost)'
  return undefined
}

/** A connector that hands the system only addresses that the guard passes, and checks the connected one again. */
const guardedConnector = (
  build: typeof buildConnector,
  guard: AddressGuard,
  lookup: Lookup,
): buildConnector.connector => {
  const guardedLookup: LookupFunction = (hostname, options, done) => {
    lookup(hostname, options, (error, addresses) => {
      // A missing name and one that leads inside get the same words: else customers could list internal names.
      if (error !== null) return done(new RefusedAddress(), '')
      const passed = addresses.filter(({ address }) => guard(address))
      if (passed.length === 0) return done(new RefusedAddress(), '')
      if (options.all === true) return done(null, passed)
      done(null, passed[0].address, passed[0].family)
    })
  }
  const connect = build({ timeout: CONNECT_TIMEOUT_MS, lookup: guardedLookup } as buildConnector.BuildOptions)
  return (target, callback) => {
    const literal = literalAddress(target.hostname)
    if (literal !== undefined && !guard(literal)) return callback(new RefusedAddress(), null)
    connect(target, (...answer) => {
      const [error, socket] = answer
      if (error !== null) return callback(error, null)
      if (socket.remoteAddress !== undefined && guard(socket.remoteAddress)) return callback(null, socket)
      socket.destroy()
      callback(new RefusedAddress(), null)
    })
  }
}

class RefusedAddress extends Error {
  readonly code = 'REFUSED_ADDRESS'
  constructor() {
    super('the host has no address that may be called: its name does not exist, or leads to a special address')
  }
}

const post = (agent: Agent, clock: Clock, call: HttpCall & Target): Promise<HttpOutcome> =>
  new Promise((resolve) => {
    const answer = new AnswerHandler(call.answerBytesMax, (outcome) => {
      cancelDeadline()
      resolve(outcome)
    })
    const cancelDeadline = clock.after(call.deadlineMs, () => answer.giveUp(call.deadlineMs))
    try {
      agent.dispatch(
        { origin: call.origin, path: call.path, method: 'POST', headers: call.headers, body: call.body },
        answer,
      )
    } catch (error) {
      answer.settle({ kind: 'failed', error: describe(error) })
    }
  })

/** Collects the beginning of one answer; settles once. */
class AnswerHandler implements Dispatcher.DispatchHandler {
  private readonly chunks: Buffer[] = []
  private readonly bytesMax: number
  private readonly done: (outcome: HttpOutcome) => void
  private bytesRead = 0
  private statusCode: number | undefined
  private retryAfter: string | undefined
  private settled = false
  private controller: Dispatcher.DispatchController | undefined

  constructor(bytesMax: number, done: (outcome: HttpOutcome) => void) {
    this.bytesMax = bytesMax
    this.done = done
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller
    if (this.settled) controller.abort(new Error('the deadline is over'))
  }

  onResponseStart(
    _: Dispatcher.DispatchController,
    statusCode: number,
    headers: { [name: string]: string | string[] | undefined },
  ): void {
    if (statusCode < 200) return
    this.statusCode = statusCode
    const after = headers['retry-after']
    this.retryAfter = Array.isArray(after) ? after[0] : after
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.bytesRead < this.bytesMax) this.chunks.push(Buffer.from(chunk.subarray(0, this.bytesMax - this.bytesRead)))
    this.bytesRead += chunk.length
    if (this.bytesRead <= ANSWER_READ_BYTES_MAX) return
    this.settle(this.answered())
    controller.abort(new Error('the answer is longer than is read'))
  }

  onResponseEnd(): void {
    this.settle(this.answered())
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    this.settle(this.statusCode === undefined ? { kind: 'failed', error: describe(error) } : this.answered())
  }

  giveUp(deadlineMs: number): void {
    this.settle(
      this.statusCode === undefined
        ? { kind: 'failed', error: `no answer within ${deadlineMs / 1000} s` }
        : this.answered(),
    )
    this.controller?.abort(new Error('the deadline is over'))
  }

  settle(outcome: HttpOutcome): void {
    if (this.settled) return
    this.settled = true
    this.done(outcome)
  }

  private answered(): HttpOutcome {
    const answer = Buffer.concat(this.chunks).toString('utf8')
    return {
      kind: 'answered',
      statusCode: this.statusCode ?? 0,
      ...(this.retryAfter !== undefined && { retryAfter: this.retryAfter }),
      answer,
    }
  }
}

const describe = (error: unknown): string => {
  const first = error instanceof AggregateError ? error.errors[0] : error
  const { code, message } = first as { code?: string; message?: string }
  return (
    (code === undefined || code === 'REFUSED_ADDRESS' ? message : `${code}: ${message}`)?.slice(0, 200) ??
    'the call failed'
  )
}
