import { answered, dataAnswer, pageAnswer } from '../../kit/http/page-members.ts'
import type { TableStore } from '../../engines/table-store.ts'
import { answerList, NO_ROWS } from '../../kit/http/answer-list.ts'
import {
  chooseFields,
  FIELDS_QUERY,
  idSchema,
  type ListQuery,
  type ListShape,
  listQuerySchema,
  SORT_ORDER,
} from '../../kit/http/list-query.ts'
import { userOf } from '../../kit/http/request-context.ts'
import { type Route, route } from '../../kit/http/route.ts'
import { boundsSchema, timeBounds } from '../../kit/http/time-parameter.ts'
import type { UserCaller } from '../../kernel/caller.ts'
import { Failure } from '../../kernel/errors.ts'
import type { Row } from '../../kernel/table.ts'
import { POINT_ROW, TRACKER_FILTERS } from '../locations/schemas.ts'
import { type ComparedField, type TrackersAsked, trackersAsked } from '../trackers/views.ts'
import { TRIP, TRIP_EXAMPLE } from './schemas.ts'
import { TRIPS, type TripRow, tripShown } from './views.ts'

export interface TripServices {
  /** Trips as the history lists them; waits for a trip that it does not have yet. */
  tables: Pick<TableStore, 'find' | 'get'>
  /** Trackers visible to the caller. */
  visibleTrackers(caller: UserCaller): Promise<'all' | readonly string[]>
  /** Ids of the organization's trackers of users or vehicles; `null` means those without one. */
  trackersOf(organizationId: string, field: ComparedField, ids: readonly string[]): Promise<readonly string[]>
  seesTracker(caller: UserCaller, trackerId: string): Promise<boolean>
  /** Whether the organization has, or had, the tracker. */
  ownsTracker(organizationId: string, trackerId: string): Promise<boolean>
  tripToken(trackerId: string, startedAt: number): string
  readTripToken(token: string): { trackerId: string; startedAt: number } | undefined
  tripId(trackerId: string, startedAt: number): string
  /** Metres so far of running trips, in their order; undefined if not known yet. */
  runningMeters(trips: readonly TripRow[]): Promise<(number | undefined)[]>
  /** Resolves when the history has the points of a tracker that were logged before the call, or after a while. */
  pointsListed(trackerId: string): Promise<unknown>
  /** The text of a JSON array of the tracker's points between two times, oldest first. */
  readTrack(
    organizationId: string,
    trackerId: string,
    from: number,
    to: number,
    signal: AbortSignal,
  ): Promise<AsyncIterable<Uint8Array>>
}

const TAG = 'Location history'

const LIST: ListShape = {
  table: TRIPS,
  members: Object.keys(TRIP.properties as object),
  filters: {
    _id: { type: 'string', format: 'uuid' },
    state: { type: 'string', enum: ['running', 'finished'] },
    explicit: { type: 'boolean', description: 'Begun by points (`true`), or detected (`false`).' },
  },
  several: ['_id', 'state'],
  sortable: ['startedAt'],
}

type TripQuery = ListQuery & { from?: string; to?: string } & Pick<TrackersAsked, 'trackerId' | 'userId' | 'vehicleId'>

/** Running and finished trips, and the public view of a tracking token. */
export const tripRoutes = (services: TripServices): Route[] => [
  listRoute(services),
  readRoute(services),
  trackingRoute(services),
]

const listRoute = (services: TripServices): Route =>
  route<TripQuery>({
    method: 'GET',
    path: '/trips',
    operationId: 'listTrips',
    summary: 'List trips, newest first unless sortOrder says otherwise',
    tag: TAG,
    access: { permission: 'view/location-history', own: true },
    query: listQuerySchema(LIST, {
      ...TRACKER_FILTERS,
      ...boundsSchema('Trips that started'),
      sortOrder: { ...SORT_ORDER, default: 'desc' },
    }),
    answers: { 200: pageAnswer('A page of trips.', 'TripPage', TRIP, TRIP_EXAMPLE) },
    handler: async (request) => {
      const caller = userOf(request)
      const { from, to } = request.query
      const visible = await services.visibleTrackers(caller)
      const trackerIds = await trackersAsked(services.trackersOf, caller.organizationId, request.query, visible)
      const query: ListQuery = { sortBy: 'startedAt', ...request.query }
      const range =
        from === undefined && to === undefined ? undefined : { field: 'startedAt', ...timeBounds({ from, to }) }
      return answerList(LIST, {
        tables: trackerIds?.length === 0 ? NO_ROWS : services.tables,
        caller,
        query,
        path: '/api/v3/trips',
        present: (rows) => shown(services, rows as TripRow[]),
        where: trackerIds && { trackerId: trackerIds },
        range,
      })
    },
  })

const readRoute = (services: TripServices): Route =>
  route<{ fields?: string }>({
    method: 'GET',
    path: '/trip/{tripId}',
    operationId: 'readTrip',
    summary: 'Read a trip',
    tag: TAG,
    access: { permission: 'view/location-history', own: true },
    params: { tripId: idSchema('The id of the trip.') },
    query: FIELDS_QUERY,
    answers: { 200: dataAnswer('The trip.', TRIP, TRIP_EXAMPLE) },
    handler: async (request) => {
      const caller = userOf(request)
      const choose = chooseFields(LIST.members, request.query.fields)
      const row = await services.tables.get<TripRow>(
        TRIPS.name,
        caller.organizationId,
        request.params.tripId.toLowerCase(),
      )
      if (row === undefined || !(await services.seesTracker(caller, row.trackerId))) throw new Failure('not_found')
      const [trip] = await shown(services, [row])
      return { body: { data: choose(trip) } }
    },
  })

const trackingRoute = (services: TripServices): Route =>
  route({
    method: 'GET',
    path: '/location-history/tracking/{token}',
    operationId: 'readTracking',
    summary: 'Follow a trip by its tracking token',
    tag: TAG,
    description: 'The tracking token stands in for permission and hub, not for the access token.',
    access: 'user',
    params: {
      token: { type: 'string', minLength: 1, maxLength: 200, description: 'The `trackingToken` of the trip.' },
    },
    answers: {
      200: dataAnswer(
        'The trip, null until it is decided, and its points so far, oldest first.',
        answered('Tracking', {
          trip: { anyOf: [TRIP, { type: 'null' }] },
          points: { type: 'array', items: POINT_ROW },
        }),
        { trip: TRIP_EXAMPLE, points: [] },
      ),
    },
    handler: async (request) => {
      const { organizationId } = userOf(request)
      const named = services.readTripToken(request.params.token)
      if (named === undefined) throw new Failure('not_found')
      const { trackerId, startedAt } = named
      const row = await services.tables.get<TripRow>(TRIPS.name, organizationId, services.tripId(trackerId, startedAt))
      if (row === undefined) {
        if (!(await services.ownsTracker(organizationId, trackerId))) throw new Failure('not_found')
        return { body: { data: { trip: null, points: [] } } }
      }
      // The trip may come into the history before its last points.
      if (row.finishedAt !== null) await services.pointsListed(trackerId)
      const points = await services.readTrack(
        organizationId,
        trackerId,
        startedAt,
        row.finishedAt ?? Number.MAX_SAFE_INTEGER,
        request.signal,
      )
      const [trip] = await shown(services, [row])
      return { headers: { 'content-type': 'application/json' }, stream: trackingBody(trip, points) }
    },
  })

/** The body as a stream: a long trip is never held as a whole. */
async function* trackingBody(trip: object, points: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array | string> {
  yield `{"status":true,"data":{"trip":${JSON.stringify(trip)},"points":`
  yield* points
  yield '}}'
}

const shown = async (services: TripServices, rows: readonly TripRow[]): Promise<Row[]> => {
  const running = rows.filter(({ state }) => state === 'running')
  const meters = await services.runningMeters(running)
  const metersOf = new Map(running.map((row, i) => [row, meters[i]]))
  return rows.map((row) => tripShown(row, services.tripToken(row.trackerId, row.startedAt), metersOf.get(row)))
}
