import type { HistoryStore } from '../../engines/history-store.ts'
import { userOf } from '../../kit/request-context.ts'
import { envelope } from '../../kit/resource-routes.ts'
import { type Route, route } from '../../kit/route.ts'
import { timeParameter } from '../../kit/time-parameter.ts'
import type { UserCaller } from '../../kernel/caller.ts'
import type { JsonSchema } from '../../kernel/json.ts'
import { readTransitions, TRANSITION_FORMATS, type TransitionFormat } from './history-query.ts'

export interface TransitionServices {
  history: HistoryStore
  /** The trackers that a caller may see. */
  visibleTrackers(caller: UserCaller): Promise<'all' | readonly string[]>
}

interface TransitionQuery {
  trackerId?: string
  geofenceId?: string
  geofenceGroupId?: string
  type?: 'entry' | 'leave'
  from?: string
  to?: string
  format?: TransitionFormat
  order?: 'asc' | 'desc'
  limit?: number
  cursor?: string
}

const TIME: JsonSchema = { type: 'string', maxLength: 40, description: 'RFC 3339, or milliseconds since the epoch.' }
const UUID: JsonSchema = { type: 'string', format: 'uuid' }

const QUERY: JsonSchema = {
  type: 'object',
  properties: {
    trackerId: { type: 'string', maxLength: 40_000, description: 'One, or several separated by commas.' },
    geofenceId: UUID,
    geofenceGroupId: UUID,
    type: { type: 'string', enum: ['entry', 'leave'] },
    from: TIME,
    to: TIME,
    format: { type: 'string', enum: Object.keys(TRANSITION_FORMATS), default: 'json' },
    order: { type: 'string', enum: ['asc', 'desc'], description: 'Left out: newest first, in geojson oldest first.' },
    limit: { type: 'integer', minimum: 1, description: 'Left out: 500 in json, everything in the other formats.' },
    cursor: { type: 'string', maxLength: 4_000, description: '`nextCursor` of the page before.' },
  },
  additionalProperties: false,
}

const TRANSITION_SCHEMA: JsonSchema = {
  type: 'object',
  properties: {
    _id: UUID,
    trackerId: UUID,
    geofenceId: UUID,
    geofenceGroupId: UUID,
    type: { type: 'string', enum: ['entry', 'leave'] },
    at: { type: 'string', format: 'date-time' },
    cause: { type: 'string', enum: ['point', 'geofence', 'tracker'], description: 'A fix, an edit of the geofence, or the deletion of the tracker.' },
    point: { type: 'object', description: 'The fix that decided, as a row of the history shows it.' },
  },
}

const EXAMPLE = {
  _id: '5d6a4c1e-29c6-5a0f-8d6e-6f0a3f0f9a01',
  trackerId: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6a',
  geofenceId: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6b',
  geofenceGroupId: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6c',
  type: 'entry',
  at: '2026-01-01T08:00:00.000Z',
  cause: 'point',
  point: {
    _id: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6a.mjv5n280',
    trackerId: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6a',
    recordedAt: '2026-01-01T08:00:00.000Z',
    lat: 52.52,
    lng: 13.4,
  },
}

/** `GET /geofence-events`: the transitions that were made. */
export const transitionRoutes = (services: TransitionServices): Route[] => [
  route<TransitionQuery>({
    method: 'GET',
    path: '/geofence-events',
    operationId: 'listGeofenceEvents',
    summary: 'Read entries into geofences and leaves, newest first',
    tag: 'Geofences',
    access: { permission: 'view/geofence' },
    rollout: 'geofences',
    query: QUERY,
    answers: {
      200: {
        description: 'The transitions, as a stream.',
        schema: envelope({
          data: { type: 'array', items: TRANSITION_SCHEMA },
          page: { type: 'null', description: 'These are walked by cursor.' },
          limit: { type: 'integer', description: 'The limit in force.' },
          nextCursor: { type: ['string', 'null'] },
        }),
        example: { status: true, data: [EXAMPLE], page: null, limit: 500, nextCursor: null },
      },
    },
    handler: async (request) => {
      const caller = userOf(request)
      const { trackerId, geofenceId, geofenceGroupId, from, to, format = 'json', ...rest } = request.query
      const asked = trackerId?.split(',').map((id) => id.trim().toLowerCase())
      const visible = await services.visibleTrackers(caller)
      const trackerIds = asked === undefined ? visible : visible === 'all' ? asked : asked.filter((id) => visible.includes(id))
      const question = {
        ...rest,
        format,
        organizationId: caller.organizationId,
        trackerIds,
        geofenceIds: geofenceId === undefined ? undefined : [geofenceId],
        geofenceGroupIds: geofenceGroupId === undefined ? undefined : [geofenceGroupId],
        from: timeParameter('/from', from),
        to: timeParameter('/to', to),
      }
      const { contentType, body } = await readTransitions(services.history, question, request.signal)
      return { headers: { 'content-type': contentType }, stream: body }
    },
  }),
]
