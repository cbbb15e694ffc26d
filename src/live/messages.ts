import { boxOfDegrees } from '../geo/box.ts'
import type { FieldError } from '../kernel/errors.ts'
import { compileCheck } from '../kit/http/validate.ts'
import { CHANNELS, type ChannelName, type Wanted } from './live-event.ts'

export interface SubscribeMessage {
  type: 'subscribe'
  id: string
  bbox?: [number, number, number, number]
  trackerIds?: string[]
  hubId?: string
  teamId?: string
  channels: ChannelName[]
  interval?: number
  since?: string
}

const TRACKER_IDS_MAX = 10_000
const INTERVAL_DEFAULT_MS = 100

/** Schemas of a client's messages; AsyncAPI shows the same. */
export const SUBSCRIBE_SCHEMA = {
  type: 'object',
  additionalProperties: false,
  required: ['type', 'id', 'channels'],
  properties: {
    type: { const: 'subscribe' },
    id: { type: 'string', minLength: 1, maxLength: 100 },
    bbox: {
      type: 'array',
      items: { type: 'number', minimum: -180, maximum: 180 },
      minItems: 4,
      maxItems: 4,
      description: 'west, south, east, north in degrees',
    },
    trackerIds: { type: 'array', items: { type: 'string', maxLength: 100 }, maxItems: TRACKER_IDS_MAX },
    hubId: { type: 'string', maxLength: 100 },
    teamId: { type: 'string', maxLength: 100 },
    channels: { type: 'array', items: { enum: [...CHANNELS] }, minItems: 1, maxItems: CHANNELS.length },
    interval: { type: 'integer', minimum: 20, maximum: 10_000 },
    since: { type: 'string', maxLength: 30_000 },
  },
}

export const UNSUBSCRIBE_SCHEMA = {
  type: 'object',
  additionalProperties: false,
  required: ['type', 'id'],
  properties: { type: { const: 'unsubscribe' }, id: { type: 'string', minLength: 1, maxLength: 100 } },
}

const checkSubscribe = compileCheck(SUBSCRIBE_SCHEMA)
const checkUnsubscribe = compileCheck(UNSUBSCRIBE_SCHEMA)

export type ClientMessage =
  | { kind: 'subscribe'; message: SubscribeMessage }
  | { kind: 'unsubscribe'; id: string }
  /** Closes the connection. */
  | { kind: 'unreadable'; reason: string }
  /** Answered with an error, closes nothing. */
  | { kind: 'invalid'; id: string | undefined; message: string }

export const readMessage = (data: ArrayBuffer, isBinary: boolean): ClientMessage => {
  if (isBinary) return { kind: 'unreadable', reason: 'this channel takes text frames only' }
  let message: unknown
  try {
    message = JSON.parse(Buffer.from(data).toString())
  } catch {
    return { kind: 'unreadable', reason: 'a frame must be JSON' }
  }
  const { type, id } = (message ?? {}) as { type?: unknown; id?: unknown }
  if (type !== 'subscribe' && type !== 'unsubscribe')
    return { kind: 'unreadable', reason: 'type must be subscribe, unsubscribe or auth' }
  const faults = type === 'subscribe' ? checkSubscribe(message) : checkUnsubscribe(message)
  if (faults.length > 0) return invalid(id, faults[0])
  if (type === 'unsubscribe') return { kind: 'unsubscribe', id: id as string }
  const subscribe = message as SubscribeMessage
  if (subscribe.bbox !== undefined && !isBox(subscribe.bbox))
    return invalid(id, { path: '/bbox', message: 'must be west, south, east, north' })
  return { kind: 'subscribe', message: subscribe }
}

export const wantedOf = (message: SubscribeMessage): Wanted => ({
  id: message.id,
  channels: new Set(message.channels),
  viewport: message.bbox && boxOfDegrees(...message.bbox),
  trackerIds: message.trackerIds && new Set(message.trackerIds.map((id) => id.toLowerCase())),
  hubId: message.hubId?.toLowerCase(),
  teamId: message.teamId?.toLowerCase(),
  intervalMs: message.interval ?? INTERVAL_DEFAULT_MS,
})

const isBox = ([, south, , north]: number[]): boolean => south >= -90 && north <= 90 && south <= north

const invalid = (id: unknown, { path, message }: FieldError): ClientMessage => ({
  kind: 'invalid',
  id: typeof id === 'string' ? id : undefined,
  message: `${path} ${message}`.trim(),
})
