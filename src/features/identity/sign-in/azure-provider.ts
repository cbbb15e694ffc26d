import {
  allowInsecureRequests,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  calculatePKCECodeChallenge,
  ClientSecretPost,
  type Configuration,
  customFetch,
  type CustomFetch,
  discovery,
  enableNonRepudiationChecks,
} from 'openid-client'
import { Failure } from '../../../kernel/errors.ts'
import { RecentMap } from '../../../kernel/recent-map.ts'

/** What an organization has set up with the provider. */
export interface Integration {
  organizationId: string
  tenantId: string
  clientId: string
  clientSecret: string
}

/** What only the browser that began knows, and what the provider must say again. */
export interface Challenge {
  state: string
  nonce: string
  verifier: string
}

const SCOPE = 'openid email profile'
const TIMEOUT_SECONDS = 10
/** Bytes of one provider answer; the real ones are a few KiB. */
const ANSWER_BYTES_MAX = 1024 * 1024
/** How long a provider's own description is believed. */
const KNOWN_MS = 10 * 60_000
const INTEGRATIONS_KNOWN = 200
const TENANT_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

export const azureIssuer = (tenantId: string): string => `https://login.microsoftonline.com/${tenantId}/v2.0`

/** Sign-in at a tenant of Microsoft Entra ID: OpenID Connect by code, with PKCE, state and nonce. */
export class AzureProvider {
  private readonly issuerOf: (tenantId: string) => string
  private readonly known = new RecentMap<string, { until: number; configuration: Promise<Configuration> }>(
    INTEGRATIONS_KNOWN,
  )

  /** @param issuerOf another issuer than Microsoft's, for tests on this machine */
  constructor(issuerOf: (tenantId: string) => string = azureIssuer) {
    this.issuerOf = issuerOf
  }

  /** Where the browser goes to sign in. @throws Failure engine_down when the provider does not answer */
  async addressFor(integration: Integration, redirectUri: string, challenge: Challenge, now: number): Promise<string> {
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
   * The address of the returning person, which their tenant vouches for.
   * @throws Failure invalid_credentials for what the provider did not say to this very question, forbidden for an address
   * that nobody has verified
   */
  async emailOf(
    integration: Integration,
    returnedTo: URL,
    { state, nonce, verifier }: Challenge,
    now: number,
  ): Promise<string> {
    const configuration = await this.discover(integration, now)
    const checks = { expectedState: state, expectedNonce: nonce, pkceCodeVerifier: verifier, idTokenExpected: true }
    const tokens = await authorizationCodeGrant(configuration, returnedTo, checks).catch((cause: unknown) => {
      throw new Failure('invalid_credentials', { message: 'The sign-in did not come to its end.', cause })
    })
    const claims: { [claim: string]: unknown } = tokens.claims() ?? {}
    // Only of a tenant named by a domain the token may have another name.
    if (TENANT_ID.test(integration.tenantId) && String(claims.tid).toLowerCase() !== integration.tenantId.toLowerCase())
      throw new Failure('invalid_credentials', { message: 'The sign-in is of another tenant.' })
    // Microsoft alone says `xms_edov`, where the tenant owns the domain. `email` is whatever the tenant's administrator
    // typed, and `email_verified` is a claim that they may add.
    const isVerified = [true, 1, '1'].includes(claims.xms_edov as never)
    if (typeof claims.email !== 'string' || !isVerified)
      throw new Failure('forbidden', { message: 'The e-mail of this account is not verified.' })
    return claims.email
  }

  /** Anybody may begin a sign-in: however many do, the provider is asked once in a while, and by one of them. */
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
    const issuer = new URL(this.issuerOf(tenantId))
    try {
      return await discovery(issuer, clientId, undefined, ClientSecretPost(clientSecret), {
        timeout: TIMEOUT_SECONDS,
        [customFetch]: boundedFetch,
        // Without this an id token is believed unsigned, because it came over TLS.
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

/** An answer is read whole by the library: one that does not end is cut off. */
const boundedFetch: CustomFetch = async (url, options) => {
  const answer = await fetch(url, options)
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
