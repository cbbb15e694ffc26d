import type { ChannelDocument } from '../kit/http/channel-document.ts'
import { SUBSCRIBE_SCHEMA, UNSUBSCRIBE_SCHEMA } from './messages.ts'

const POSITION = {
  trackerId: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6a',
  name: 'Bus 12',
  recordedAt: '2026-05-04T09:30:00.000Z',
  lat: 52.2296756,
  lng: 21.0122287,
  speed: 11.2,
  lastSeenAt: '2026-05-04T09:30:00.000Z',
  status: 'online',
}
const CURSOR = 'AQAAAAcAAAA'
const message = (type: string, properties: object, required: string[]): { [keyword: string]: unknown } => ({
  type: 'object',
  required: ['type', 'id', ...required],
  properties: { type: { const: type }, id: { type: 'string', description: 'Of the subscription.' }, ...properties },
})
const POSITIONS = { type: 'array', items: { type: 'object' }, description: 'As GET /live-positions answers them.' }
const CURSORS = { type: 'string', description: 'Opaque; `since` of a later subscription.' }

/** The messages of the channel /live, for the AsyncAPI document. */
export const LIVE_DOCUMENT: ChannelDocument = {
  path: '/live',
  title: 'Live positions and events',
  description:
    'Positions by viewport, the newest of each tracker only, at most every `interval` ms; events as they happen, never conflated (the channels task and notification have none in this version). A slow reader gets positions less often; events beyond its buffer close it with 4429, and it comes back with `since`.',
  messages: [
    {
      name: 'subscribe',
      summary: 'Ask for positions and events; the same id replaces the subscription.',
      direction: 'in',
      payload: SUBSCRIBE_SCHEMA,
      examples: [
        {
          type: 'subscribe',
          id: 's1',
          bbox: [20.8, 52.1, 21.3, 52.4],
          channels: ['positions', 'geofence'],
          interval: 250,
        },
      ],
    },
    {
      name: 'unsubscribe',
      summary: 'End a subscription.',
      direction: 'in',
      payload: UNSUBSCRIBE_SCHEMA,
      examples: [{ type: 'unsubscribe', id: 's1' }],
    },
    {
      name: 'snapshot',
      summary: 'What is there now; in parts of 1,000, `more` on all but the last.',
      direction: 'out',
      payload: message('snapshot', { positions: POSITIONS, cursor: CURSORS, more: { const: true } }, [
        'positions',
        'cursor',
      ]),
      examples: [{ type: 'snapshot', id: 's1', positions: [POSITION], cursor: CURSOR }],
    },
    {
      name: 'positions',
      summary: 'What moved since; `gone` names trackers that left the box or the sight of the caller.',
      direction: 'out',
      payload: message(
        'positions',
        { positions: POSITIONS, cursor: CURSORS, gone: { type: 'array', items: { type: 'string' } } },
        ['positions', 'cursor'],
      ),
      examples: [
        {
          type: 'positions',
          id: 's1',
          cursor: CURSOR,
          positions: [POSITION],
          gone: ['0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6b'],
        },
      ],
    },
    {
      name: 'event',
      summary:
        'Something happened, as its GET answers it: a transition (`geofence`), a trip (`trip`), a back-test that is a job (`job`, with `status`, `total` and `processed`; for whoever may read it, whatever trackers, hub or team the subscription names), a run of an automation each time that it changes (`automation`: `pending`, also after an attempt that failed, then `succeeded`, `dead` or `skipped`, as GET /automation-log answers it), and an automation that the service deactivates (`automation` too, as GET /automation/{automationId} answers it, with `notice`; whatever trackers, hub or team the subscription names).',
      direction: 'out',
      payload: message('event', { channel: { type: 'string' }, cursor: CURSORS, event: { type: 'object' } }, [
        'channel',
        'cursor',
        'event',
      ]),
      examples: [
        {
          type: 'event',
          id: 's1',
          channel: 'geofence',
          cursor: CURSOR,
          event: { _id: '5f0e2c1a-6a0e-5c1f-8d3b-7a6b5c4d3e2f', type: 'entry' },
        },
        {
          type: 'event',
          id: 's1',
          channel: 'job',
          cursor: CURSOR,
          event: {
            _id: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6c',
            status: 'processing',
            total: 48_000_000,
            processed: 12_000_000,
          },
        },
        {
          type: 'event',
          id: 's1',
          channel: 'automation',
          cursor: CURSOR,
          event: {
            _id: '2f1c9a52-6a0e-5c1f-8d3b-7a6b5c4d3e2f',
            automationId: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6d',
            event: 'onGeofenceEntry',
            status: 'succeeded',
            attempts: [{ at: '2026-05-04T09:30:01.000Z', statusCode: 200, durationMs: 12 }],
          },
        },
        {
          type: 'event',
          id: 's1',
          channel: 'automation',
          cursor: CURSOR,
          event: {
            _id: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6d',
            name: 'Tell the yard',
            isActive: false,
            notice: { reason: 'failing', at: '2026-05-09T09:30:00.000Z' },
          },
        },
      ],
    },
    {
      name: 'gap',
      summary: 'Events since the cursor cannot be had without a gap; a new snapshot follows.',
      direction: 'out',
      payload: message('gap', {}, []),
      examples: [{ type: 'gap', id: 's1' }],
    },
  ],
}
