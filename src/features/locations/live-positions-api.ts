import { invalid } from '../../kernel/errors.ts'
import type { JsonSchema } from '../../kernel/json.ts'
import { boxOfDegrees, type Box } from '../../geo/box.ts'
import { chooseFields, FIELDS_PARAMETER, LIMIT_DEFAULT } from '../../kit/list-query.ts'
import { nextLink } from '../../kit/next-link.ts'
import { fingerprintOf, openCursor, sealCursor } from '../../kit/question-cursor.ts'
import { userOf } from '../../kit/request-context.ts'
import { envelope, PAGE_MEMBERS } from '../../kit/resource-routes.ts'
import { route, type Reply, type Route } from '../../kit/route.ts'
import {
  countPositions, positionsAfter, type FoundPosition, type LivePositionsServices, type Near, type PositionFilter, type PositionPlace, type PositionQuestion,
} from './live-positions.ts'
import type { Position } from './views.ts'

interface Query {
  bbox?: string
  hubId?: string
  teamId?: string
  status?: Position['status']
  near?: string
  radius?: number
  limit?: number
  page?: number
  cursor?: string
  fields?: string
}

const PATH = '/live-positions'
const LIMIT_MAX = 1_000_000

/** `GET /live-positions`: the last position of each tracker that the caller sees. */
export const livePositionsRoute = (services: LivePositionsServices): Route =>
  route<Query>({
    method: 'GET',
    path: PATH,
    operationId: 'listLivePositions',
    summary: 'The last position of each tracker; all of them unless limit is given',
    tag: 'Location history',
    access: { permission: 'view/location-history' },
    query: querySchema,
    answers: {
      200: {
        description: 'Positions, by tracker, or with near the nearest first.',
        schema: envelope({ data: { type: 'array', items: positionSchema }, total: { type: 'integer' }, ...PAGE_MEMBERS, limit: { type: ['integer', 'null'], description: 'Null: all of them.' } }),
        example,
      },
    },
    handler: async (request) => {
      const { query } = request
      if (query.page !== undefined && query.cursor !== undefined) throw invalid('/page', 'must not be sent together with cursor')
      const question = { caller: userOf(request), filter: filterOf(query), now: request.now }
      const choose = chooseFields(MEMBERS, query.fields, 'trackerId') as (position: object) => object
      const limit = query.limit ?? (query.page === undefined ? undefined : LIMIT_DEFAULT)
      return limit === undefined ? streamed(services, question, query.cursor, choose) : onePage(services, question, { ...query, limit }, choose)
    },
  })

/** All that are left, as they are read. */
const streamed = (services: LivePositionsServices, question: PositionQuestion, cursor: string | undefined, choose: (position: object) => object): Reply => {
  const start = cursor === undefined ? undefined : decodeCursor(cursor, question)
  const positions = positionsAfter(services, question, start?.place)
  return { headers: { 'content-type': 'application/json' }, stream: asJson(positions, choose, start) }
}

const onePage = async (
  services: LivePositionsServices, question: PositionQuestion, query: Query & { limit: number }, choose: (position: object) => object,
): Promise<Reply> => {
  const { limit, cursor } = query
  const start = cursor === undefined ? undefined : decodeCursor(cursor, question)
  const page = cursor === undefined ? (query.page ?? 1) : null
  const total = start?.total ?? (await countPositions(services, question))
  const data: object[] = []
  let skips = page === null ? 0 : (page - 1) * limit
  let last: PositionPlace | undefined
  let nextCursor: string | null = null
  for await (const { position, place } of positionsAfter(services, question, start?.place)) {
    if (skips-- > 0) continue
    if (data.length === limit && last !== undefined) {
      nextCursor = encodeCursor(last, total, question)
      break
    }
    data.push(choose(position))
    last = place
  }
  const body = { data, total, page, limit, nextCursor }
  return nextCursor === null ? { body } : { body, headers: { link: nextLink(`/api/v3${PATH}`, { ...query }, nextCursor) } }
}

async function* asJson(positions: AsyncIterable<FoundPosition>, choose: (position: object) => object, start?: { total: number }): AsyncGenerator<string> {
  let text = '{"status":true,"data":['
  let count = 0
  for await (const { position } of positions) {
    text += `${count === 0 ? '' : ','}${JSON.stringify(choose(position))}`
    count++
    if (text.length < 64 * 1024) continue
    yield text
    text = ''
  }
  yield `${text}],"total":${start?.total ?? count},"page":${start === undefined ? 1 : null},"limit":null,"nextCursor":null}`
}

/** The total is that of the walk's first page: to count again at each page would be to read everything each time. */
const encodeCursor = (place: PositionPlace, total: number, question: PositionQuestion): string => sealCursor(JSON.stringify([place, total]), fingerprintOf(question.filter))

const decodeCursor = (cursor: string, { filter }: PositionQuestion): { place: PositionPlace; total: number } => {
  const text = openCursor(cursor, fingerprintOf(filter))
  try {
    const [place, total] = JSON.parse(text) as [PositionPlace, number]
    const isPlace = 'page' in place ? place.page === null || typeof place.page === 'string' : Number.isFinite(place.meters)
    if (isPlace && typeof place.trackerId === 'string' && Number.isSafeInteger(total)) return { place, total }
  } catch (error) {
    if (!(error instanceof SyntaxError) && !(error instanceof TypeError)) throw error
  }
  throw invalid('/cursor', 'is not a cursor of this list and these filters')
}

const filterOf = ({ bbox, near, radius, hubId, teamId, status }: Query): PositionFilter => {
  if (radius !== undefined && near === undefined) throw invalid('/radius', 'needs near')
  return { radius, hubId: hubId?.toLowerCase(), teamId: teamId?.toLowerCase(), status, ...(bbox !== undefined && { box: boxOf(bbox) }), ...(near !== undefined && { near: placeOf(near) }) }
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
    hubId: { type: 'string', format: 'uuid' },
    teamId: { type: 'string', format: 'uuid' },
    status: { type: 'string', enum: ['online', 'stale', 'offline'] },
    near: { type: 'string', description: 'lat,lng in degrees.' },
    radius: { type: 'number', minimum: 0, description: 'Metres around near.' },
    limit: { type: 'integer', minimum: 1, maximum: LIMIT_MAX, description: 'Left out: all of them, with `page` 20.' },
    page: { type: 'integer', minimum: 1, maximum: LIMIT_MAX, description: 'From 1; not together with `cursor`.' },
    cursor: { type: 'string', maxLength: 4000, description: '`nextCursor` of the page before. By tracker a walk meets each one once, however they move.' },
    fields: { ...FIELDS_PARAMETER, description: 'Names of the members to answer, separated by commas; `trackerId` always is.' },
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

const MEMBERS = Object.keys(positionSchema.properties as object)

const example = {
  status: true,
  data: [{ trackerId: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6a', name: 'Bus 12', recordedAt: '2026-05-04T09:30:00.000Z', lat: 52.2296756, lng: 21.0122287, speed: 11.2, lastSeenAt: '2026-05-04T09:30:00.000Z', status: 'online' }],
  total: 1,
  page: 1,
  limit: 20,
  nextCursor: null,
}
