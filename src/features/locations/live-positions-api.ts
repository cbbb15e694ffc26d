import { PAGE_MEMBERS, envelope, UUID } from '../../kit/http/page-members.ts'
import { invalid } from '../../kernel/errors.ts'
import type { JsonSchema } from '../../kernel/json.ts'
import { lowerCase } from '../../kernel/text.ts'
import { BBOX_PARAMETER, boxParameter } from '../../kit/http/bbox-parameter.ts'
import { plainNumber } from '../../kit/http/plain-number.ts'
import { holdPage, PAGE_BYTES } from '../../kit/http/held-page.ts'
import { chooseFields, FIELDS_PARAMETER, LIMIT_DEFAULT, severalOf } from '../../kit/http/list-query.ts'
import { nextLink } from '../../kit/http/next-link.ts'
import { fingerprintOf, openCursor, sealCursor } from '../../kit/http/question-cursor.ts'
import { userOf } from '../../kit/http/request-context.ts'
import { route, type Route } from '../../kit/http/route.ts'
import {
  countPositions,
  positionsAfter,
  type LivePositionsServices,
  type Near,
  type PositionFilter,
  type PositionPlace,
  type PositionQuestion,
} from './live-positions.ts'
import type { TrackersAsked } from '../trackers/views.ts'
import { POSITION, POSITION_EXAMPLE, TRACKER_FILTERS } from './schemas.ts'
import type { Position } from './views.ts'

interface Query extends Pick<TrackersAsked, 'trackerId' | 'userId' | 'vehicleId'> {
  bbox?: string
  hubId?: readonly string[]
  teamId?: readonly string[]
  status?: readonly Position['status'][]
  near?: string
  radius?: number
  limit?: number
  page?: number
  cursor?: string
  fields?: string
}

const PATH = '/live-positions'
const LIMIT_MAX = 1_000_000
/** Text written at once. */
const PART_CHARACTERS = 64 * 1024

/** `GET /live-positions`: the last position of each tracker that the caller sees. */
export const livePositionsRoute = (services: LivePositionsServices): Route =>
  route<Query>({
    method: 'GET',
    path: PATH,
    operationId: 'listLivePositions',
    summary: 'The last position of each tracker; all of them unless limit is given',
    tag: 'Location history',
    access: { permission: 'view/location-history', own: true },
    query: querySchema,
    answers: {
      200: {
        description: 'Positions, by tracker, or with near the nearest first.',
        schema: {
          title: 'PositionPage',
          ...envelope({
            data: { type: 'array', items: POSITION },
            total: { type: 'integer', description: 'All that the filters find; counted for the first page of a walk.' },
            ...PAGE_MEMBERS,
            limit: { type: ['integer', 'null'], description: 'Null: all of them.' },
          }),
        },
        example,
      },
    },
    handler: async (request) => {
      const { query } = request
      const { page, cursor, limit = page === undefined ? undefined : LIMIT_DEFAULT } = query
      if (page !== undefined && cursor !== undefined) throw invalid('/page', 'must not be sent together with cursor')
      const question = { caller: userOf(request), filter: filterOf(query), now: request.now }
      const choose = chooseFields(MEMBERS, query.fields, 'trackerId') as (position: object) => object
      const start = cursor === undefined ? undefined : decodeCursor(cursor, question)
      const written = write(services, question, choose, {
        limit,
        number: start === undefined ? (page ?? 1) : null,
        start,
      })
      const { nextCursor, body } = await holdPage(written, limit === undefined ? 0 : PAGE_BYTES, request.signal)
      const headers = {
        'content-type': 'application/json',
        ...(nextCursor !== null && { link: nextLink(`/api/v3${PATH}`, { ...query }, nextCursor) }),
      }
      return { headers, stream: body }
    },
  })

interface PageAsked {
  /** Undefined: all that are left. */
  limit: number | undefined
  /** From 1; null if a walk continues by cursor. */
  number: number | null
  start?: { place: PositionPlace; total: number }
}

/** Writes a page as its positions are read: only one part is held. Returns the cursor of the next page. */
async function* write(
  services: LivePositionsServices,
  question: PositionQuestion,
  choose: (position: object) => object,
  { limit, number, start }: PageAsked,
): AsyncGenerator<Uint8Array, string | null> {
  const total = start?.total ?? (limit === undefined ? undefined : await countPositions(services, question))
  let skips = number === null || limit === undefined ? 0 : (number - 1) * limit
  let text = '{"status":true,"data":['
  let count = 0
  let last: PositionPlace | undefined
  let nextCursor: string | null = null
  for await (const { position, place } of positionsAfter(services, question, start?.place)) {
    if (skips-- > 0) continue
    if (count === limit) {
      nextCursor = encodeCursor(last as PositionPlace, total as number, question)
      break
    }
    text += `${count === 0 ? '' : ','}${JSON.stringify(choose(position))}`
    count++
    last = place
    if (text.length < PART_CHARACTERS) continue
    yield Buffer.from(text)
    text = ''
  }
  yield Buffer.from(
    `${text}],"total":${total ?? count},"page":${number},"limit":${limit ?? null},"nextCursor":${JSON.stringify(nextCursor)}}`,
  )
  return nextCursor
}

/** Carries the total of the walk's first page: counting again at each page would read everything each time. */
const encodeCursor = (place: PositionPlace, total: number, question: PositionQuestion): string =>
  sealCursor(JSON.stringify([place, total]), fingerprintOf(question.filter))

const decodeCursor = (cursor: string, { filter }: PositionQuestion): { place: PositionPlace; total: number } => {
  const text = openCursor(cursor, fingerprintOf(filter))
  try {
    const [place, total] = JSON.parse(text) as [PositionPlace, number]
    const isPlace =
      'page' in place ? place.page === null || typeof place.page === 'string' : Number.isFinite(place.meters)
    if (isPlace && typeof place.trackerId === 'string' && Number.isSafeInteger(total)) return { place, total }
  } catch (error) {
    if (!(error instanceof SyntaxError) && !(error instanceof TypeError)) throw error
  }
  throw invalid('/cursor', 'is not a cursor of this list and these filters')
}

const filterOf = ({ bbox, near, radius, status, ...ids }: Query): PositionFilter => {
  if (radius !== undefined && near === undefined) throw invalid('/radius', 'needs near')
  return {
    radius,
    trackerIds: ids.trackerId && lowerCase(ids.trackerId),
    userIds: ids.userId && lowerCase(ids.userId),
    vehicleIds: ids.vehicleId && lowerCase(ids.vehicleId),
    hubIds: ids.hubId && lowerCase(ids.hubId),
    teamIds: ids.teamId && lowerCase(ids.teamId),
    statuses: status,
    ...(bbox !== undefined && { box: boxParameter(bbox) }),
    ...(near !== undefined && { near: nearOf(near) }),
  }
}

const nearOf = (text: string): Near => {
  const degrees = text.split(',').map(plainNumber)
  const [lat, lng] = degrees
  if (degrees.length !== 2 || !(Math.abs(lat) <= 90 && Math.abs(lng) <= 180))
    throw invalid('/near', 'must be lat,lng in degrees')
  return { lat, lng }
}

const querySchema: JsonSchema = {
  type: 'object',
  additionalProperties: false,
  properties: {
    ...TRACKER_FILTERS,
    bbox: BBOX_PARAMETER,
    hubId: severalOf('hubId', { ...UUID, description: 'Trackers of this hub.' }),
    teamId: severalOf('teamId', { ...UUID, description: 'Trackers of this team.' }),
    status: severalOf(
      'status',
      { type: 'string', enum: ['online', 'stale', 'offline'], description: 'By the age of the last point.' },
      { isAlwaysThere: true },
    ),
    near: { type: 'string', description: 'lat,lng in degrees.' },
    radius: { type: 'number', minimum: 0, description: 'Metres around near.' },
    limit: { type: 'integer', minimum: 1, maximum: LIMIT_MAX, description: 'Left out: all of them, with `page` 20.' },
    page: { type: 'integer', minimum: 1, maximum: LIMIT_MAX, description: 'From 1; not together with `cursor`.' },
    cursor: {
      type: 'string',
      maxLength: 4000,
      description:
        '`nextCursor` of the page before. By tracker a walk meets each one once, however they move. The `Link` header of a page of up to 2 MiB names it too.',
    },
    fields: {
      ...FIELDS_PARAMETER,
      description: 'Names of the members to answer, separated by commas; `trackerId` always is.',
    },
  },
}

const MEMBERS = Object.keys(POSITION.properties as object)

const example = { status: true, data: [POSITION_EXAMPLE], total: 1, page: 1, limit: 20, nextCursor: null }
