import { Failure } from '../../../kernel/errors.ts'
import { formatTime, metadataOf, userOf } from '../../../kit/http/request-context.ts'
import type { RouteRequest, Wrote } from '../../../kit/http/route.ts'
import { BROWSER_SESSION_MS, BROWSER_TOKEN_MS, browserCookie } from './browser-cookie.ts'
import type { IdentityContext } from '../context.ts'
import type { SessionBegan, TokenRevoked } from '../events.ts'
import type { Person } from '../people.ts'
import { revocationOf } from './sessions.ts'
import type { SignedToken } from './tokens.ts'

/** Subject of a token. `jti` is drawn before any write, so that a repeated request draws the same one. */
export interface TokenSubject {
  /** State of the person when they authenticated. */
  person: Person
  organizationId: string
  userId: string
  jti: string
  isByProvider?: boolean
  /** Also begins a browser session. */
  inBrowser?: boolean
}

export interface Issued {
  signed: SignedToken
  session: SessionBegan
  wrote: Wrote | undefined
  /** Stores the browser session if one began. */
  headers: { [name: string]: string }
}

type Request = Pick<RouteRequest, 'address' | 'network' | 'caller' | 'now' | 'ids' | 'correlationId' | 'traceparent'>

/**
 * Signs a token for a person who gave a password or followed a link, and begins its session.
 * @throws Failure invalid_credentials if they changed password or second factor, or proved an address, meanwhile.
 */
export const issueToken = async (
  context: IdentityContext,
  request: Request,
  subject: TokenSubject,
): Promise<Issued> => {
  const { person, organizationId, userId } = subject
  const { email, proofs } = person.state
  const { identityId } = person
  const browserId = subject.inBrowser === true ? request.ids.next() : undefined
  const signed = context.tokens.issue(subject, request.now, lifeMsMax(browserId))
  const metadata = metadataOf(request, organizationId, `user:${userId}`)
  const session = sessionOf(request, { ...subject, browserId }, signed)
  const origin = { ids: request.ids, metadata }
  const wrote = await context.sessions.begin(identityId, [...browserOf(session), session], origin)
  await assertSame(context, person, session, origin)
  await context.throttle.noteLogin(email, request.network, { identityId, proofs }, request.now)
  const headers = browserId === undefined ? {} : browserCookie(context, { identityId, browserId })
  return { signed, session, wrote, headers }
}

/** Changes of access meanwhile ended the sessions present then: this one may have begun later. */
const assertSame = async (
  context: IdentityContext,
  { identityId, state }: Person,
  session: SessionBegan,
  origin: Parameters<IdentityContext['sessions']['end']>[2],
): Promise<void> => {
  const now = (await context.people.load(identityId))?.state
  const isSame = now?.passwordHash === state.passwordHash && now.factor?.factorId === state.factor?.factorId
  if (isSame && now.proofs === state.proofs) return
  // No session remains of a person erased meanwhile.
  if (now === undefined) await context.sessions.erase(identityId)
  else await context.sessions.end(identityId, revocationOf(session, session.at), origin)
  throw new Failure('invalid_credentials')
}

/**
 * Signs a token that replaces the one of the call, which ends; sockets that it opened stay open for `graceMs`.
 * @throws Failure unauthenticated if it has ended meanwhile.
 */
export const exchangeToken = async (
  context: IdentityContext,
  request: Request,
  subject: Omit<TokenSubject, 'person'>,
  graceMs = 0,
): Promise<Issued> => {
  const { identityId, jti } = userOf(request)
  const live = await context.sessions.live(identityId, request.now)
  const before = live.find((one) => one.jti === jti)
  // A new password ends the browser session but not the token of its call: that gets its own session.
  const open = live.find((one) => one.jti === before?.browserId)?.jti
  const begins = subject.inBrowser === true && open === undefined
  const browserId = begins ? request.ids.next() : before?.browserId
  const signed = context.tokens.issue(subject, request.now, lifeMsMax(browserId))
  const session = sessionOf(request, { ...subject, browserId }, signed)
  const wrote = await context.sessions.replace(
    identityId,
    revocationOfCall(request, graceMs),
    [...(begins ? browserOf(session) : []), session],
    { ids: request.ids, metadata: metadataOf(request, subject.organizationId) },
  )
  if ((await context.people.load(identityId)) === undefined) {
    // Erased meanwhile: the event just written is the only trace.
    await context.sessions.erase(identityId)
    throw new Failure('unauthenticated')
  }
  const isKept = subject.inBrowser === true && browserId !== undefined
  return { signed, session, wrote, headers: isKept ? browserCookie(context, { identityId, browserId }) : {} }
}

const lifeMsMax = (browserId: string | undefined): number | undefined =>
  browserId === undefined ? undefined : BROWSER_TOKEN_MS

const browserOf = ({ browserId, at, ...token }: SessionBegan): SessionBegan[] => {
  if (browserId === undefined) return []
  const expiresAt = formatTime(Date.parse(at) + BROWSER_SESSION_MS)
  return [{ ...token, jti: browserId, isBrowser: true, expiresAt, at }]
}

export const revocationOfCall = (request: Pick<Request, 'caller' | 'now'>, graceMs: number): TokenRevoked => {
  const { organizationId, userId, jti, expiresAt } = userOf(request)
  return { jti, organizationId, userId, expiresAt: formatTime(expiresAt), graceMs, at: formatTime(request.now) }
}

const sessionOf = (
  { address, now }: Pick<Request, 'address' | 'now'>,
  {
    jti,
    organizationId,
    userId,
    isByProvider = false,
    browserId,
  }: Omit<TokenSubject, 'person'> & { browserId?: string },
  { expiresAt }: SignedToken,
): SessionBegan => ({
  ...{ jti, organizationId, userId, address },
  ...(isByProvider && { isByProvider }),
  ...(browserId !== undefined && { browserId }),
  ...{ expiresAt: formatTime(expiresAt), at: formatTime(now) },
})
