import { createSigner, createVerifier, TokenError } from 'fast-jwt'
import { Failure } from '../../../kernel/errors.ts'
import type { Keyring, TokenKey } from '../../../kit/keys/keyring.ts'
import { RecentMap } from '../../../kernel/recent-map.ts'

const ISSUER = 'waymark'
/** Verified tokens cached: a signature check takes about 0.1 ms. Keyed by token: hashing would cost most of that. */
const KNOWN_MAX = 20_000

type Claims = { [claim: string]: unknown }

export interface TokenClaims {
  userId: string
  organizationId: string
  jti: string
  /** ms since the epoch. */
  expiresAt: number
}

export interface SignedToken {
  token: string
  expiresInSeconds: number
  /** ms since the epoch. */
  expiresAt: number
}

/** Signs access tokens with the newest key of the ring and verifies those of all its current keys, by `kid`. */
export class Tokens {
  private readonly keyring: Keyring
  private readonly ttlMs: number
  private signer: { kid: string; sign: (payload: object) => string } | undefined
  private readonly verifiers = new Map<string, (token: string) => Claims>()
  private readonly known = new RecentMap<string, { kid: string; claims: Claims }>(KNOWN_MAX / 2)

  constructor(keyring: Keyring, ttlMs: number) {
    this.keyring = keyring
    this.ttlMs = ttlMs
  }

  /** `now` in ms since the epoch; `lifeMsMax` shortens the lifetime. */
  issue(
    subject: { userId: string; organizationId: string; jti: string },
    now: number,
    lifeMsMax = Number.POSITIVE_INFINITY,
  ): SignedToken {
    const iat = Math.floor(now / 1000)
    const expiresInSeconds = Math.ceil(Math.min(this.ttlMs, lifeMsMax) / 1000)
    const { userId: sub, organizationId: org, jti } = subject
    const exp = iat + expiresInSeconds
    const token = this.newest()({ sub, org, jti, iat, exp, iss: ISSUER })
    return { token, expiresInSeconds, expiresAt: exp * 1000 }
  }

  /**
   * Claims of a token that we issued and that has not expired; revocation is not checked here.
   * @throws Failure unauthenticated
   */
  verify(token: string, now: number): TokenClaims {
    const known = this.known.get(token)
    const kid = known?.kid ?? kidOf(token)
    const key = this.keyring.tokenKeys.find((one) => one.kid === kid)
    if (key === undefined) throw new Failure('unauthenticated')
    const { sub, org, jti, exp } = known?.claims ?? this.remember(token, key)
    const isWhole =
      typeof sub === 'string' && typeof org === 'string' && typeof jti === 'string' && typeof exp === 'number'
    // No token outlives its key, whatever it claims: a thief of the key may claim anything.
    const expiresAt = isWhole ? Math.min(exp * 1000, key.verifiesUntil ?? Number.POSITIVE_INFINITY) : 0
    if (!isWhole || expiresAt <= now) throw new Failure('unauthenticated')
    return { userId: sub, organizationId: org, jti, expiresAt }
  }

  private remember(token: string, key: TokenKey): Claims {
    const claims = claimsOf(this.verifierFor(key), token)
    this.known.set(token, { kid: key.kid, claims })
    return claims
  }

  private newest(): (payload: object) => string {
    const [{ kid, privateKey }] = this.keyring.tokenKeys
    if (this.signer?.kid !== kid)
      this.signer = { kid, sign: createSigner({ key: privateKey, algorithm: 'EdDSA', kid }) }
    return this.signer.sign
  }

  private verifierFor({ kid, publicKey }: TokenKey): (token: string) => Claims {
    const known = this.verifiers.get(kid)
    if (known !== undefined) return known
    for (const old of this.verifiers.keys())
      if (!this.keyring.tokenKeys.some((key) => key.kid === old)) this.verifiers.delete(old)
    const verifier = verifierOf(publicKey)
    this.verifiers.set(kid, verifier)
    return verifier
  }
}

// Time is checked against the clock of the service, not by the library.
const verifierOf = (key: string): ((token: string) => Claims) =>
  createVerifier({ key, algorithms: ['EdDSA'], allowedIss: ISSUER, ignoreExpiration: true, cache: false })

const claimsOf = (verify: (token: string) => Claims, token: string): Claims => {
  try {
    return verify(token)
  } catch (error) {
    if (error instanceof TokenError) throw new Failure('unauthenticated', { cause: error })
    throw error
  }
}

const kidOf = (token: string): string | undefined => {
  const dot = token.indexOf('.')
  if (dot < 0 || dot > 1_000) return undefined
  try {
    const header = JSON.parse(Buffer.from(token.slice(0, dot), 'base64url').toString()) as { kid?: unknown } | null
    return typeof header?.kid === 'string' ? header.kid : undefined
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}
