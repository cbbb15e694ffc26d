import type { JsonSchema } from '../../../kernel/json.ts'
import type { ChannelDocument } from '../../../kit/http/channel-document.ts'
import { writeBinaryFrame } from './binary-frame-writer.ts'
import { FRAME_BYTES_MAX, WINDOW_BYTES, WINDOW_FRAMES } from './channel.ts'
import { pointExample, POINTS_MAX, pointSchema } from './point-schema.ts'

const SEQ: JsonSchema = { type: 'integer', minimum: 1 }
const REJECTED = { index: 1, code: 'invalid', message: '/lat must be <= 90' }

const message = (type: string, members: { [name: string]: JsonSchema }, required: readonly string[]): JsonSchema => ({
  type: 'object',
  additionalProperties: false,
  required: ['type', ...required],
  properties: { type: { const: type }, ...members },
})

const BINARY_EXAMPLE = {
  externalId: 'bus-12',
  recordedAt: Date.parse(pointExample.recordedAt),
  lat: pointExample.lat,
  lng: pointExample.lng,
  speed: pointExample.speed,
}

/** Same layout as the table in docs/binary-frame.md. */
const BINARY = `The same meaning in columns, little-endian, without gaps. Header of 24 bytes: "WP", u8 version 1, u8 0; u32 seq (0: the next number); u32 number of points n; u16 kinds (bits: 1 accuracy, 2 altitude, 4 speed, 8 heading, 16 battery, 32 attributes); u16 number of trackers k (0: the credential's own); f64 base time, whole ms since the epoch. Then n each of: u32 recordedAt in ms after the base time; i32 lat and i32 lng in 1e-7 degree; i32 accuracy, i32 altitude (0.01 m) and i32 speed (0.01 m/s), each only with its kind; u16 flags (the kinds that the point has, 64 trip start, 128 trip finish); u16 place of its tracker, only if k > 0; u16 heading in 0.1 degree and u8 battery in 0.01, each only with its kind. Then k trackers: u8 0 and 16 bytes of a trackerId, or u8 1, u16 length and UTF-8 of an externalId. Then for each point with attributes, in order: u16 length and UTF-8 JSON.`

/** Messages of the channel /ingest, for the AsyncAPI document. */
export const INGEST_DOCUMENT: ChannelDocument = {
  path: '/ingest',
  title: 'Points in',
  description: `Sends points with a tracker's device key, a user's token or an organization's ingest key. A frame holds at most ${POINTS_MAX} points and ${FRAME_BYTES_MAX} bytes (else 1009). At most ${WINDOW_FRAMES} frames and ${WINDOW_BYTES} bytes may be unacknowledged (else 4429). What was acknowledged is durable; anything else may be sent again, a point with a tracker and time that are known changes nothing. A bare point or a list of points is a frame too, with the next number.`,
  messages: [
    {
      name: 'points',
      summary: '`seq` rises from 1 in each connection and may skip; without it the frame has the next number.',
      direction: 'in',
      payload: message(
        'points',
        { seq: SEQ, points: { type: 'array', maxItems: POINTS_MAX, items: { title: 'Point', ...pointSchema } } },
        ['points'],
      ),
      examples: [{ type: 'points', seq: 1, points: [pointExample] }],
    },
    {
      name: 'binaryPoints',
      summary: BINARY,
      direction: 'in',
      contentType: 'application/vnd.waymark.points',
      payload: {
        type: 'string',
        contentEncoding: 'base64',
        description: 'The bytes of the frame; base64 in this document only.',
      },
      examples: [Buffer.from(writeBinaryFrame(1, [BINARY_EXAMPLE])).toString('base64')],
    },
    {
      name: 'ready',
      summary: 'What may be unacknowledged at one time.',
      direction: 'out',
      payload: message('ready', { window: SEQ, windowBytes: SEQ }, ['window', 'windowBytes']),
      examples: [{ type: 'ready', window: WINDOW_FRAMES, windowBytes: WINDOW_BYTES }],
    },
    {
      name: 'ack',
      summary: 'Every frame up to `seq` is durable, its bad points aside.',
      direction: 'out',
      payload: message('ack', { seq: SEQ }, ['seq']),
      examples: [{ type: 'ack', seq: 12 }],
    },
    {
      name: 'reject',
      summary: 'Points of a frame that were not taken; comes before the acknowledgement that covers the frame.',
      direction: 'out',
      payload: message(
        'reject',
        {
          seq: SEQ,
          rejected: {
            type: 'array',
            items: {
              type: 'object',
              required: ['index', 'code', 'message'],
              properties: {
                index: { type: 'integer', minimum: 0 },
                code: {
                  enum: [
                    'invalid',
                    'too_old',
                    'too_far_ahead',
                    'unknown_tracker',
                    'forbidden_tracker',
                    'tracker_limit',
                  ],
                },
                message: { type: 'string' },
              },
            },
          },
        },
        ['seq', 'rejected'],
      ),
      examples: [{ type: 'reject', seq: 12, rejected: [REJECTED] }],
    },
  ],
}
