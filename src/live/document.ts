import { RUN, RUN_EXAMPLE } from '../features/automations/schemas.ts'
import { JOB_EXAMPLE, JOB_SCHEMA } from '../features/backtests/schemas.ts'
import { NOTIFICATION, NOTIFICATION_EXAMPLE } from '../features/notifications/schemas.ts'
import { POSITION, POSITION_EXAMPLE } from '../features/locations/schemas.ts'
import { TRANSITION, TRANSITION_EXAMPLE } from '../features/transitions/schemas.ts'
import { TRIP, TRIP_EXAMPLE } from '../features/trips/schemas.ts'
import type { JsonSchema } from '../kernel/json.ts'
import type { ChannelDocument } from '../kit/http/channel-document.ts'
import { answered, UUID } from '../kit/http/page-members.ts'
import {
  MESSAGES_AT_ONCE,
  MESSAGES_PER_SECOND,
  SUBSCRIBES_AT_ONCE,
  SUBSCRIBES_PER_SECOND,
  SUBSCRIPTIONS_MAX,
} from './client.ts'
import { REPLAY_EVENTS_MAX } from './log-feed.ts'
import { SUBSCRIBE_SCHEMA, UNSUBSCRIBE_SCHEMA } from './messages.ts'

const CURSOR = 'BQAAAAcA__8DAP__AwAAAAAAAAAA'
const CURSORS: JsonSchema = { type: 'string', description: 'Opaque; `since` of a later subscription.' }
const POSITIONS: JsonSchema = { type: 'array', items: POSITION }

const message = (type: string, members: { [name: string]: JsonSchema }, optional: readonly string[] = []): JsonSchema =>
  answered(
    undefined,
    { type: { const: type }, id: { type: 'string', description: 'Of the subscription.' }, ...members },
    optional,
  )

/** An automation has its schema in the OpenAPI document. */
const AUTOMATION: JsonSchema = {
  type: 'object',
  description: 'As `GET /automation/{automationId}` answers it, with `notice`.',
  properties: { _id: UUID, isActive: { const: false }, notice: { type: 'object' } },
  required: ['_id', 'isActive', 'notice'],
  additionalProperties: true,
}

/** A task has its schema in the OpenAPI document. */
const TASK: JsonSchema = {
  type: 'object',
  description: 'As `GET /task/{taskId}` answers it to the caller, after the change.',
  properties: {
    _id: UUID,
    version: { type: 'integer', minimum: 1 },
    title: { type: 'string' },
    state: { type: 'string' },
    hubId: UUID,
  },
  required: ['_id', 'version', 'title', 'state', 'hubId'],
  additionalProperties: true,
}

const GONE_TASK: JsonSchema = answered(undefined, {
  _id: UUID,
  gone: { const: true },
})

const TASK_EVENT =
  'A task each time that it changes. `gone` is the last that is heard of one that was deleted or left the sight of the caller, or of the subscription by its `hubId` or `teamId`. When the caller gets other hubs or teams, or begins or ceases to dispatch, `gap` says that tasks are to be read again.'

const event = (channel: string, description: string, shown: JsonSchema): JsonSchema => ({
  description,
  ...message('event', { channel: { const: channel }, cursor: CURSORS, event: shown }),
})

/** The messages of the channel /live, for the AsyncAPI document. */
export const LIVE_DOCUMENT: ChannelDocument = {
  path: '/live',
  title: 'Live positions and events',
  description: `Positions by viewport, the newest of each tracker only, at most every \`interval\` ms; events as they happen, never conflated. A slow reader gets positions less often; events beyond its buffer close it with 4429, and it comes back with \`since\`. A connection has at most ${SUBSCRIPTIONS_MAX} subscriptions and sends at most ${MESSAGES_PER_SECOND} messages a second (${MESSAGES_AT_ONCE} at once), of them ${SUBSCRIBES_PER_SECOND} subscribes (${SUBSCRIBES_AT_ONCE} at once); more close it with 4429.`,
  messages: [
    {
      name: 'subscribe',
      summary:
        'Ask for positions and events; answered by a snapshot, or by an error that names its id. The same id replaces the subscription: one that had no complete snapshot yet is ended by an empty last part.',
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
      payload: message('snapshot', { positions: POSITIONS, cursor: CURSORS, more: { const: true } }, ['more']),
      examples: [{ type: 'snapshot', id: 's1', positions: [POSITION_EXAMPLE], cursor: CURSOR }],
    },
    {
      name: 'positions',
      summary: 'What moved since; `gone` names trackers that left the box or the sight of the caller.',
      direction: 'out',
      payload: message(
        'positions',
        {
          cursor: CURSORS,
          positions: POSITIONS,
          gone: { type: 'array', items: UUID, description: 'Ids of trackers.' },
        },
        ['gone'],
      ),
      examples: [
        {
          type: 'positions',
          id: 's1',
          cursor: CURSOR,
          positions: [POSITION_EXAMPLE],
          gone: ['0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6b'],
        },
      ],
    },
    {
      name: 'event',
      summary:
        'Something happened, as its GET answers it. `trackerIds`, `hubId` and `teamId` of the subscription choose events too, where they have a tracker; tasks are chosen by their own hub and team.',
      direction: 'out',
      payload: {
        oneOf: [
          event('geofence', 'An entry or a leave.', TRANSITION),
          event('trip', 'A trip that started or finished.', TRIP),
          event('task', TASK_EVENT, { anyOf: [TASK, GONE_TASK] }),
          event(
            'notification',
            'What the caller is told in the application, and again when they have read it.',
            NOTIFICATION,
          ),
          event('job', 'A back-test that is a job, each time that it goes on, for whoever may read it.', JOB_SCHEMA),
          event('automation', 'A run each time that it changes, or an automation that the service deactivates.', {
            anyOf: [RUN, AUTOMATION],
          }),
        ],
      },
      examples: [
        { type: 'event', id: 's1', channel: 'geofence', cursor: CURSOR, event: TRANSITION_EXAMPLE },
        { type: 'event', id: 's1', channel: 'trip', cursor: CURSOR, event: TRIP_EXAMPLE },
        {
          type: 'event',
          id: 's1',
          channel: 'task',
          cursor: CURSOR,
          event: {
            _id: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6e',
            version: 3,
            title: 'Deliver 3 parcels',
            state: 'inProgress',
            hubId: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6f',
          },
        },
        {
          type: 'event',
          id: 's1',
          channel: 'task',
          cursor: CURSOR,
          event: { _id: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6e', gone: true },
        },
        { type: 'event', id: 's1', channel: 'notification', cursor: CURSOR, event: NOTIFICATION_EXAMPLE },
        { type: 'event', id: 's1', channel: 'job', cursor: CURSOR, event: JOB_EXAMPLE },
        { type: 'event', id: 's1', channel: 'automation', cursor: CURSOR, event: RUN_EXAMPLE },
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
      summary: `Events since the cursor cannot be had without a gap (they are gone, or there are more than ${REPLAY_EVENTS_MAX} of tasks, or of notifications); a new snapshot follows.`,
      direction: 'out',
      payload: message('gap', {}),
      examples: [{ type: 'gap', id: 's1' }],
    },
  ],
}
