import { Ajv } from 'ajv'
import { CHANNELS, type ChannelName } from './event-ring.ts'
import { boxOfDegrees } from '../geo/box.ts'
import type { Wanted } from './subscription.ts'

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

/** Schemas of what a client sends; AsyncAPI shows the same. */
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

const ajv = new Ajv({ strict: false })
const isSubscribe = ajv.compile<SubscribeMessage>(SUBSCRIBE_SCHEMA)
const isUnsubscribe = ajv.compile<{ type: 'unsubscribe'; id: string }>(UNSUBSCRIBE_SCHEMA)

export type ClientMessage =
  | { kind: 'subscribe'; message: SubscribeMessage }
  | { kind: 'unsubscribe'; id: string }
  /** Closes the connection. */
  | { kind: 'unreadable'; reason: string }
  /** Answered with an error, closes nothing. */
  | { kind: 'invalid'; id: string | undefined; message: string }

/** Reads one frame of a client. */
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
  if (type === 'unsubscribe')
    return isUnsubscribe(message) ? { kind: 'unsubscribe', id: message.id } : invalid(id, isUnsubscribe.errors)
  if (!isSubscribe(message)) return invalid(id, isSubscribe.errors)
  if (message.bbox !== undefined && !isBox(message.bbox))
    return invalid(id, [{ instancePath: '/bbox', message: 'must be west, south, east, north' }])
  return { kind: 'subscribe', message }
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

const invalid = (
  id: unknown,
  errors: { instancePath: string; message?: string }[] | null | undefined,
): ClientMessage => {
  const [error] = errors ?? []
  return {
    kind: 'invalid',
    id: typeof id === 'string' ? id : undefined,
    message: `${error?.instancePath ?? ''} ${error?.message ?? 'is not valid'}`.trim(),
  }
}
