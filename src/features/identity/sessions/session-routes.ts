import type { UserCaller } from '../../../kernel/caller.ts'
import { Failure, invalid } from '../../../kernel/errors.ts'
import { id, objectSchema, optional, secret, text } from '../../../kernel/schema.ts'
import { metadataOf, userOf } from '../../../kit/http/request-context.ts'
import { route, type Reply, type Route, type RouteRequest } from '../../../kit/http/route.ts'
import { endOfCookie, keptBy, SESSION_MEMBER, type SessionMember } from './browser-cookie.ts'
import { browserCaller, refreshInBrowser } from './browser-session.ts'
import type { IdentityContext } from '../context.ts'
import { exchangeToken, revocationOfCall } from './issue-token.ts'
import type { Person } from '../people.ts'
import { chooseFields, FIELDS_QUERY } from '../../../kit/http/list-query.ts'
import {
  ORGANIZATION_MEMBERS,
  organizationItems,
  organizationsAnswer,
  sessionAnswer,
  sessionBody,
  signInAnswer,
} from './session-answer.ts'
import { memberFor, signIn } from '../sign-in/sign-in.ts'
import { type UserRow, withoutRunOut } from '../users/user.ts'
import { USERS_TABLE } from '../views.ts'

/** Time for sockets of a refreshed token to send their new `auth`. */
const REFRESH_GRACE_MS = 10_000

interface LoginBody extends SessionMember {
  email: string
  password: string
  organizationId?: string
}

export const sessionRoutes = (context: IdentityContext): Route[] => [
  route<object, LoginBody>({
    method: 'POST',
    path: '/auth/login',
    operationId: 'login',
    summary: 'Log in, to the most recently accessed organization unless one is named',
    tag: 'Authentication',
    access: 'public',
    signsIn: true,
    idempotent: false,
    body: objectSchema({
      email: text({ max: 254 }),
      password: secret({ max: 200 }),
      organizationId: optional(id()),
      ...SESSION_MEMBER,
    }),
    bodyExample: { email: 'ada@example.com', password: 'correct horse battery staple' },
    answers: { 200: signInAnswer('Logged in, or asked for the second factor.') },
    handler: (request) => login(context, request),
  }),
  refreshRoute(context),
  route({
    method: 'POST',
    path: '/auth/logout',
    operationId: 'logout',
    summary: 'Revoke the token of the call',
    tag: 'Authentication',
    access: 'user',
    isPersonal: true,
    enrols: true,
    answers: { 200: { description: 'The token is revoked.' } },
    handler: (request) => logout(context, request),
  }),
  route<{ fields?: string }>({
    method: 'GET',
    path: '/auth/my-organizations',
    operationId: 'listMyOrganizations',
    summary: "List the caller's organizations",
    tag: 'Authentication',
    access: 'user',
    isPersonal: true,
    query: FIELDS_QUERY,
    answers: { 200: organizationsAnswer },
    handler: async (request) => {
      const caller = userOf(request)
      const person = await personOf(context, caller)
      const choose = chooseFields(ORGANIZATION_MEMBERS, request.query.fields, 'organizationId')
      const items = await organizationItems(context, person.state, caller.organizationId)
      return { body: { data: items.map((item) => choose({ ...item })) } }
    },
  }),
]

const refreshRoute = (context: IdentityContext): Route =>
  route<object, { organizationId?: string } | undefined>({
    method: 'POST',
    path: '/auth/refresh',
    operationId: 'refreshToken',
    summary: 'Exchange the token of the call for a new one',
    description:
      'In place of a token, a page of this origin that sends `waymark-client: console` may have the cookie of a sign-in with `session`: it gets a token of 15 minutes for `organizationId`, the most recent one when left out, and no other token ends.',
    tag: 'Authentication',
    access: 'user',
    isPersonal: true,
    revokesToken: true,
    withoutToken: (request) => browserCaller(context, request),
    body: objectSchema({ organizationId: optional(id()) }),
    bodyRequired: false,
    bodyExample: {},
    answers: { 200: sessionAnswer('A new token; the one of the call is revoked.') },
    handler: (request) => refresh(context, request),
  })

const logout = async (context: IdentityContext, request: RouteRequest): Promise<Reply> => {
  const origin = { ids: request.ids, metadata: metadataOf(request) }
  const { identityId } = userOf(request)
  const wrote = await context.sessions.end(identityId, revocationOfCall(request, 0), origin)
  return { headers: endOfCookie(context, request), wrote }
}

const login = async (context: IdentityContext, request: RouteRequest<object, LoginBody>): Promise<Reply> => {
  const { body, network, now } = request
  const guard = context.throttle.guard(body.email, network, now)
  await guard.admit()
  const person = await context.people.findByEmail(body.email)
  const isRight = await context.passwords.verify(body.password, person?.state.passwordHash, guard)
  if (person === undefined || !isRight) throw new Failure('invalid_credentials')
  const member = await memberFor(context, person, body.organizationId)
  if (member === undefined) {
    await guard.noteFailure()
    throw new Failure('invalid_credentials')
  }
  return signIn(context, request, { person, member, inBrowser: body.session === 'cookie' })
}

const refresh = async (
  context: IdentityContext,
  request: RouteRequest<object, { organizationId?: string } | undefined>,
): Promise<Reply> => {
  const caller = userOf(request)
  const { userId, organizationId } = caller
  const kept = keptBy(context, request)
  if (kept?.browserId === caller.jti) return refreshInBrowser(context, request, kept)
  if ((request.body?.organizationId?.toLowerCase() ?? organizationId) !== organizationId)
    throw invalid('/organizationId', 'must be the one of the token: switch the organization to get another')
  const jti = request.ids.next()
  const person = await personOf(context, caller)
  const member = await context.services.tables.get<UserRow>(USERS_TABLE, organizationId, userId)
  if (member === undefined) throw new Failure('unauthenticated')
  const organizations = await organizationItems(context, person.state, organizationId)
  const { signed, wrote } = await exchangeToken(context, request, { userId, organizationId, jti }, REFRESH_GRACE_MS)
  return {
    body: sessionBody('Here is a new token.', signed, withoutRunOut(member, request.now), organizations),
    wrote,
    secret: true,
  }
}

const personOf = async (context: IdentityContext, caller: UserCaller): Promise<Person> => {
  const person = await context.people.load(caller.identityId)
  if (person === undefined) throw new Failure('unauthenticated')
  return person
}
