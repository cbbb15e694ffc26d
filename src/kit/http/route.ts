import type { Caller, UserCaller } from '../../kernel/caller.ts'
import type { JsonSchema } from '../../kernel/json.ts'

/**
 * Callers that a route admits. A route cannot be declared without one, so none can be open by oversight. `user`: any
 * signed-in user of the organization; `permission`: a user whose role holds it (`view/hub`), or the one in `or`, with
 * `own` also every other user, who gets only their own; `points`: senders of points (a user, a tracker's device key, an
 * ingest key); `operator`: the operational endpoints.
 */
export type Access = 'public' | 'user' | 'points' | 'operator' | { permission: string; or?: string; own?: true }

/** The permissions each of which opens a route. */
export const openedBy = (access: Access): string[] => {
  if (typeof access === 'string') return []
  return access.or === undefined ? [access.permission] : [access.permission, access.or]
}

/** Whether a route is open to a user who lacks its permission, for their own records; programs own nothing. */
export const isOpenForOwn = (access: Access, { isService }: Pick<UserCaller, 'isService'>): boolean =>
  typeof access !== 'string' && access.own === true && isService !== true

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** Makes the ids of one request; the same ones when the request is repeated under its Idempotency-Key. */
export interface IdSource {
  /** A UUIDv7 of the time of the (first) request. */
  next(): string
  /** Whether their purpose was begun before; absent where that is unknown, as in the steps of a process. */
  isRepeat?: boolean
  /** They are derived from nothing, so nobody could draw the same ones again. */
  isRandom?: true
}

export interface RouteRequest<Query = { [name: string]: unknown }, Body = unknown> {
  /** Present unless the route's access is `public` or `operator`. */
  caller: Caller
  params: { [name: string]: string }
  /** Checked and coerced by the schema of the route. */
  query: Query
  /** Parsed and checked JSON; for routes with `rawBody` the bytes. */
  body: Body
  headers: { get(name: string): string | undefined }
  /** The key that a device sent, for routes `forDevices`: some encrypt with it. */
  credential?: string
  /** Time of arrival of the request, ms since the epoch. */
  now: number
  ids: IdSource
  /** Shared by everything that the request sets off; goes into event metadata. */
  correlationId: string
  traceparent?: string
  /** Mark of a request that has an Idempotency-Key; goes into event metadata. */
  requestMark?: string
  /** The client's address, proxies taken into account. */
  address: string
  /** Identity of a client for limits: the address, or the /64 of an IPv6 one. */
  network: string
  /** The client runs on this machine, and is no proxy for others. */
  isLocal: boolean
  /** Aborts when the client is gone. */
  signal: AbortSignal
  /** Asked by code that walks over a whole list: rows are answered, and no JSON of them is made or kept. */
  takesRows?: true
}

/** The append of a request: the reply waits until the read models that it feeds have applied it. */
export interface Wrote {
  position: number
  types: readonly string[]
  /** Earlier appends of the same request to other streams. */
  before?: readonly Wrote[]
}

/**
 * A further consumer that has to follow a write before its reply, beside the read models: one whose stored checkpoint
 * has passed the write, or, for a consumer of one stream, has reached the end of the stream at the start of this step.
 */
export type Settlement = { consumer: string } | { consumer: string; stream: string; source: string }

export interface Reply {
  /** Default 200. */
  status?: number
  /** Members of the body beside `status: true`; absent for streams. */
  body?: { [member: string]: unknown }
  /** The JSON of the member `data`, which then stands before those of `body`. */
  data?: Uint8Array
  headers?: { [name: string]: string }
  /** Answers bytes as they come, with backpressure; `headers` should name the content type. */
  stream?: AsyncIterable<Uint8Array | string>
  /** Number of bytes of the stream, where that is known. */
  streamBytes?: number
  /** Answered as it is, in place of `body` (a page, a document, a small file); `headers` name the content type. */
  raw?: string | Uint8Array
  wrote?: Wrote
  /** The answer must not be kept for an Idempotency-Key in clear, nor logged (it carries a secret); answers are encrypted anyway. */
  secret?: boolean
}

/** Result of a route that took a body as a stream. */
export interface Received {
  /** The handler's body. */
  body: unknown
  /** Tells whether a request under the same Idempotency-Key sends the same. */
  fingerprint: string
  /** Takes back the result: no handler ran, or it failed. Never rejects. */
  discard(): Promise<void>
}

/** Headers of answers that the documentation explains. */
export type AnswerHeader =
  | 'Accept-Ranges'
  | 'Content-Disposition'
  | 'Content-Range'
  | 'ETag'
  | 'Link'
  | 'Location'
  | 'RateLimit'
  | 'RateLimit-Policy'
  | 'Retry-After'
  | 'Waymark-Pending'
  | 'WWW-Authenticate'
  | 'X-Request-Id'

export interface Answer {
  description: string
  /** Its `title`, where it is a name in Pascal case, names it in the documentation; so do those inside it. */
  schema?: JsonSchema
  example?: unknown
  /** Default `application/json`. */
  contentType?: string
  /** Further media types that the route answers in; without a schema they are text or bytes. */
  alsoAs?: { readonly [mediaType: string]: JsonSchema | undefined }
  /** Beside `Link` of every route with a cursor, and `Waymark-Pending` of writes. */
  headers?: readonly AnswerHeader[]
}

export interface Route {
  method: Method
  /** With `{name}` for parameters, below /api/v3 unless `root` is set. */
  path: string
  root?: boolean
  operationId: string
  summary: string
  /** Details beyond the summary; the admitted callers are added. */
  description?: string
  tag: string
  access: Access
  /** Each parameter's schema; absent parameters are refused. */
  params?: { [name: string]: JsonSchema }
  /** An object schema; unknown query parameters are refused. */
  query?: JsonSchema
  /** The schema of a JSON body; absent: the route takes no body. */
  body?: JsonSchema
  /** Schema that the documentation shows instead, where the handler checks more than the schema does. */
  bodyShown?: JsonSchema
  bodyExample?: unknown
  /** Default true for a body that has a schema. */
  bodyRequired?: boolean
  /** The handler looks at each member by itself: names like that of a prototype do not fail the whole body. */
  takesAnyNames?: boolean
  /** Takes the bytes as they are, of these content types. */
  rawBody?: { contentTypes: readonly string[] }
  /** Takes a `rawBody` as a stream, before the Idempotency-Key is looked at; it may be larger than memory. */
  receive?(request: RouteRequest<{ [name: string]: unknown }, AsyncIterable<Uint8Array>>): Promise<Received>
  /** Default 1 MiB. */
  bodyBytesMax?: number
  /** By status; the errors that every route can answer are added by the kit. */
  answers: { [status: number]: Answer }
  /** Public, and asks who somebody is: 401 for a wrong password, link or code, 403 where they may not come in. */
  signsIn?: true
  /** Whether an Idempotency-Key is honoured: default true for POST. */
  idempotent?: boolean
  /** The call revokes its own token (switching and creating an organization): for ten minutes that token may read the stored answer. */
  revokesToken?: boolean
  /** Caller of a request without a token; undefined: nobody. @throws Failure unauthenticated */
  withoutToken?(request: Pick<RouteRequest, 'headers' | 'now'>): Promise<UserCaller | undefined>
  /** Also open, with any token, to a client on this machine that is no proxy for others: it may stop the service. */
  forMachine?: true
  /** Refused with 404 unless this organization is in the rollout (paths that begin `/geofence`): checked after 401, before 403. */
  rollout?: 'geofences'
  /** Open to users who lack the second factor that their organization requires: they may do nothing else. */
  enrols?: boolean
  /** About the calling person: refused with 403 to service accounts. */
  isPersonal?: boolean
  /** For apps and devices: the key may stand where their settings allow; none is told to drop what it may resend. */
  forDevices?: true
  /** Answered at the origin of add-ons, which serves nothing else. */
  isolated?: boolean
  /** Also answers to these paths (the specification writes some operations under two names), each with its own operationId. */
  aliases?: { method?: Method; path: string; operationId: string }[]
  /** Consumers that the reply to a write waits for, beside the read models that its events feed, in this order. */
  settles?(params: RouteRequest['params']): readonly Settlement[]
  /** Longest wait before it answers with `Waymark-Pending`; default 2,000. */
  settleTimeoutMs?: number
  /** Answers the request; a Failure that it throws is the answer too. */
  handler(request: RouteRequest<never, never>): Promise<Reply>
}

export const route = <Query = { [name: string]: unknown }, Body = unknown>(
  declaration: Omit<Route, 'handler'> & { handler(request: RouteRequest<Query, Body>): Promise<Reply> },
): Route => declaration as unknown as Route
