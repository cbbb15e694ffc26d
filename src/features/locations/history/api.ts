import { dataAnswer, envelope, STREAM_PAGE_MEMBERS } from '../../../kit/http/page-members.ts'
import type { HistoryReader } from '../../../engines/history-store.ts'
import type { UserCaller } from '../../../kernel/caller.ts'
import { Failure, invalid } from '../../../kernel/errors.ts'
import type { JsonSchema } from '../../../kernel/json.ts'
import { BBOX_PARAMETER, boxParameter } from '../../../kit/http/bbox-parameter.ts'
import {
  chooseFields,
  chosenFields,
  FIELDS_PARAMETER,
  FIELDS_QUERY,
  idSchema,
  severalOf,
} from '../../../kit/http/list-query.ts'
import { FURTHER_FORMATS, HISTORY_FORMATS, type HistoryFormat, historyReply } from '../../../kit/http/history-answer.ts'
import { userOf } from '../../../kit/http/request-context.ts'
import { route, type Route } from '../../../kit/http/route.ts'
import { boundsSchema, timeBounds } from '../../../kit/http/time-parameter.ts'
import { readHistory, readPoint, type HistoryQuestion, type HistoryScope } from './query.ts'
import { POINT_MEMBERS, type PointMember } from './point-json.ts'
import { type ComparedField, type TrackersAsked, trackersAsked } from '../../trackers/views.ts'
import { HUB_FILTER, POINT_ROW, POINT_ROW_EXAMPLE, TRACKER_FILTERS } from '../schemas.ts'

export interface HistoryApiServices {
  history: HistoryReader
  /** Trackers whose points the caller may see. */
  visibleTrackers(caller: UserCaller): Promise<'all' | readonly string[]>
  /** Ids of the organization's trackers of users, vehicles or hubs; `null` means those without one. */
  trackersOf(organizationId: string, field: ComparedField, ids: readonly string[]): Promise<readonly string[]>
  /** Names of trackers, in the order of the ids; undefined for those that are gone. */
  trackerNames(organizationId: string, trackerIds: readonly string[]): Promise<(string | undefined)[]>
}

interface HistoryQuery extends Omit<TrackersAsked, 'teamId'> {
  _id?: readonly string[]
  from?: string
  to?: string
  bbox?: string
  simplify?: number
  interval?: number
  format?: HistoryFormat
  geometry?: 'points' | 'lines'
  order?: 'asc' | 'desc'
  limit?: number
  cursor?: string
  fields?: string
}

/** The engine is asked for one more, which must be a number that JSON can hold. */
const LIMIT_MAX = Number.MAX_SAFE_INTEGER - 1
const VIEW = { permission: 'view/location-history', own: true } as const

const POINT_ID: JsonSchema = { type: 'string', maxLength: 100, 'x-commas': true, description: 'These points.' }

const QUERY: JsonSchema = {
  type: 'object',
  additionalProperties: false,
  properties: {
    _id: severalOf('_id', POINT_ID, { isAlwaysThere: true }),
    ...TRACKER_FILTERS,
    ...HUB_FILTER,
    ...boundsSchema('Points recorded'),
    bbox: BBOX_PARAMETER,
    simplify: {
      type: 'number',
      minimum: 0,
      maximum: 1_000_000,
      description: 'Tolerance in metres: no point that is left out lies further from the line that is answered.',
    },
    interval: {
      type: 'number',
      exclusiveMinimum: 0,
      maximum: 31_536_000,
      description: 'Seconds: the first point of each step, of each tracker.',
    },
    format: { type: 'string', enum: Object.keys(HISTORY_FORMATS), description: 'Left out: `json`.' },
    geometry: {
      type: 'string',
      enum: ['points', 'lines'],
      description:
        'Of `geojson`: a Point for each row (the default), or a LineString for each piece of a track (cut at trips and at gaps of over 10 minutes; `coordinateProperties.times` has the time of each position), thinned out by `simplify`.',
    },
    order: {
      type: 'string',
      enum: ['asc', 'desc'],
      description: 'By time. Left out: newest first, in `geojson` and `gpx` oldest first.',
    },
    limit: {
      type: 'integer',
      minimum: 1,
      maximum: LIMIT_MAX,
      description: 'Left out: 500 in `json`, everything in the other formats.',
    },
    cursor: {
      type: 'string',
      maxLength: 500,
      description:
        '`nextCursor` of the page before; also the `Link` header of a page of up to 2 MiB names it, in every format.',
    },
    fields: { ...FIELDS_PARAMETER, description: `${FIELDS_PARAMETER.description} \`gpx\` and lines have their own.` },
  },
}

export const historyRoutes = (services: HistoryApiServices): Route[] => [
  route<HistoryQuery>({
    method: 'GET',
    path: '/location-histories',
    operationId: 'listLocationHistories',
    summary: 'Read points of the location history, as a stream',
    tag: 'Location history',
    access: VIEW,
    query: QUERY,
    answers: {
      200: {
        description: 'The points, newest first in `json`; `format` chooses another content type.',
        schema: {
          title: 'PointRowPage',
          ...envelope({ data: { type: 'array', items: POINT_ROW }, ...STREAM_PAGE_MEMBERS }),
        },
        example: { status: true, data: [POINT_ROW_EXAMPLE], page: null, limit: 500, nextCursor: null },
        alsoAs: FURTHER_FORMATS,
        headers: ['Content-Disposition'],
      },
    },
    handler: async (request) => {
      const question = questionOf(request.query)
      const scope = await scopeOf(services, userOf(request))
      const { organizationId } = scope
      const trackerIds = await trackersAsked(services.trackersOf, organizationId, request.query)
      const answer = await readHistory(
        services.history,
        { ...scope, lookUpNames: (ids) => services.trackerNames(organizationId, ids) },
        { ...question, trackerIds },
        request.now,
        request.signal,
      )
      return historyReply(answer, '/api/v3/location-histories', request.query, 'location-history')
    },
  }),
  route({
    method: 'GET',
    path: '/location-history/{pointId}',
    operationId: 'readLocationHistory',
    summary: 'Read one point',
    tag: 'Location history',
    access: VIEW,
    params: { pointId: idSchema('The `_id` of the point.') },
    query: FIELDS_QUERY,
    answers: { 200: dataAnswer('The point.', POINT_ROW, POINT_ROW_EXAMPLE) },
    handler: async (request) => {
      const choose = chooseFields(POINT_MEMBERS, request.query.fields as string | undefined)
      const row = await readPoint(services.history, await scopeOf(services, userOf(request)), request.params.pointId)
      if (row === undefined) throw new Failure('not_found')
      return { body: { data: choose(row) } }
    },
  }),
]

const scopeOf = async (
  services: Pick<HistoryApiServices, 'visibleTrackers'>,
  caller: UserCaller,
): Promise<HistoryScope> => ({
  organizationId: caller.organizationId,
  trackerIds: await services.visibleTrackers(caller),
})

const questionOf = (query: HistoryQuery): HistoryQuestion => {
  const {
    _id,
    trackerId,
    userId,
    vehicleId,
    hubId,
    simplify,
    interval,
    format = 'json',
    geometry,
    order,
    limit,
    cursor,
  } = query
  if (geometry !== undefined && format !== 'geojson') throw invalid('/geometry', 'belongs to format=geojson')
  const fields = chosenFields(POINT_MEMBERS, query.fields) as PointMember[] | undefined
  const members = fields && new Set(fields)
  return {
    ...timeBounds(query),
    ids: _id,
    members,
    bbox: query.bbox === undefined ? undefined : boxParameter(query.bbox),
    simplifyMeters: simplify,
    intervalSeconds: interval,
    format,
    geometry,
    order,
    limit,
    cursor,
    asked: [trackerId, userId, vehicleId, hubId, ...(_id ?? [])].map((ids) => ids?.toString().toLowerCase()),
  }
}
