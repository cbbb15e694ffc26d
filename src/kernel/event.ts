/** Actor and cause of an event. Every event but a batch of points carries it. */
export interface EventMetadata {
  organizationId?: string
  /** The user, tracker, key or part of the service that acted, such as `user:<id>` or `reactor:match-geofences`. */
  actor?: string
  /** Origin of the request: the client's address, proxies taken into account. */
  address?: string
  /** Shared by everything that one request set off. */
  $correlationId?: string
  /** The id of the event or request right before. */
  $causationId?: string
  /** Identifies a request under an Idempotency-Key, by keyed hashes and its time: kit/http/request-mark.ts. */
  request?: string
  /** For writes of automations: automations that led to it, and runs it may lead to (features/automations/chain.ts). */
  chain?: { depth: number; runs: number }
  /** W3C trace context of the request. */
  traceparent?: string
}

/** An event to append. Its id makes the append idempotent together with an expected revision. */
export interface NewEvent {
  id: string
  type: string
  /** JSON text in UTF-8, or packed columns when `isJson` is false. */
  data: Uint8Array
  isJson: boolean
  metadata: EventMetadata
}

/** An event as the log answers it. */
export interface RecordedEvent extends NewEvent {
  stream: string
  /** Place in its stream, from 0. */
  revision: number
  /** Place in the whole log; rises, with gaps. */
  position: number
  /** Time at which the log took it, ms since the epoch. */
  loggedAt: number
}

/** A fact of one stream, decoded: returned by deciders and read by projections. */
export interface Fact<Type extends string = string, Data = unknown> {
  type: Type
  data: Data
}

export const encodeJson = (data: unknown): Uint8Array => Buffer.from(JSON.stringify(data))

/** @throws SyntaxError when the bytes are not JSON. */
export const decodeJson = <Data>(bytes: Uint8Array): Data =>
  JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString()) as Data

const NOT_YET = {}
/** Key of the decoded data in a shared event. A WeakMap of as many events costs the collector of garbage far more. */
const DECODED = Symbol('decoded')

/** Marks an event object that several consumers read: the data that `dataOf` decodes is kept with it, not in copies. */
export const shareEvent = (event: RecordedEvent): void =>
  void Object.defineProperty(event, DECODED, { value: NOT_YET, writable: true })

/** The data of an event, decoded once for all readers of the same shared object: nobody may change it. */
export const dataOf = <Data>(event: RecordedEvent): Data => {
  const shared = event as { [DECODED]?: unknown }
  const known = shared[DECODED]
  if (known !== undefined && known !== NOT_YET) return known as Data
  const data = decodeJson<Data>(event.data)
  if (known === NOT_YET) shared[DECODED] = data
  return data
}

export const factOf = (event: RecordedEvent): Fact => ({ type: event.type, data: dataOf(event) })

/** The category of a stream: the part before the first dash, `hub` of `hub-0190…`. */
export const categoryOf = (stream: string): string => {
  const dash = stream.indexOf('-')
  return dash < 0 ? stream : stream.slice(0, dash)
}
