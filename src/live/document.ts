import { POSITION, POSITION_EXAMPLE } from '../features/locations/schemas.ts'
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
import type { EventDocument } from './feed.ts'
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

const payloadOf = ({ channel, description, schema }: EventDocument): JsonSchema => ({
  description,
  ...message('event', { channel: { const: channel }, cursor: CURSORS, event: schema }),
})

const examplesOf = ({ channel, examples }: EventDocument): object[] =>
  examples.map((event) => ({ type: 'event', id: 's1', channel, cursor: CURSOR, event }))

type Message = ChannelDocument['messages'][number]

const BEFORE: readonly Message[] = [
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
]

const eventMessage = (events: readonly EventDocument[]): Message => ({
  name: 'event',
  summary:
    'Something happened, as its GET answers it. `trackerIds`, `hubId` and `teamId` of the subscription choose events too, where they have a tracker; tasks are chosen by their own hub and team.',
  direction: 'out',
  payload: { oneOf: events.map(payloadOf) },
  examples: events.flatMap(examplesOf),
})

const GAP: Message = {
  name: 'gap',
  summary: `Events since the cursor cannot be had without a gap (they are gone, or there are more than ${REPLAY_EVENTS_MAX} of tasks, or of notifications); a new snapshot follows.`,
  direction: 'out',
  payload: message('gap', {}),
  examples: [{ type: 'gap', id: 's1' }],
}

export const liveDocument = (events: readonly EventDocument[]): ChannelDocument => ({
  path: '/live',
  title: 'Live positions and events',
  description: `Positions by viewport, the newest of each tracker only, at most every \`interval\` ms; events as they happen, never conflated. A slow reader gets positions less often; events beyond its buffer close it with 4429, and it comes back with \`since\`. A connection has at most ${SUBSCRIPTIONS_MAX} subscriptions and sends at most ${MESSAGES_PER_SECOND} messages a second (${MESSAGES_AT_ONCE} at once), of them ${SUBSCRIBES_PER_SECOND} subscribes (${SUBSCRIBES_AT_ONCE} at once); more close it with 4429.`,
  messages: [...BEFORE, eventMessage(events), GAP],
})
