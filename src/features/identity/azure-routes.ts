import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { Failure } from '../../kernel/errors.ts'
import type { JsonSchema } from '../../kernel/json.ts'
import { objectSchema, secret } from '../../kernel/schema.ts'
import { formatTime, metadataOf } from '../../kit/http/request-context.ts'
import { type Reply, route, type Route, type RouteRequest } from '../../kit/http/route.ts'
import type { AzureProvider, Integration } from './azure-provider.ts'
import type { IdentityContext } from './context.ts'
import type { Person } from './people.ts'
import { signInAnswer } from './session-answer.ts'
import { memberFor, openSignIn, signIn, unfinished } from './sign-in.ts'
import { isFirstUse } from './single-use.ts'

export interface AzureParts {
  provider: AzureProvider
  /** The integration while it is active. */
  integrationOf(appIntegrationId: string): Promise<Integration | undefined>
  /** What clients call this service by. */
  publicUrl: string
}

const TAG = 'Authentication'
const COOKIE = 'waymark-sign-in'
const COOKIE_PATH = '/api/v3/auth/azure'
const STATE_MS = 600_000
const CODE_MS = 60_000
const CALLBACK = '/auth/azure/callback'

interface State {
  appIntegrationId: string
  nonce: string
  verifier: string
  /** Hash of what the browser that began keeps as a cookie. */
  browser: string
  until: number
}

interface Code {
  identityId: string
  organizationId: string
  until: number
  /** Tells codes apart: their text can be written in several ways. */
  salt: string
}

/** Signing in with Microsoft Entra ID. */
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
    answers: { 302: { description: 'To Microsoft.' } },
    handler: (request) => start(context, parts, request),
  }),
  route<object, { code: string }>({
    method: 'POST',
    path: '/auth/exchange',
    operationId: 'exchangeSignIn',
    summary: 'Exchange the code of a sign-in for a token',
    tag: TAG,
    access: 'public',
    body: objectSchema({ code: secret({ max: 1_000 }) }),
    bodyExample: { code: '<CODE>' },
    answers: { 200: signInAnswer('Signed in, or asked for the second factor.') },
    handler: (request) => exchange(context, request),
  }),
]

const start = async (
  { services: { keyring } }: IdentityContext,
  { provider, integrationOf, publicUrl }: AzureParts,
  { params, now }: RouteRequest,
): Promise<Reply> => {
  const appIntegrationId = params.appIntegrationId.toLowerCase()
  const integration = await integrationOf(appIntegrationId)
  if (integration === undefined) throw new Failure('not_found')
  const [browser, nonce, verifier] = [random(), random(), random()]
  const said: State = { appIntegrationId, nonce, verifier, browser: hashOf(browser), until: now + STATE_MS }
  const state = keyring.encrypt('sign-in-state', JSON.stringify(said))
  const location = await provider.addressFor(integration, callbackUrl(publicUrl), { state, nonce, verifier }, now)
  const secure = publicUrl.startsWith('https:') ? '; Secure' : ''
  const cookie = `${COOKIE}=${browser}; Path=${COOKIE_PATH}; Max-Age=${STATE_MS / 1_000}; HttpOnly; SameSite=Lax${secure}`
  return { status: 302, raw: '', headers: { location, 'set-cookie': cookie } }
}

/** A browser shows what comes back: what fails goes to the page, too, with the code of the error. */
const finish = async (
  context: IdentityContext,
  parts: AzureParts,
  request: RouteRequest<{ [name: string]: string | undefined }>,
): Promise<Reply> => {
  const cookie = `${COOKIE}=; Path=${COOKIE_PATH}; Max-Age=0; HttpOnly; SameSite=Lax`
  try {
    const code = await signedIn(context, parts, request)
    return { status: 302, raw: '', headers: { location: `/#code=${code}`, 'set-cookie': cookie }, secret: true }
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    const { correlationId } = request
    context.services.logger.warn('a sign-in was refused', { correlationId, code: error.code, error: error.message })
    return { status: 302, raw: '', headers: { location: `/#error=${error.code}`, 'set-cookie': cookie } }
  }
}

const signedIn = async (
  context: IdentityContext,
  { provider, integrationOf, publicUrl }: AzureParts,
  request: RouteRequest<{ [name: string]: string | undefined }>,
): Promise<string> => {
  const { keyring } = context.services
  const { query, now, headers } = request
  const state = query.state ?? ''
  const said = openSignIn<State>(keyring, 'sign-in-state', state, now)
  const browser = new RegExp(`(?:^|;\\s*)${COOKIE}=([\\w-]+)`).exec(headers.get('cookie') ?? '')?.[1] ?? ''
  if (!timingSafeEqual(Buffer.from(hashOf(browser)), Buffer.from(said.browser))) throw unfinished()
  if (!(await isFirstUse(context, `state:${said.nonce}`, said.until))) throw unfinished()
  const integration = await integrationOf(said.appIntegrationId)
  if (integration === undefined) throw new Failure('not_found')
  const returnedTo = new URL(callbackUrl(publicUrl))
  for (const [name, value] of Object.entries(query)) if (value !== undefined) returnedTo.searchParams.set(name, value)
  const { nonce, verifier } = said
  const email = await provider.emailOf(integration, returnedTo, { state, nonce, verifier }, now)
  const person = await context.people.findByEmail(email)
  const { organizationId } = integration
  const member = person && (await memberFor(context, person, organizationId, true))
  if (person === undefined || member === undefined)
    throw new Failure('forbidden', { message: 'The organization has no user with this e-mail.' })
  await verified(context, request, person, organizationId, member._id)
  const code: Code = { identityId: person.identityId, organizationId, until: now + CODE_MS, salt: random() }
  return keyring.encrypt('sign-in-code', JSON.stringify(code))
}

const exchange = async (context: IdentityContext, request: RouteRequest<object, { code: string }>): Promise<Reply> => {
  const { body, now, network } = request
  await context.limits.countFrom(network, now)
  const { identityId, organizationId, until, salt } = openSignIn<Code>(
    context.services.keyring,
    'sign-in-code',
    body.code,
    now,
  )
  if (!(await isFirstUse(context, `code:${salt}`, until))) throw unfinished()
  const person = await context.people.load(identityId)
  const member = person && (await memberFor(context, person, organizationId, true))
  if (person === undefined || member === undefined) throw unfinished()
  return signIn(context, request, { person, member, isByProvider: true })
}

/**
 * An address that nobody had verified is its owner's from now on: whoever registered it before keeps neither a password,
 * nor a second factor, nor a session. It is called verified last, so that a crash leaves it to the next sign-in.
 */
const verified = async (
  { people, sessions, passwords }: IdentityContext,
  request: RouteRequest<{ [name: string]: string | undefined }>,
  { identityId, state }: Person,
  organizationId: string,
  userId: string,
): Promise<void> => {
  if (state.isVerified) return
  const at = formatTime(request.now)
  const origin = { ids: request.ids, metadata: metadataOf(request, organizationId, `user:${userId}`) }
  const passwordHash = await passwords.hash(random())
  await people.command(identityId, { type: 'changePassword', passwordHash, at }, origin)
  await people.command(identityId, { type: 'removeFactor', at }, origin)
  await sessions.endAll(identityId, { at }, origin)
  await people.command(identityId, { type: 'verifyEmail', email: state.email, at }, origin)
}

const callbackUrl = (publicUrl: string): string => `${publicUrl.replace(/\/$/, '')}/api/v3${CALLBACK}`

const random = (): string => randomBytes(32).toString('base64url')

const hashOf = (text: string): string => createHash('sha256').update(text).digest('base64url')

/** What OpenID Connect and Microsoft send back. */
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
