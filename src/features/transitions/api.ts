import { envelope, STREAM_PAGE_MEMBERS, UUID } from '../../kit/http/page-members.ts'
import type { HistoryReader } from '../../engines/history-store.ts'
import { chosenFields, FIELDS_PARAMETER, severalOf } from '../../kit/http/list-query.ts'
import { FURTHER_FORMATS, HISTORY_FORMATS, type HistoryFormat, historyReply } from '../../kit/http/history-answer.ts'
import { userOf } from '../../kit/http/request-context.ts'
import { type Answer, type Route, route } from '../../kit/http/route.ts'
import { boundsSchema, timeBounds } from '../../kit/http/time-parameter.ts'
import { TRACKERS_ASKED } from '../trackers/views.ts'
import type { UserCaller } from '../../kernel/caller.ts'
import type { JsonSchema } from '../../kernel/json.ts'
import { lowerCase } from '../../kernel/text.ts'
import { readTransitions } from './history-query.ts'
import { TRANSITION, TRANSITION_EXAMPLE } from './schemas.ts'
import { TRANSITION_MEMBERS, type TransitionMember } from './views.ts'

export interface TransitionServices {
  history: HistoryReader
  /** Trackers visible to the caller. */
  visibleTrackers(caller: UserCaller): Promise<'all' | readonly string[]>
}

interface TransitionQuery {
  _id?: readonly string[]
  trackerId?: readonly string[]
  geofenceId?: readonly string[]
  geofenceGroupId?: readonly string[]
  type?: readonly ('entry' | 'leave')[]
  from?: string
  to?: string
  format?: HistoryFormat
  order?: 'asc' | 'desc'
  limit?: number
  cursor?: string
  fields?: string
}

/** The engine is asked for one more, which must be a number that JSON can hold. */
const LIMIT_MAX = Number.MAX_SAFE_INTEGER - 1

const ALWAYS_THERE = { isAlwaysThere: true }

const QUERY: JsonSchema = {
  type: 'object',
  properties: {
    _id: severalOf('_id', { ...UUID, description: 'These transitions.' }, ALWAYS_THERE),
    trackerId: severalOf('trackerId', { ...UUID, description: 'Those of this tracker.' }, TRACKERS_ASKED),
    geofenceId: severalOf('geofenceId', { ...UUID, description: 'Those of this geofence.' }, ALWAYS_THERE),
    geofenceGroupId: severalOf(
      'geofenceGroupId',
      { ...UUID, description: 'Those of geofences that were of this group then.' },
      ALWAYS_THERE,
    ),
    type: severalOf('type', { type: 'string', enum: ['entry', 'leave'], description: 'Left out: both.' }, ALWAYS_THERE),
    ...boundsSchema('Made'),
    format: {
      type: 'string',
      enum: Object.keys(HISTORY_FORMATS),
      default: 'json',
      description: 'Chooses the content type.',
    },
    order: {
      type: 'string',
      enum: ['asc', 'desc'],
      description: 'Left out: newest first, in geojson and gpx oldest first.',
    },
    limit: {
      type: 'integer',
      minimum: 1,
      maximum: LIMIT_MAX,
      description: 'Left out: 500 in json, everything in the other formats.',
    },
    cursor: {
      type: 'string',
      maxLength: 4_000,
      description:
        '`nextCursor` of the page before; also the `Link` header of a page of up to 2 MiB names it, in every format.',
    },
    fields: { ...FIELDS_PARAMETER, description: `${FIELDS_PARAMETER.description} \`gpx\` has its own.` },
  },
  additionalProperties: false,
}

const ANSWER: Answer = {
  description: 'The transitions, as a stream.',
  schema: {
    title: 'TransitionPage',
    ...envelope({ data: { type: 'array', items: TRANSITION }, ...STREAM_PAGE_MEMBERS }),
  },
  example: { status: true, data: [TRANSITION_EXAMPLE], page: null, limit: 500, nextCursor: null },
  alsoAs: FURTHER_FORMATS,
  headers: ['Content-Disposition'],
}

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
    answers: { 200: ANSWER },
    handler: async (request) => {
      const caller = userOf(request)
      const {
        _id,
        trackerId,
        geofenceId,
        geofenceGroupId,
        type,
        from,
        to,
        format = 'json',
        order,
        limit,
        cursor,
        fields,
      } = request.query
      const asked = trackerId && lowerCase(trackerId)
      const chosen = chosenFields(TRANSITION_MEMBERS, fields) as TransitionMember[] | undefined
      const bounds = timeBounds({ from, to })
      const visible = await services.visibleTrackers(caller)
      const question = {
        ...bounds,
        type: type === undefined || new Set(type).size > 1 ? undefined : type[0],
        format,
        order,
        limit,
        cursor,
        asked,
        members: chosen && new Set(chosen),
        organizationId: caller.organizationId,
        trackerIds:
          asked === undefined ? visible : visible === 'all' ? asked : asked.filter((id) => visible.includes(id)),
        ids: _id && lowerCase(_id),
        geofenceIds: geofenceId && lowerCase(geofenceId),
        geofenceGroupIds: geofenceGroupId && lowerCase(geofenceGroupId),
      }
      const answer = await readTransitions(services.history, question, request.signal)
      return historyReply(answer, '/api/v3/geofence-events', request.query, 'geofence-events')
    },
  }),
]
