import { Failure } from '../../kernel/errors.ts'
import { email, objectSchema, optional, secret } from '../../kernel/schema.ts'
import { formatTime, metadataOf } from '../../kit/http/request-context.ts'
import { route, type Reply, type Route, type RouteRequest, type Wrote } from '../../kit/http/route.ts'
import type { IdentityContext } from './context.ts'
import type { LinkKind } from './events.ts'
import { noteForgotten } from './forgotten.ts'
import { isOpen, type Link, linkEnded, readLinkToken } from './links.ts'
import type { Person } from './people.ts'
import { FOLLOW_LINK, type FollowLinkData } from './processes.ts'
import { PASSWORD } from './user.ts'

interface TokenBody {
  token: string
  password?: string
}

const RESET: readonly LinkKind[] = ['reset', 'reopening']
const VERIFYING: readonly LinkKind[] = ['verification', 'emailChange']

/** What links in mails lead to, but for invitations. */
export const linkRoutes = (context: IdentityContext): Route[] => [
  route<object, { email: string }>({
    method: 'POST',
    path: '/auth/forgot-password',
    operationId: 'forgotPassword',
    summary: 'Have a link mailed that sets a new password',
    description: 'The answer is the same, in the same time, whether the address has an account or not.',
    tag: 'Authentication',
    access: 'public',
    body: objectSchema({ email: email() }),
    bodyExample: { email: 'ada@example.com' },
    answers: { 200: { description: 'If there is an account, its link is on its way.' } },
    handler: async (request) => {
      await context.limits.countFrom(request.network, request.now)
      if (await context.limits.mayRemind(request.body.email))
        await noteForgotten(context.services, request.body.email, request)
      return { body: { message: 'If there is an account with this address, a link is on its way to it.' } }
    },
  }),
  route<object, Required<TokenBody>>({
    method: 'POST',
    path: '/auth/reset-password',
    operationId: 'resetPassword',
    summary: 'Set a new password by the token of a mailed link; every session ends',
    tag: 'Authentication',
    access: 'public',
    body: objectSchema({ token: secret({ max: 200 }), password: PASSWORD }),
    bodyExample: { token: '<TOKEN>', password: 'correct horse battery staple' },
    answers: { 200: { description: 'The new password is set.' } },
    handler: (request) => resetPassword(context, request),
  }),
  route<object, TokenBody>({
    method: 'POST',
    path: '/auth/verify-email',
    operationId: 'verifyEmail',
    summary: 'Confirm an address by the token of a mailed link',
    description:
      'For the address of a signup, or a new address. While no address of the account was ever confirmed, the password is set anew and must be given. Where an administrator changed the address, giving the present password keeps other organizations open.',
    tag: 'Authentication',
    access: 'public',
    body: objectSchema({ token: secret({ max: 200 }), password: optional(PASSWORD) }),
    bodyExample: { token: '<TOKEN>', password: 'correct horse battery staple' },
    answers: { 200: { description: 'The address is confirmed.' } },
    handler: (request) => verifyEmail(context, request),
  }),
]

/** The link that a token is of, open or followed by this very request. @throws Failure invalid, rate_limited */
export const openLink = async (
  { people, services, limits }: IdentityContext,
  { body, network, now }: Pick<RouteRequest<object, TokenBody>, 'body' | 'network' | 'now'>,
  kinds: readonly LinkKind[],
  useId: string,
): Promise<{ person: Person; link: Link }> => {
  await limits.countFrom(network, now)
  const read = readLinkToken(services.keyring, body.token)
  const person = read && (await people.load(read.identityId))
  const link = person?.state.links.find(({ linkId }) => linkId === read?.linkId)
  if (person === undefined || link === undefined || !kinds.includes(link.kind)) throw linkEnded()
  if (link.useId !== useId && !isOpen(link, formatTime(now))) throw linkEnded()
  return { person, link }
}

const resetPassword = async (
  context: IdentityContext,
  request: RouteRequest<object, Required<TokenBody>>,
): Promise<Reply> => {
  const useId = request.ids.next()
  const { person, link } = await openLink(context, request, RESET, useId)
  const passwordHash = await context.passwords.hash(request.body.password)
  const wrote = await follow(context, request, person, link, { useId, kinds: RESET, passwordHash })
  return { body: { message: 'Your new password is set; sign in with it.' }, wrote }
}

const verifyEmail = async (context: IdentityContext, request: RouteRequest<object, TokenBody>): Promise<Reply> => {
  const useId = request.ids.next()
  const { person, link } = await openLink(context, request, VERIFYING, useId)
  const { password } = request.body
  const { isVerified } = person.state
  const passwordHash = isVerified || password === undefined ? undefined : await context.passwords.hash(password)
  const isOwner = isVerified && (await isOwnPassword(context, request, person))
  const email = link.kind === 'emailChange' ? { email: link.email } : {}
  const data = { useId, kinds: VERIFYING, ...(passwordHash && { passwordHash }), ...(isOwner && { isOwner }), ...email }
  const wrote = await follow(context, request, person, link, data)
  return { body: { message: 'Your address is confirmed.' }, wrote }
}

const follow = (
  { services }: IdentityContext,
  request: RouteRequest<object, TokenBody>,
  { identityId, state }: Person,
  { linkId, organizationId = state.originOrganizationId }: Link,
  data: Omit<FollowLinkData, 'identityId' | 'linkId'>,
): Promise<Wrote | undefined> => {
  const userId = state.memberships.find((membership) => membership.organizationId === organizationId)?.userId
  const metadata = metadataOf(request, organizationId, userId && `user:${userId}`)
  const origin = { organizationId, now: request.now, ids: request.ids, metadata }
  return services.processes.run(FOLLOW_LINK, identityId, origin, async () => ({ identityId, linkId, ...data }))
}

/** Whether the password was given that its owner chose. @throws Failure invalid_credentials, rate_limited */
const isOwnPassword = async (
  context: IdentityContext,
  { body, network, now }: RouteRequest<object, TokenBody>,
  { state }: Person,
): Promise<boolean> => {
  if (body.password === undefined) return false
  const guard = context.throttle.guard(state.email, network, now)
  await guard.admit()
  if (!(await context.passwords.verify(body.password, state.passwordHash, guard)))
    throw new Failure('invalid_credentials')
  return state.opensOnly === undefined
}
