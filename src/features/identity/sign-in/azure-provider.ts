import type { Configuration, CustomFetch } from 'openid-client'
import { Failure } from '../../../kernel/errors.ts'
import type { FetchOptions, HttpCaller } from '../../../engines/http-caller.ts'
import { RecentMap } from '../../../kernel/recent-map.ts'

export interface Integration {
  organizationId: string
  tenantId: string
  clientId: string
  clientSecret: string
}

/** Secrets of the browser that began, which the provider must return. */
export interface Challenge {
  state: string
  nonce: string
  verifier: string
}

const SCOPE = 'openid email profile'
const TIMEOUT_SECONDS = 10
/** Largest answer of a provider in bytes; real ones are a few KiB. */
const ANSWER_BYTES_MAX = 1024 * 1024
/** How long a provider's metadata is cached. */
const KNOWN_MS = 10 * 60_000
const INTEGRATIONS_KNOWN = 200
const TENANT_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

export const azureIssuer = (tenantId: string): string => `https://login.microsoftonline.com/${tenantId}/v2.0`

/** Sign-in at a tenant of Microsoft Entra ID: OpenID Connect code flow, with PKCE, state and nonce. */
export class AzureProvider {
  private readonly fetch: CustomFetch
  private readonly issuerOf: (tenantId: string) => string
  private readonly timeoutSeconds: number
  private readonly known = new RecentMap<string, { until: number; configuration: Promise<Configuration> }>(
    INTEGRATIONS_KNOWN,
  )

  /**
   * @param issuerOf other issuers than Microsoft's, for tests on this machine
   * @param timeoutSeconds for each call, its answer included
   */
  constructor(caller: Pick<HttpCaller, 'fetch'>, issuerOf = azureIssuer, timeoutSeconds = TIMEOUT_SECONDS) {
    this.fetch = boundedFetch(caller)
    this.issuerOf = issuerOf
    this.timeoutSeconds = timeoutSeconds
  }

  /** Address at which the browser signs in. @throws Failure engine_down if the provider does not answer */
  async addressFor(integration: Integration, redirectUri: string, challenge: Challenge, now: number): Promise<string> {
    const { buildAuthorizationUrl, calculatePKCECodeChallenge } = await import('openid-client')
    const configuration = await this.discover(integration, now)
    const address = buildAuthorizationUrl(configuration, {
      redirect_uri: redirectUri,
      scope: SCOPE,
      state: challenge.state,
      nonce: challenge.nonce,
      code_challenge: await calculatePKCECodeChallenge(challenge.verifier),
      code_challenge_method: 'S256',
    })
    return address.href
  }

  /**
   * Address of the returning person, which their tenant vouches for.
   * @throws Failure invalid_credentials for an answer that does not belong to this request, forbidden for an unverified
   * address
   */
  async emailOf(
    integration: Integration,
    returnedTo: URL,
    { state, nonce, verifier }: Challenge,
    now: number,
  ): Promise<string> {
    const { authorizationCodeGrant } = await import('openid-client')
    const configuration = await this.discover(integration, now)
    const checks = { expectedState: state, expectedNonce: nonce, pkceCodeVerifier: verifier, idTokenExpected: true }
    const tokens = await authorizationCodeGrant(configuration, returnedTo, checks).catch((cause: unknown) => {
      throw new Failure('invalid_credentials', { message: 'The sign-in did not come to its end.', cause })
    })
    const claims: { [claim: string]: unknown } = tokens.claims() ?? {}
    // A tenant named by a domain has another name in the token.
    if (TENANT_ID.test(integration.tenantId) && String(claims.tid).toLowerCase() !== integration.tenantId.toLowerCase())
      throw new Failure('invalid_credentials', { message: 'The sign-in is of another tenant.' })
    // Only Microsoft sets `xms_edov`, if the tenant owns the domain. `email` is arbitrary text of the tenant's
    // administrator, and `email_verified` is a claim that they may add.
    const isVerified = [true, 1, '1'].includes(claims.xms_edov as never)
    if (typeof claims.email !== 'string' || !isVerified)
      throw new Failure('forbidden', { message: 'The e-mail of this account is not verified.' })
    return claims.email
  }

  /** Anybody may begin a sign-in: concurrent sign-ins share one request to the provider, whose answer is cached. */
  private discover(integration: Integration, now: number): Promise<Configuration> {
    const { tenantId, clientId, clientSecret } = integration
    const key = JSON.stringify([tenantId, clientId, clientSecret])
    const found = this.known.get(key)
    if (found !== undefined && now < found.until) return found.configuration
    const asked = { until: now + KNOWN_MS, configuration: this.ask(integration) }
    this.known.set(key, asked)
    asked.configuration.catch(() => (asked.until = 0))
    return asked.configuration
  }

  private async ask({ tenantId, clientId, clientSecret }: Integration): Promise<Configuration> {
    const { allowInsecureRequests, ClientSecretPost, customFetch, discovery, enableNonRepudiationChecks } =
      await import('openid-client')
    const issuer = new URL(this.issuerOf(tenantId))
    try {
      return await discovery(issuer, clientId, undefined, ClientSecretPost(clientSecret), {
        timeout: this.timeoutSeconds,
        [customFetch]: this.fetch,
        // Otherwise an unsigned id token is accepted, because it came over TLS.
        execute: [enableNonRepudiationChecks, ...(issuer.protocol === 'http:' ? [allowInsecureRequests] : [])],
      })
    } catch (cause) {
      throw new Failure('engine_down', {
        message: 'The sign-in service does not answer.',
        cause,
        retryAfterSeconds: 10,
      })
    }
  }
}

/** The library reads answers whole: an endless one is cut off. */
const boundedFetch =
  (caller: Pick<HttpCaller, 'fetch'>): CustomFetch =>
  async (url, options) => {
    const answer = await caller.fetch(url, options as FetchOptions)
    let bytes = 0
    const bounded = new TransformStream<Uint8Array, Uint8Array>({
      transform: (chunk, controller) => {
        bytes += chunk.byteLength
        if (bytes > ANSWER_BYTES_MAX) controller.error(new Error('the answer of the provider is too long'))
        else controller.enqueue(chunk)
      },
    })
    return new Response(answer.body?.pipeThrough(bounded), answer)
  }
