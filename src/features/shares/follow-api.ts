import { Failure } from '../../kernel/errors.ts'
import type { JsonObject, JsonSchema } from '../../kernel/json.ts'
import { answered, dataAnswer, DATE_TIME } from '../../kit/http/page-members.ts'
import { type Reply, route, type Route, type RouteRequest } from '../../kit/http/route.ts'
import { findShare, followedBy, type FollowServices } from './follow.ts'
import type { Guesses } from './guesses.ts'
import { endedPage, followPage, POLICY } from './page.ts'
import { languageOf } from './words.ts'

export interface FollowRouteServices extends FollowServices {
  guesses: Guesses
}

const PARAMS = { token: { type: 'string', maxLength: 200, description: 'The token of the share.' } } as const

/** Keep browsers from disclosing the token to caches, search engines and linked sites. */
const HEADERS = { 'cache-control': 'no-store', 'referrer-policy': 'no-referrer', 'x-robots-tag': 'noindex, nofollow' }

export const followRoutes = (services: FollowRouteServices): Route[] => [
  route({
    method: 'GET',
    path: '/follow/{token}',
    operationId: 'followShare',
    summary: 'Follow what somebody shared, without an account',
    description:
      'A task has a position while it is in progress, from its start on. A share that has ended is 404, as one that never was.',
    tag: 'Shares',
    access: 'public',
    params: PARAMS,
    answers: { 200: ANSWER },
    handler: async (request) => {
      const open = await openShare(services, request)
      if (open === undefined) throw new Failure('not_found')
      return { body: { data: await followedBy(services, open, request.now) }, headers: HEADERS }
    },
  }),
  route({
    method: 'GET',
    path: '/follow/{token}',
    root: true,
    operationId: 'getFollowPage',
    summary: 'The page of what somebody shared',
    tag: 'Shares',
    access: 'public',
    params: PARAMS,
    answers: {
      200: { description: 'The page', contentType: 'text/html' },
      404: { description: 'A page that says that the link has ended', contentType: 'text/html' },
      429: { description: 'A page that asks for time', contentType: 'text/html', headers: ['Retry-After'] },
    },
    handler: (request) => pageReply(services, request),
  }),
]

/** The open share of the request's token. @throws Failure rate_limited */
const openShare = async (services: FollowRouteServices, { params, network, now }: RouteRequest) => {
  await services.guesses.admit(network, now)
  const open = await findShare(services, params.token, now)
  if (open === undefined) await services.guesses.noteWrong(network, params.token)
  return open
}

const pageReply = async (services: FollowRouteServices, request: RouteRequest): Promise<Reply> => {
  const accepted = request.headers.get('accept-language')
  try {
    const open = await openShare(services, request)
    if (open === undefined) return html(404, endedPage(languageOf(accepted, undefined), false))
    const settings = open.organization.settings as JsonObject | undefined
    const language = languageOf(accepted, settings?.language as string | undefined)
    const timeZone = (settings?.timeZone as string | undefined) ?? 'UTC'
    return html(200, followPage(await followedBy(services, open, request.now), { language, timeZone }))
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== 'rate_limited') throw error
    const retryAfter = String(error.details.retryAfterSeconds ?? 60)
    return html(429, endedPage(languageOf(accepted, undefined), true), { 'retry-after': retryAfter })
  }
}

const html = (status: number, raw: string, headers: { [name: string]: string } = {}): Reply => ({
  status,
  raw,
  headers: { ...HEADERS, 'content-type': 'text/html; charset=utf-8', 'content-security-policy': POLICY, ...headers },
})

const NUMBER: JsonSchema = { type: 'number' }
const TEXT: JsonSchema = { type: 'string' }

const FOLLOWED = answered(
  'Followed',
  {
    organization: answered(undefined, { name: TEXT, logo: { type: ['string', 'null'] } }),
    task: answered(
      undefined,
      {
        title: TEXT,
        state: TEXT,
        window: answered(undefined, { from: DATE_TIME, to: DATE_TIME }),
        lat: NUMBER,
        lng: NUMBER,
      },
      ['window', 'lat', 'lng'],
    ),
    position: answered(undefined, { lat: NUMBER, lng: NUMBER, heading: NUMBER, speed: NUMBER, recordedAt: DATE_TIME }, [
      'heading',
      'speed',
    ]),
    trail: { type: 'array', items: { type: 'array', items: NUMBER }, description: 'Longitude first, oldest first.' },
    eta: answered(undefined, { at: DATE_TIME, distanceMeters: NUMBER }),
    visitsBefore: { type: 'integer', description: 'Stops of its route before this one that are not done.' },
  },
  ['task', 'position', 'trail', 'eta', 'visitsBefore'],
)

const ANSWER = dataAnswer('What is shared, as it is now.', FOLLOWED, {
  organization: { name: 'Green Couriers', logo: null },
  task: { title: 'Deliver 3 parcels', state: 'inProgress', lat: 52.23, lng: 20.98 },
  position: { lat: 52.22, lng: 21.01, heading: 270, speed: 8.3, recordedAt: '2026-11-20T08:40:00.000Z' },
  eta: { at: '2026-11-20T08:45:12.000Z', distanceMeters: 2_989 },
  visitsBefore: 0,
})
