import type { Caller, UserCaller } from '../../kernel/caller.ts'
import { Failure } from '../../kernel/errors.ts'
import type { EventMetadata } from '../../kernel/event.ts'
import type { RouteRequest } from './route.ts'

/** Part of a request that goes into the metadata of its events. */
export type RequestOrigin = Pick<RouteRequest, 'correlationId' | 'traceparent'> &
  Partial<Pick<RouteRequest, 'address' | 'requestMark'>> & { caller?: Caller }

/** @throws Failure forbidden for a device's or a gateway's credential. */
export const userOf = (request: { caller: Caller }): UserCaller => {
  if (request.caller?.kind !== 'user') throw new Failure('forbidden', { message: 'This needs the token of a user.' })
  return request.caller
}

export const actorOf = (caller: Caller): string => {
  if (caller.kind === 'user') return `${caller.isService === true ? 'service' : 'user'}:${caller.userId}`
  return caller.kind === 'tracker' ? `tracker:${caller.trackerId}` : `ingestKey:${caller.keyId}`
}

/** The metadata of events that a request makes. A public request names its organization and actor itself. */
export const metadataOf = (
  request: RequestOrigin,
  organizationId = request.caller?.organizationId,
  actor?: string,
): EventMetadata => ({
  organizationId,
  actor: actor ?? (request.caller === undefined ? undefined : actorOf(request.caller)),
  address: request.address,
  request: request.requestMark,
  $correlationId: request.correlationId,
  $causationId: request.correlationId,
  traceparent: request.traceparent,
})

/** RFC 3339 in UTC with milliseconds. */
export const formatTime = (atMs: number): string => {
  if (atMs !== lastTime.atMs) lastTime = { atMs, text: new Date(atMs).toISOString() }
  return lastTime.text
}

/** All items of one request have its time. */
let lastTime = { atMs: Number.NaN, text: '' }
