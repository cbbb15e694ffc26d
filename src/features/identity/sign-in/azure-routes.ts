import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { Failure } from '../../../kernel/errors.ts'
import type { JsonSchema } from '../../../kernel/json.ts'
import { objectSchema, secret } from '../../../kernel/schema.ts'
import { metadataOf } from '../../../kit/http/request-context.ts'
import { type Reply, route, type Route, type RouteRequest, type Wrote } from '../../../kit/http/route.ts'
import type { AzureProvider, Integration } from './azure-provider.ts'
import { SESSION_MEMBER, type SessionMember } from '../sessions/browser-cookie.ts'
import type { IdentityContext } from '../context.ts'
import { cookie, cookieIn } from '../sessions/cookies.ts'
import type { Person } from '../people.ts'
import { VERIFY_ADDRESS } from '../processes.ts'
import { signInAnswer } from '../sessions/session-answer.ts'
import { memberFor, openSignIn, signIn, unfinished } from './sign-in.ts'
import { isFirstUse } from '../single-use.ts'

export interface AzureParts {
  provider: AzureProvider
  /** The integration, if it is active. */
  integrationOf(appIntegrationId: string): Promise<Integration | undefined>
}

const TAG = 'Authentication'
/** Cookie of the browser that began: sent to the callback and to the exchange. */
const COOKIE = 'waymark-browser'
const STATE_MS = 600_000
const CODE_MS = 60_000
const CALLBACK = '/auth/azure/callback'

interface State {
  appIntegrationId: string
  nonce: string
  verifier: string
  /** Hash of the cookie in the browser that began. */
  browser: string
  until: number
}

interface Code {
  identityId: string
  organizationId: string
  /** Same hash as in the state: the code is useless in another browser. */
  browser: string
  /** Number of proofs: another one since ends the code. */
  proofs: number
  until: number
  /** Makes codes unique: the same code can be encoded in several ways. */
  salt: string
}

/** Sign-in with Microsoft Entra ID. */
export const azureRoutes = (context: IdentityContext, parts: AzureParts): Route[] => [
  route<{ [name: string]: string | undefined }>({
    method: 'GET',
    path: CALLBACK,
    operationId: 'finishAzureSignIn',
    summary: 'Where Microsoft sends the browser back to; it goes on to `/#code=…`, or to `/#error=…`',
    tag: TAG,
    access: 'public',
    query: CALLBACK_QUERY,
    answers: {
      302: { description: 'To the page, with a code of one minute for `POST /auth/exchange` in the fragment.' },
    },
    handler: (request) => finish(context, parts, request),
  }),
  route({
    method: 'GET',
    path: '/auth/azure/{appIntegrationId}',
    operationId: 'startAzureSignIn',
    summary: 'Sign in with Microsoft Entra ID',
    tag: TAG,
    access: 'public',
    params: { appIntegrationId: { type: 'string', format: 'uuid', description: 'The id of an active integration.' } },
    answers: {
      302: { description: 'To Microsoft.' },
      503: {
        description: 'The sign-in service does not answer: a page for people that says so.',
        contentType: 'text/html; charset=utf-8',
        headers: ['Retry-After'],
      },
    },
    handler: (request) => start(context, parts, request),
  }),
  route<object, { code: string } & SessionMember>({
    method: 'POST',
    path: '/auth/exchange',
    operationId: 'exchangeSignIn',
    summary: 'Exchange the code of a sign-in for a token',
    description: `Only in the browser that began the sign-in: the request carries the cookie \`${COOKIE}\` that \`GET /auth/azure/{appIntegrationId}\` set there.`,
    tag: TAG,
    access: 'public',
    signsIn: true,
    body: objectSchema({ code: secret({ max: 1_000 }), ...SESSION_MEMBER }),
    bodyExample: { code: '<CODE>' },
    answers: { 200: signInAnswer('Signed in, or asked for the second factor.') },
    handler: (request) => exchange(context, request),
  }),
]

const start = async (
  { services: { keyring }, config: { publicUrl } }: IdentityContext,
  { provider, integrationOf }: AzureParts,
  { params, now }: RouteRequest,
): Promise<Reply> => {
  const appIntegrationId = params.appIntegrationId.toLowerCase()
  const integration = await integrationOf(appIntegrationId)
  if (integration === undefined) throw new Failure('not_found')
  const [browser, nonce, verifier] = [random(), random(), random()]
  const said: State = { appIntegrationId, nonce, verifier, browser: hashOf(browser), until: now + STATE_MS }
  const state = keyring.encrypt('sign-in-state', JSON.stringify(said))
  const challenge = { state, nonce, verifier }
  const location = await provider
    .addressFor(integration, callbackUrl(publicUrl), challenge, now)
    .catch((error: unknown) => {
      if (error instanceof Failure && error.code === 'engine_down') return undefined
      throw error
    })
  if (location === undefined) return awayPage()
  return { status: 302, raw: '', headers: { location, 'set-cookie': cookieOf(publicUrl, browser, STATE_MS) } }
}

/** A person reads this answer: an error page instead of JSON. */
const awayPage = (): Reply => ({
  status: 503,
  raw: AWAY,
  headers: {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
    'cache-control': 'no-store',
    'retry-after': '10',
  },
})

const AWAY = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>Waymark</title></head>
<body>
<h1>Waymark</h1>
<p>The Microsoft sign-in service does not answer at the moment. Wait a little, then <a href="">try again</a>.</p>
<p><a href="/">To the sign-in page</a></p>
</body>
</html>
`

/** A browser shows the answer: failures also redirect to the page, with the code of the error. */
const finish = async (
  context: IdentityContext,
  parts: AzureParts,
  request: RouteRequest<{ [name: string]: string | undefined }>,
): Promise<Reply> => {
  try {
    const { code, wrote } = await signedIn(context, parts, request)
    return { status: 302, raw: '', headers: { location: `/#code=${code}` }, wrote, secret: true }
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    const { correlationId } = request
    context.services.logger.warn('a sign-in was refused', { correlationId, code: error.code, error: error.message })
    const cookie = cookieOf(context.config.publicUrl, '', 0)
    return { status: 302, raw: '', headers: { location: `/#error=${error.code}`, 'set-cookie': cookie } }
  }
}

const signedIn = async (
  context: IdentityContext,
  { provider, integrationOf }: AzureParts,
  request: RouteRequest<{ [name: string]: string | undefined }>,
): Promise<{ code: string; wrote: Wrote | undefined }> => {
  const { keyring } = context.services
  const { query, now } = request
  const state = query.state ?? ''
  const said = openSignIn<State>(keyring, 'sign-in-state', state, now)
  assertBrowser(request, said.browser)
  if (!(await isFirstUse(context, `state:${said.nonce}`, said.until))) throw unfinished()
  const integration = await integrationOf(said.appIntegrationId)
  if (integration === undefined) throw new Failure('not_found')
  const returnedTo = new URL(callbackUrl(context.config.publicUrl))
  for (const [name, value] of Object.entries(query)) if (value !== undefined) returnedTo.searchParams.set(name, value)
  const { nonce, verifier } = said
  const email = await provider.emailOf(integration, returnedTo, { state, nonce, verifier }, now)
  const person = await context.people.findByEmail(email)
  const { organizationId } = integration
  const member = person && (await memberFor(context, person, organizationId, true))
  if (person === undefined || member === undefined)
    throw new Failure('forbidden', { message: 'The organization has no user with this e-mail.' })
  const { identityId } = person
  const wrote = await verified(context, request, person, organizationId, member._id)
  const proofs = (await context.people.load(identityId))?.state.proofs ?? 0
  const code: Code = { identityId, organizationId, proofs, browser: said.browser, until: now + CODE_MS, salt: random() }
  return { code: keyring.encrypt('sign-in-code', JSON.stringify(code)), wrote }
}

const exchange = async (
  context: IdentityContext,
  request: RouteRequest<object, { code: string } & SessionMember>,
): Promise<Reply> => {
  const { body, now, network } = request
  await context.limits.countFrom(network, now)
  const code = openSignIn<Code>(context.services.keyring, 'sign-in-code', body.code, now)
  const { identityId, organizationId, proofs, until, salt } = code
  assertBrowser(request, code.browser)
  if (!(await isFirstUse(context, `code:${salt}`, until))) throw unfinished()
  const person = await context.people.load(identityId)
  const member = person && (await memberFor(context, person, organizationId, true))
  if (person === undefined || member === undefined || person.state.proofs !== proofs) throw unfinished()
  const inBrowser = body.session === 'cookie'
  const reply = await signIn(context, request, { person, member, isByProvider: true, inBrowser })
  return { ...reply, headers: { 'set-cookie': cookieOf(context.config.publicUrl, '', 0), ...reply.headers } }
}

const cookieOf = (publicUrl: string, value: string, lifeMs: number): string =>
  cookie(publicUrl, COOKIE, value, lifeMs, 'Lax')

/** Checks that the request comes from the browser that began. @throws Failure invalid_credentials */
const assertBrowser = (request: Pick<RouteRequest, 'headers'>, expected: string): void => {
  const browser = cookieIn(request, COOKIE) ?? ''
  if (!timingSafeEqual(Buffer.from(hashOf(browser)), Buffer.from(expected))) throw unfinished()
}

/**
 * A first verified address belongs to its owner from then on: its earlier registrant keeps no password, second factor
 * or session, nor anything that they began.
 */
const verified = async (
  { services, people, passwords }: IdentityContext,
  request: RouteRequest<{ [name: string]: string | undefined }>,
  { identityId, state }: Person,
  organizationId: string,
  userId: string,
): Promise<Wrote | undefined> => {
  if (state.isVerified) return undefined
  const { now, ids } = request
  const metadata = metadataOf(request, organizationId, `user:${userId}`)
  const passwordHash = await passwords.hash(random(), request.network)
  return services.processes.run(VERIFY_ADDRESS, identityId, { organizationId, now, ids, metadata }, async () =>
    (await people.load(identityId))?.state.isVerified ? undefined : { identityId, email: state.email, passwordHash },
  )
}

const callbackUrl = (publicUrl: string): string => `${publicUrl.replace(/\/$/, '')}/api/v3${CALLBACK}`

const random = (): string => randomBytes(32).toString('base64url')

const hashOf = (text: string): string => createHash('sha256').update(text).digest('base64url')

/** Parameters returned by OpenID Connect and Microsoft. */
const RETURNED: { [name: string]: string } = {
  code: 'For the token of the provider.',
  state: 'As the sign-in began with it.',
  iss: 'The issuer.',
  session_state: 'Of the session at the provider; not looked at.',
  client_info: 'Of the account at the provider; not looked at.',
  error: 'Why there is no code.',
  error_description: 'The same in words.',
  error_uri: 'Where it is explained.',
  error_subcode: 'The same in detail.',
}

const CALLBACK_QUERY: JsonSchema = {
  type: 'object',
  properties: Object.fromEntries(
    Object.entries(RETURNED).map(([name, description]) => [name, { type: 'string', maxLength: 8_000, description }]),
  ),
  additionalProperties: false,
}
