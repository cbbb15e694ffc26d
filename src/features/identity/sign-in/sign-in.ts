import { Failure } from '../../../kernel/errors.ts'
import { NO_ORGANIZATION } from '../../../kernel/table.ts'
import { objectSchema, secret } from '../../../kernel/schema.ts'
import { allWrote } from '../../../kit/commands/wrote.ts'
import { formatTime, metadataOf } from '../../../kit/http/request-context.ts'
import { route, type Reply, type Route, type RouteRequest, type Wrote } from '../../../kit/http/route.ts'
import { SESSION_MEMBER, type SessionMember } from '../sessions/browser-cookie.ts'
import type { IdentityContext } from '../context.ts'
import { takeCode } from '../second-factor/factor-codes.ts'
import { loginOrder } from '../identity.ts'
import { issueToken } from '../sessions/issue-token.ts'
import type { Person } from '../people.ts'
import { organizationItems, secondFactorDue, sessionAnswer, sessionBody } from '../sessions/session-answer.ts'
import { isFirstUse } from '../single-use.ts'
import { type UserRow, withoutRunOut } from '../users/user.ts'
import { USERS_TABLE } from '../views.ts'

/** A person authenticated except for their second factor, and the user to sign in as. */
export interface SignIn {
  person: Person
  member: UserRow
  /** Another service identified the person; no password was given. */
  isByProvider?: boolean
  /** Id of the token, if already drawn. */
  jti?: string
  /** Also begins a browser session. */
  inBrowser?: boolean
}

/** Encrypted content of a challenge. It is valid only for its second step. */
interface Challenge {
  identityId: string
  organizationId: string
  factorId: string
  /** The given password: a change of it ends the challenge. Absent for a sign-in elsewhere. */
  password?: string
  /** Number of proofs: another one since ends the challenge. */
  proofs: number
  until: number
  salt: string
}

interface SecondStep extends SessionMember {
  challenge: string
  code: string
}

type Request = Pick<
  RouteRequest,
  'address' | 'network' | 'caller' | 'now' | 'ids' | 'correlationId' | 'traceparent' | 'signal'
>

const CHALLENGE_MS = 5 * 60_000
const CHALLENGE_CODES_MAX = 5
const PURPOSE = 'sign-in-challenge'

export const secondStepRoute = (context: IdentityContext): Route =>
  route<object, SecondStep>({
    method: 'POST',
    path: '/auth/login/second-factor',
    operationId: 'loginSecondStep',
    summary: 'Finish a sign-in with a code of the second factor, or a recovery code',
    description:
      'Takes the `challenge` that signing in answered in place of a token. A challenge holds five minutes and takes five codes; each code is good once.',
    tag: 'Authentication',
    access: 'public',
    signsIn: true,
    idempotent: false,
    body: objectSchema({ challenge: secret({ max: 2_000 }), code: secret({ max: 40 }), ...SESSION_MEMBER }),
    bodyExample: { challenge: '<CHALLENGE>', code: '123456' },
    answers: { 200: sessionAnswer('Logged in.') },
    handler: (request) => secondStep(context, request),
  })

/** Completes a sign-in with a token, or with a challenge for users with a second factor. */
export const signIn = async (context: IdentityContext, request: Request, signing: SignIn): Promise<Reply> =>
  signing.person.state.factor === undefined
    ? beginSession(context, request, signing)
    : challenge(context, request, signing)

export const challenge = (
  { services: { keyring } }: IdentityContext,
  { now, ids }: Pick<Request, 'now' | 'ids'>,
  {
    person: { identityId, state },
    member: { organizationId },
    isByProvider = false,
  }: {
    person: Person
    member: Pick<UserRow, 'organizationId'>
    isByProvider?: boolean
  },
): Reply => {
  const said: Challenge = {
    identityId,
    organizationId,
    factorId: state.factor?.factorId ?? '',
    ...(!isByProvider && { password: markOf(keyring, state.passwordHash) }),
    proofs: state.proofs,
    until: now + CHALLENGE_MS,
    salt: ids.next(),
  }
  const body = {
    message: 'Give a code of your second factor.',
    challenge: keyring.encrypt(PURPOSE, JSON.stringify(said)),
    expires_in: CHALLENGE_MS / 1000,
  }
  return { body, secret: true }
}

const secondStep = async (context: IdentityContext, request: RouteRequest<object, SecondStep>): Promise<Reply> => {
  const { now, network } = request
  await context.limits.countFrom(network, now)
  const { keyring } = context.services
  const said = openSignIn<Challenge>(keyring, PURPOSE, request.body.challenge, now)
  const { identityId, organizationId, factorId, password, proofs, until, salt } = said
  await countTry(context, salt, until, now)
  const person = await context.people.load(identityId)
  const factor = person?.state.factor
  if (person === undefined || factor?.factorId !== factorId || person.state.proofs !== proofs) throw unfinished()
  const isByProvider = password === undefined
  if (!isByProvider && password !== markOf(keyring, person.state.passwordHash)) throw unfinished()
  const member = await memberFor(context, person, organizationId, isByProvider)
  if (member === undefined) throw unfinished()
  const metadata = metadataOf(request, organizationId, `user:${member._id}`)
  const inBrowser = request.body.session === 'cookie'
  const used = await takeCode(context, request, person, factor, request.body.code, metadata).catch(asCredentials)
  if (!(await isFirstUse(context, `challenge:${salt}`, until))) throw unfinished()
  const reply = await beginSession(context, request, { person, member, isByProvider, inBrowser })
  return { ...reply, wrote: allWrote(used, reply.wrote) }
}

/** Active user to sign in as: in the named organization, or the first of the login order. */
export const memberFor = async (
  context: IdentityContext,
  { state }: Person,
  organizationId: string | undefined,
  isByProvider = false,
): Promise<UserRow | undefined> => {
  // With another service's identification, limits of a password set by an administrator do not apply.
  const memberships = loginOrder(isByProvider ? { ...state, opensOnly: undefined } : state)
  const asked = organizationId?.toLowerCase()
  for (const membership of memberships) {
    if (asked !== undefined && membership.organizationId !== asked) continue
    const member = await context.services.tables.get<UserRow>(USERS_TABLE, membership.organizationId, membership.userId)
    if (member?.status === 'active') return member
  }
  return undefined
}

const beginSession = async (
  context: IdentityContext,
  request: Request,
  { person, member, isByProvider = false, jti, inBrowser }: SignIn,
): Promise<Reply> => {
  const { now, ids } = request
  const { _id: userId, organizationId } = member
  const { identityId, state } = person
  const metadata = metadataOf({ ...request, caller: undefined }, organizationId, `user:${userId}`)
  const access = { type: 'access', organizationId, at: formatTime(now) } as const
  const accessed = await context.people.command(identityId, access, { ids, metadata })
  const subject = { person, userId, organizationId, jti: jti ?? ids.next(), isByProvider, inBrowser }
  const issued = await issueToken(context, request, subject)
  const organizations = await organizationItems(context, state, organizationId)
  return {
    body: {
      ...sessionBody('Welcome.', issued.signed, withoutRunOut(member, now), organizations),
      ...(await secondFactorDue(context, organizationId, person.state, now)),
    },
    headers: issued.headers,
    wrote: allWrote(accessed, issued.wrote),
    secret: true,
  }
}

/** Simultaneous codes count too. @throws Failure invalid_credentials after too many. */
const countTry = async (
  { services: { tables } }: IdentityContext,
  salt: string,
  until: number,
  now: number,
): Promise<void> => {
  const { count } = await tables.increment(NO_ORGANIZATION, `challenge-${salt}`, until - now)
  if (count > CHALLENGE_CODES_MAX) throw unfinished()
}

/** @throws Failure invalid_credentials if this service did not issue it, or if it has expired. */
export const openSignIn = <Said extends { until: number }>(
  keyring: IdentityContext['services']['keyring'],
  purpose: string,
  sealed: string,
  now: number,
): Said => {
  let text: string
  try {
    text = keyring.decrypt(purpose, sealed)
  } catch (cause) {
    throw unfinished(cause)
  }
  const said = JSON.parse(text) as Said
  if (said.until <= now) throw unfinished()
  return said
}

export const unfinished = (cause?: unknown): Failure =>
  new Failure('invalid_credentials', { message: 'The sign-in did not come to its end; begin again.', cause })

/** Before a token is issued, a wrong code is answered like a wrong password. */
const asCredentials = (error: unknown): Wrote | undefined => {
  if (!(error instanceof Failure) || error.code !== 'wrong_code') throw error
  throw new Failure('invalid_credentials', { message: error.message })
}

const markOf = (keyring: IdentityContext['services']['keyring'], passwordHash: string): string =>
  keyring.hmac(PURPOSE, passwordHash).toString('base64url')
