import { Failure } from '../../kernel/errors.ts'
import { formatTime, metadataOf, userOf } from '../../kit/http/request-context.ts'
import type { RouteRequest, Wrote } from '../../kit/http/route.ts'
import type { IdentityContext } from './context.ts'
import type { SessionBegan, TokenRevoked } from './events.ts'
import type { Person } from './people.ts'
import { revocationOf } from './sessions.ts'
import type { SignedToken } from './tokens.ts'

/** What a token is issued for. `jti` is drawn before anything is written, so that a repeated request draws the same one. */
export interface TokenSubject {
  /** As they were when they showed who they are. */
  person: Person
  organizationId: string
  userId: string
  jti: string
  isByProvider?: boolean
}

export interface Issued {
  signed: SignedToken
  session: SessionBegan
  wrote: Wrote | undefined
}

type Request = Pick<RouteRequest, 'address' | 'network' | 'caller' | 'now' | 'ids' | 'correlationId' | 'traceparent'>

/**
 * Signs a token for somebody who gave a password or followed a link, and begins its session.
 * @throws Failure invalid_credentials where they changed password or second factor meanwhile, or proved who they are.
 */
export const issueToken = async (
  context: IdentityContext,
  request: Request,
  subject: TokenSubject,
): Promise<Issued> => {
  const { person, organizationId, userId } = subject
  const { email, proofs } = person.state
  const { identityId } = person
  const signed = context.tokens.issue(subject, request.now)
  const metadata = metadataOf(request, organizationId, `user:${userId}`)
  const session = sessionOf(request, subject, signed)
  const origin = { ids: request.ids, metadata }
  const wrote = await context.sessions.begin(identityId, session, origin)
  await assertSame(context, person, session, origin)
  await context.throttle.noteLogin(email, request.network, { identityId, proofs }, request.now)
  return { signed, session, wrote }
}

/** Those who changed their access meanwhile ended the sessions that they found: this one may have begun after that. */
const assertSame = async (
  context: IdentityContext,
  { identityId, state }: Person,
  session: SessionBegan,
  origin: Parameters<IdentityContext['sessions']['end']>[2],
): Promise<void> => {
  const now = (await context.people.load(identityId))?.state
  const isSame = now?.passwordHash === state.passwordHash && now.factor?.factorId === state.factor?.factorId
  if (isSame && now.proofs === state.proofs) return
  // Somebody who was erased meanwhile leaves no session either.
  if (now === undefined) await context.sessions.erase(identityId)
  else await context.sessions.end(identityId, revocationOf(session, session.at), origin)
  throw new Failure('invalid_credentials')
}

/**
 * Signs a token in the place of the one of the call, which ends; sockets that it opened stay open for `graceMs`.
 * @throws Failure unauthenticated when it has ended meanwhile.
 */
export const exchangeToken = async (
  context: IdentityContext,
  request: Request,
  subject: Omit<TokenSubject, 'person'>,
  graceMs = 0,
): Promise<Issued> => {
  const signed = context.tokens.issue(subject, request.now)
  const session = sessionOf(request, subject, signed)
  const wrote = await context.sessions.replace(
    userOf(request).identityId,
    revocationOfCall(request, graceMs),
    session,
    { ids: request.ids, metadata: metadataOf(request, subject.organizationId) },
  )
  const { identityId } = userOf(request)
  if ((await context.people.load(identityId)) === undefined) {
    // Erased meanwhile: what was just written is the only trace.
    await context.sessions.erase(identityId)
    throw new Failure('unauthenticated')
  }
  return { signed, session, wrote }
}

/** The end of the token of the call. */
export const revocationOfCall = (request: Pick<Request, 'caller' | 'now'>, graceMs: number): TokenRevoked => {
  const { organizationId, userId, jti, expiresAt } = userOf(request)
  return { jti, organizationId, userId, expiresAt: formatTime(expiresAt), graceMs, at: formatTime(request.now) }
}

const sessionOf = (
  { address, now }: Pick<Request, 'address' | 'now'>,
  { jti, organizationId, userId, isByProvider = false }: Omit<TokenSubject, 'person'>,
  { expiresAt }: SignedToken,
): SessionBegan => ({
  ...{ jti, organizationId, userId, address },
  ...(isByProvider && { isByProvider }),
  ...{ expiresAt: formatTime(expiresAt), at: formatTime(now) },
})
