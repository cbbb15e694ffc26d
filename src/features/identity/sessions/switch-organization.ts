import { Failure } from '../../../kernel/errors.ts'
import { id, objectSchema, secret } from '../../../kernel/schema.ts'
import { formatTime, metadataOf, userOf } from '../../../kit/http/request-context.ts'
import { route, type Reply, type Route, type RouteRequest } from '../../../kit/http/route.ts'
import { allWrote } from '../../../kit/commands/wrote.ts'
import { SESSION_MEMBER, type SessionMember } from './browser-cookie.ts'
import type { IdentityContext } from '../context.ts'
import { organizationItems, secondFactorDue, sessionAnswer, sessionBody } from './session-answer.ts'
import { exchangeToken } from './issue-token.ts'
import { memberFor } from '../sign-in/sign-in.ts'
import { withoutRunOut } from '../users/user.ts'

interface SwitchBody extends SessionMember {
  organizationId: string
  password: string
}

/** Exchanges the token for one of the same person in another organization; requires the password again. */
export const switchOrganizationRoute = (context: IdentityContext): Route =>
  route<object, SwitchBody>({
    method: 'POST',
    path: '/auth/switch-organization',
    operationId: 'switchOrganization',
    summary: 'Switch to another organization',
    tag: 'Authentication',
    access: 'user',
    isPersonal: true,
    revokesToken: true,
    body: objectSchema({ organizationId: id(), password: secret({ max: 200 }), ...SESSION_MEMBER }),
    bodyExample: { organizationId: '0190f3a2-7c00-7a11-8b22-aabbccddeeff', password: 'correct horse battery staple' },
    answers: { 200: sessionAnswer('Switched; the token of the call is revoked.') },
    handler: (request) => switchOrganization(context, request),
  })

const switchOrganization = async (
  context: IdentityContext,
  request: RouteRequest<object, SwitchBody>,
): Promise<Reply> => {
  const { identityId, email } = userOf(request)
  const { body, network, now, ids } = request
  const jti = ids.next()
  const guard = context.throttle.guard(email, network, now)
  await guard.admit()
  const person = await context.people.load(identityId)
  const isRight = await context.passwords.verify(body.password, person?.state.passwordHash, guard)
  if (person === undefined || !isRight) throw new Failure('wrong_password')
  const member = await memberFor(context, person, body.organizationId)
  if (member === undefined) throw new Failure('not_found', { message: 'You have no such organization.' })
  const { _id: userId, organizationId } = member
  const origin = { ids, metadata: metadataOf(request, organizationId) }
  const accessed = await context.people.command(
    identityId,
    { type: 'access', organizationId, at: formatTime(now) },
    origin,
  )
  const organizations = await organizationItems(context, person.state, organizationId)
  const inBrowser = body.session === 'cookie'
  const { signed, wrote, headers } = await exchangeToken(context, request, { userId, organizationId, jti, inBrowser })
  return {
    body: {
      ...sessionBody('Welcome.', signed, withoutRunOut(member, now), organizations),
      ...(await secondFactorDue(context, organizationId, person.state, now)),
    },
    headers,
    wrote: allWrote(accessed, wrote),
    secret: true,
  }
}
