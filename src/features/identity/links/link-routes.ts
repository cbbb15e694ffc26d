import { Failure } from '../../../kernel/errors.ts'
import { email, objectSchema, optional, secret } from '../../../kernel/schema.ts'
import { formatTime, metadataOf } from '../../../kit/http/request-context.ts'
import { route, type Reply, type Route, type RouteRequest, type Wrote } from '../../../kit/http/route.ts'
import { SESSION_MEMBER, type SessionMember } from '../sessions/browser-cookie.ts'
import type { IdentityContext } from '../context.ts'
import type { LinkKind } from '../events.ts'
import { noteForgotten } from '../passwords/forgotten.ts'
import { isOpen, type Link, linkEnded, readLinkToken } from './links.ts'
import { allWrote } from '../../../kit/commands/wrote.ts'
import { rowOf } from '../../../kit/commands/declared-event.ts'
import { hashNew } from '../passwords/new-password.ts'
import type { Person } from '../people.ts'
import { FOLLOW_LINK, type FollowLinkData } from '../processes.ts'
import { confirmedAnswer } from '../sessions/session-answer.ts'
import { memberFor, signIn } from '../sign-in/sign-in.ts'
import { PASSWORD, type UserRow } from '../users/user.ts'

interface TokenBody extends SessionMember {
  token: string
  password?: string
}

type ResetBody = Required<Omit<TokenBody, 'session'>>

const CONFIRMED = 'Your address is confirmed.'
const RESET: readonly LinkKind[] = ['reset', 'reopening', 'emailUndo']
const VERIFYING: readonly LinkKind[] = ['verification', 'emailChange', 'emailUndo']

/** Routes of mailed links, except invitations. */
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
  route<object, ResetBody>({
    method: 'POST',
    path: '/auth/reset-password',
    operationId: 'resetPassword',
    summary: 'Set a new password by the token of a mailed link; every session ends',
    description:
      'What was begun before ends with them: other links but invitations, a pending e-mail, sign-ins that wait for their second step. The token of the mail that told the old address of a change undoes that change: the address comes back, second factors that were set up since are taken off, and invitations that were accepted under the new address are open again. An address that has an account of its own by then stays with that (409).',
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
    summary: 'Confirm an address by the token of a mailed link, and sign in; every session before ends',
    description:
      'For the address of a signup, or a new address; a link that undoes a change is taken too, with a new password. While no address of the account was ever confirmed, the password is set anew and must be given. Where an administrator changed the address, giving the present password keeps other organizations open. Who is an active user of no organization is answered without a token.',
    tag: 'Authentication',
    access: 'public',
    signsIn: true,
    body: objectSchema({ token: secret({ max: 200 }), password: optional(PASSWORD), ...SESSION_MEMBER }),
    bodyExample: { token: '<TOKEN>', password: 'correct horse battery staple' },
    answers: { 200: confirmedAnswer('Confirmed and signed in; a person with a second factor is asked for it.') },
    handler: (request) => verifyEmail(context, request),
  }),
]

/** Link of a token, open or followed by this same request. @throws Failure invalid, rate_limited */
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

const resetPassword = async (context: IdentityContext, request: RouteRequest<object, ResetBody>): Promise<Reply> => {
  const useId = request.ids.next()
  const { person, link } = await openLink(context, request, RESET, useId)
  const passwordHash = await hashFor(context, request, person, link, request.body.password)
  const wrote = await follow(context, request, person, link, { useId, kinds: RESET, passwordHash })
  return { body: { message: 'Your new password is set; sign in with it.' }, wrote }
}

const verifyEmail = async (context: IdentityContext, request: RouteRequest<object, TokenBody>): Promise<Reply> => {
  const [useId, jti] = [request.ids.next(), request.ids.next()]
  const { person, link } = await openLink(context, request, VERIFYING, useId)
  const { password } = request.body
  const setsPassword = !person.state.isVerified || link.kind === 'emailUndo'
  const passwordHash =
    setsPassword && password !== undefined ? await hashFor(context, request, person, link, password) : undefined
  const isOwner = !setsPassword && (await isOwnPassword(context, request, person))
  const data = { useId, kinds: VERIFYING, ...(passwordHash && { passwordHash }), ...(isOwner && { isOwner }) }
  const wrote = await follow(context, request, person, link, data)
  const reply = await signedIn(context, request, person.identityId, jti)
  return { ...reply, wrote: allWrote(wrote, reply.wrote) }
}

/** Like a login. The tables may not have the changes of the link yet. */
const signedIn = async (
  context: IdentityContext,
  request: RouteRequest<object, TokenBody>,
  identityId: string,
  jti: string,
): Promise<Reply> => {
  const person = await context.people.load(identityId)
  const stored = person && (await memberFor(context, person, undefined))
  if (person === undefined || stored === undefined) return { body: { message: CONFIRMED } }
  const { state, version } = await context.users.load(stored._id)
  const member = { ...rowOf(stored._id, version, state), teamIds: stored.teamIds } as UserRow
  const inBrowser = request.body.session === 'cookie'
  const { body, ...reply } = await signIn(context, request, { person, member, jti, inBrowser })
  const message =
    person.state.factor === undefined ? CONFIRMED : `${CONFIRMED} Sign in with a code of your second factor.`
  return { ...reply, body: { ...(body as object), message } }
}

const hashFor = (
  context: IdentityContext,
  { network: source }: Pick<RouteRequest, 'network'>,
  { state }: Person,
  { organizationId = state.originOrganizationId, email }: Link,
  password: string,
): Promise<string> => hashNew(context, { password, about: [state.name, state.email, email], organizationId, source })

const follow = async (
  { services }: IdentityContext,
  request: RouteRequest<object, TokenBody>,
  { identityId, state }: Person,
  { linkId, kind, email, organizationId = state.originOrganizationId }: Link,
  data: Omit<FollowLinkData, 'identityId' | 'linkId' | 'email'>,
): Promise<Wrote | undefined> => {
  const userId = state.memberships.find((membership) => membership.organizationId === organizationId)?.userId
  const metadata = metadataOf(request, organizationId, userId && `user:${userId}`)
  const origin = { organizationId, now: request.now, ids: request.ids, metadata }
  const changes = kind === 'emailChange' || kind === 'emailUndo' ? { email } : {}
  const followed = { identityId, linkId, ...changes, ...data }
  const run = services.processes.run(FOLLOW_LINK, identityId, origin, async () => followed)
  return kind === 'emailUndo' ? run.catch(asTaken) : run
}

/** A person who has since taken the old address keeps it. */
const asTaken = (error: unknown): never => {
  if (!(error instanceof Failure) || error.code !== 'key_in_use') throw error
  throw new Failure('key_in_use', {
    message: 'The change cannot be undone: the address has an account of its own by now. Ask for a new password there.',
    cause: error,
  })
}

/** Whether the given password is the one that its owner chose. @throws Failure invalid_credentials, rate_limited */
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
