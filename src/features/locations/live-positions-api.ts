import type { TableStore } from '../../engines/table-store.ts'
import { seesHubs, type UserCaller } from '../../kernel/caller.ts'
import { invalid } from '../../kernel/errors.ts'
import type { JsonSchema } from '../../kernel/json.ts'
import { boxContains, boxOfDegrees, type Box } from '../../geo/box.ts'
import { toE7 } from '../../geo/coordinates.ts'
import { distanceMeters } from '../../geo/distance.ts'
import { userOf } from '../../kit/request-context.ts'
import { envelope } from '../../kit/resource-routes.ts'
import { route, type Route } from '../../kit/route.ts'
import { lastSeenAt, LATEST_POSITIONS, positionOf, TRACKERS_TABLE, type LatestPositionRow, type Position, type PositionTracker } from './views.ts'

export interface LivePositionsServices {
  tables: Pick<TableStore, 'scan' | 'getMany'>
  /** By the age of `lastSeenAt`. */
  statusAt: (lastSeenAt: number, now: number) => Position['status']
}

interface Query {
  bbox?: string
  hubId?: string
  teamId?: string
  status?: Position['status']
  near?: string
  radius?: number
  limit?: number
}

/** Rows whose trackers are looked up together. */
const PAGE_ROWS = 500
const LIMIT_MAX = 1_000_000

/** `GET /live-positions`: the last position of each tracker that the caller sees. */
export const livePositionsRoute = (services: LivePositionsServices): Route =>
  route<Query>({
    method: 'GET',
    path: '/live-positions',
    operationId: 'listLivePositions',
    summary: 'The last position of each tracker; all of them unless limit is given',
    tag: 'Location history',
    access: { permission: 'view/location-history' },
    query: querySchema,
    answers: { 200: { description: 'Positions, by tracker, or with near the nearest first.', schema: envelope({ data: { type: 'array', items: positionSchema } }), example } },
    handler: async (request) => {
      const filter = filterOf(request.query)
      const positions = select(services, userOf(request), filter, request.now)
      const shown = filter.near === undefined ? positions : nearestFirst(positions, filter.near)
      return { headers: { 'content-type': 'application/json' }, stream: asJson(shown, filter.limit) }
    },
  })

interface Near {
  lat: number
  lng: number
}

interface Filter extends Pick<Query, 'hubId' | 'teamId' | 'status' | 'radius'> {
  box?: Box
  near?: Near
  limit: number
}

interface Found {
  row: LatestPositionRow
  position: Position
}

/** Walks the organization's rows in pages, so that a large fleet is never held whole. */
async function* select({ tables, statusAt }: LivePositionsServices, caller: UserCaller, filter: Filter, now: number): AsyncGenerator<Found> {
  let page: LatestPositionRow[] = []
  for await (const { row } of tables.scan<LatestPositionRow>(LATEST_POSITIONS.name, caller.organizationId)) {
    const isHere = (filter.box === undefined || boxContains(filter.box, row.lng, row.lat)) && isNear(row, filter)
    if (!isHere || (filter.status !== undefined && statusAt(lastSeenAt(row), now) !== filter.status)) continue
    page.push(row)
    if (page.length < PAGE_ROWS) continue
    yield* named(page)
    page = []
  }
  yield* named(page)

  async function* named(rows: LatestPositionRow[]): AsyncGenerator<Found> {
    const trackers = await tables.getMany<PositionTracker>(TRACKERS_TABLE, caller.organizationId, rows.map(({ trackerId }) => trackerId))
    for (const [i, row] of rows.entries()) {
      const tracker = trackers[i]
      if (tracker === undefined || !seesHubs(caller, tracker.hubIds)) continue
      if (filter.hubId !== undefined && !tracker.hubIds.includes(filter.hubId)) continue
      if (filter.teamId !== undefined && tracker.teamId !== filter.teamId) continue
      yield { row, position: positionOf(row, tracker.name, statusAt(lastSeenAt(row), now)) }
    }
  }
}

const isNear = (row: LatestPositionRow, { near, radius }: Filter): boolean => near === undefined || radius === undefined || distanceTo(near, row) <= radius

const distanceTo = ({ lat, lng }: Near, row: Pick<LatestPositionRow, 'lat' | 'lng'>): number => distanceMeters(toE7(lng), toE7(lat), row.lng, row.lat)

/** An organization has at most `--trackers-max` of them. */
async function* nearestFirst(positions: AsyncIterable<Found>, near: Near): AsyncGenerator<Found> {
  const all: { found: Found; meters: number }[] = []
  for await (const found of positions) all.push({ found, meters: distanceTo(near, found.row) })
  all.sort((a, b) => a.meters - b.meters)
  for (const { found } of all) yield found
}

async function* asJson(positions: AsyncIterable<Found>, limit: number): AsyncGenerator<string> {
  let text = '{"status":true,"data":['
  let count = 0
  for await (const { position } of positions) {
    text += `${count === 0 ? '' : ','}${JSON.stringify(position)}`
    count++
    if (count >= limit) break
    if (text.length < 64 * 1024) continue
    yield text
    text = ''
  }
  yield `${text}]}`
}

const filterOf = ({ bbox, near, limit = LIMIT_MAX, ...rest }: Query): Filter => {
  if (rest.radius !== undefined && near === undefined) throw invalid('/radius', 'needs near')
  return { ...rest, limit, ...(bbox !== undefined && { box: boxOf(bbox) }), ...(near !== undefined && { near: placeOf(near) }) }
}

const boxOf = (text: string): Box => {
  const [west, south, east, north] = numbersOf(text, 4, '/bbox', 'must be west,south,east,north in degrees')
  if (south > north || south < -90 || north > 90) throw invalid('/bbox', 'must have south <= north within -90 and 90')
  return boxOfDegrees(west, south, east, north)
}

const placeOf = (text: string): Near => {
  const [lat, lng] = numbersOf(text, 2, '/near', 'must be lat,lng in degrees')
  if (Math.abs(lat) > 90 || Math.abs(lng) > 180) throw invalid('/near', 'must be lat,lng in degrees')
  return { lat, lng }
}

const numbersOf = (text: string, count: number, path: string, message: string): number[] => {
  const parts = text.split(',')
  const numbers = parts.map(Number)
  if (parts.length !== count || parts.some((part) => part.trim() === '') || !numbers.every(Number.isFinite)) throw invalid(path, message)
  return numbers
}

const querySchema: JsonSchema = {
  type: 'object',
  additionalProperties: false,
  properties: {
    bbox: { type: 'string', description: 'west,south,east,north in degrees; west above east crosses the antimeridian.' },
    hubId: { type: 'string' },
    teamId: { type: 'string' },
    status: { type: 'string', enum: ['online', 'stale', 'offline'] },
    near: { type: 'string', description: 'lat,lng in degrees.' },
    radius: { type: 'number', minimum: 0, description: 'Metres around near.' },
    limit: { type: 'integer', minimum: 1, maximum: LIMIT_MAX },
  },
}

const positionSchema: JsonSchema = {
  type: 'object',
  required: ['trackerId', 'name', 'recordedAt', 'lat', 'lng', 'lastSeenAt', 'status'],
  properties: {
    trackerId: { type: 'string', format: 'uuid' },
    name: { type: 'string' },
    recordedAt: { type: 'string', format: 'date-time' },
    lat: { type: 'number' },
    lng: { type: 'number' },
    speed: { type: 'number' },
    heading: { type: 'number' },
    altitude: { type: 'number' },
    accuracy: { type: 'number' },
    battery: { type: 'number' },
    lastSeenAt: { type: 'string', format: 'date-time' },
    status: { type: 'string', enum: ['online', 'stale', 'offline'] },
  },
}

const example = {
  status: true,
  data: [{ trackerId: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6a', name: 'Bus 12', recordedAt: '2026-05-04T09:30:00.000Z', lat: 52.2296756, lng: 21.0122287, speed: 11.2, lastSeenAt: '2026-05-04T09:30:00.000Z', status: 'online' }],
}
