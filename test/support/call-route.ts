import { randomUUID } from 'node:crypto'
import { systemClock } from '../../src/kernel/system-clock.ts'
import type { Clock } from '../../src/kernel/clock.ts'
import { type Caller, credentialKindOf, lacksSecondFactor } from '../../src/kernel/caller.ts'
import { assertForPrograms } from '../../src/ingress/authenticate.ts'
import { Failure } from '../../src/kernel/errors.ts'
import type { Settle } from '../../src/kit/consumers/settle.ts'
import { idSource } from '../../src/kit/commands/ids.ts'
import {
  isOpenForOwn,
  type Method,
  openedBy,
  type Reply,
  type Route,
  type RouteRequest,
} from '../../src/kit/http/route.ts'
import { assertValid, type Check } from '../../src/kit/http/validate.ts'
import type { JsonSchema } from '../../src/kernel/json.ts'
import { markOf } from '../../src/kit/http/request-mark.ts'
import { compileBody, compileParams } from '../../src/ingress/schemas.ts'
import { compileQuery } from '../../src/kit/http/compile-query.ts'

export interface CallOptions {
  caller?: Caller
  body?: unknown
  headers?: { [name: string]: string }
  /** Makes the ids of the request follow from it, as an Idempotency-Key does. */
  seed?: Buffer
  address?: string
  /** Aborted when the client leaves. */
  signal?: AbortSignal
}

/** What a client would see. Bodies are `any` on purpose: tests look into them freely. */
export interface CallAnswer {
  status: number
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers freely
  body: any
  headers: { [name: string]: string }
  /** Of an answer that comes as a stream. */
  stream?: AsyncIterable<Uint8Array | string>
  raw?: string | Uint8Array
  /** Of an answer that is a page. */
  text?: string
  /** False when what follows the write did not come in time. */
  applied: boolean
}

export interface RouteCallerOptions {
  routes: readonly Route[]
  clock?: Clock
  /** Lets a call wait for what follows its write. */
  settle?: Settle
  timeoutMs?: number
}

/** The ingress waits for two seconds: a test has no use for an answer that came before what it wrote. */
const SETTLE_LIMIT_MS = 60_000

/** Calls routes as the ingress does, without a socket: finds, authorizes, validates, runs, waits until applied, maps failures. */
export const routeCaller = ({
  routes,
  clock = systemClock,
  settle,
  timeoutMs = SETTLE_LIMIT_MS,
}: RouteCallerOptions) => {
  return async (method: Method, url: string, options: CallOptions = {}): Promise<CallAnswer> => {
    try {
      const { route, params, query } = find(routes, method, url)
      const now = clock.now()
      const headers = new Map(Object.entries(options.headers ?? {}).map(([name, value]) => [name.toLowerCase(), value]))
      const caller = options.caller ?? (await route.withoutToken?.({ headers, now }))
      authorize(route, caller)
      const checks = checksOf(route)
      assertValid(checks.query, query)
      if (route.params !== undefined) assertValid(checks.params, { ...params })
      if (checks.body !== undefined && (options.body !== undefined || route.bodyRequired !== false))
        assertValid(checks.body, options.body)
      const request = {
        caller: caller as never,
        params,
        query: query as never,
        body: options.body as never,
        headers,
        now,
        ids: idSource(now, options.seed, options.seed !== undefined),
        requestMark: options.seed && markOf(options.seed.toString('base64url'), { fingerprint: '', startedAt: now }),
        correlationId: randomUUID(),
        address: options.address ?? '127.0.0.1',
        network: options.address ?? '127.0.0.1',
        isLocal: true,
        signal: options.signal ?? new AbortController().signal,
      }
      const reply = await handled(route, request)
      const isApplied =
        reply.wrote === undefined ||
        settle === undefined ||
        (await settle(reply.wrote, timeoutMs, route.settles?.(params)))
      return {
        status: reply.status ?? 200,
        body: {
          status: true,
          ...(reply.data && { data: JSON.parse(Buffer.from(reply.data).toString()) }),
          ...(reply.body && JSON.parse(JSON.stringify(reply.body))),
        },
        headers: reply.headers ?? {},
        stream: reply.stream,
        raw: reply.raw,
        text: typeof reply.raw === 'string' ? reply.raw : undefined,
        applied: isApplied,
      }
    } catch (error) {
      return failed(error)
    }
  }
}

interface Checks {
  query: Check
  params: Check
  body: Check | undefined
}

const checksOfRoutes = new WeakMap<Route, Checks>()
const checksOfSchemas = new Map<string, Check>()

/** Each test has routes of its own with the same schemas, and compiling them took longer than the calls themselves. */
const checksOf = (route: Route): Checks => {
  const known = checksOfRoutes.get(route)
  if (known !== undefined) return known
  const checks = {
    query: compiledOnce('query', compileQuery, route.query ?? {}),
    params: compiledOnce('params', compileParams, route.params ?? {}),
    body: route.body && compiledOnce('body', compileBody, route.body),
  }
  checksOfRoutes.set(route, checks)
  return checks
}

const compiledOnce = <Schema extends JsonSchema>(
  kind: string,
  compile: (schema: Schema) => Check,
  schema: Schema,
): Check => {
  const key = `${kind} ${JSON.stringify(schema)}`
  const check = checksOfSchemas.get(key) ?? compile(schema)
  checksOfSchemas.set(key, check)
  return check
}

/** As the ingress does where a route takes its body as it comes. */
const handled = async (route: Route, request: RouteRequest<never, never>): Promise<Reply> => {
  if (route.receive === undefined) return route.handler(request)
  const received = await route.receive({ ...request, body: inPieces(request.body) })
  try {
    return await route.handler({ ...request, body: received.body as never })
  } catch (error) {
    await received.discard()
    throw error
  }
}

const PIECE_BYTES = 16 * 1024

async function* inPieces(body: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < body.byteLength; at += PIECE_BYTES) yield body.subarray(at, at + PIECE_BYTES)
}

const find = (routes: readonly Route[], method: Method, url: string) => {
  const { pathname, searchParams } = new URL(url, 'http://test')
  for (const route of routes) {
    for (const { method: itsMethod = route.method, path } of [
      { path: route.path, method: route.method },
      ...(route.aliases ?? []),
    ]) {
      if (itsMethod !== method) continue
      const found = new RegExp(`^${path.replace(/\{(\w+)\}/g, '(?<$1>[^/]+)')}/?$`).exec(pathname)
      if (found === null) continue
      const params = Object.fromEntries(
        Object.entries(found.groups ?? {}).map(([name, value]) => [name, decodeURIComponent(value)]),
      )
      return { route, params, query: queryOf(searchParams) }
    }
  }
  throw new Failure('not_found')
}

/** Repeated parameters become arrays. */
const queryOf = (parameters: URLSearchParams): { [name: string]: unknown } =>
  Object.fromEntries(
    [...new Set(parameters.keys())].map((name) => {
      const values = parameters.getAll(name)
      return [name, values.length === 1 ? values[0] : values]
    }),
  )

const authorize = ({ access, enrols, isPersonal }: Route, caller: Caller | undefined): void => {
  if (access === 'public' || access === 'operator') return
  if (caller === undefined) throw new Failure('unauthenticated')
  if (enrols !== true && lacksSecondFactor(caller)) throw new Failure('second_factor_required')
  if (credentialKindOf(caller) === 'service') assertForPrograms({ access, isPersonal })
  if (access === 'points') return
  if (caller.kind !== 'user') throw new Failure('forbidden')
  if (access === 'user' || isOpenForOwn(access, caller)) return
  if (!openedBy(access).some((one) => caller.permissions.has(one))) throw new Failure('forbidden')
}

const failed = (error: unknown): CallAnswer => {
  if (!(error instanceof Failure) || error.code === 'internal') throw error
  const { errors, retryAfterSeconds, extra } = error.details
  const headers: { [name: string]: string } =
    retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) }
  return {
    status: error.status,
    body: { status: false, message: error.message, code: error.code, errors, ...extra },
    headers,
    applied: true,
  }
}
