import { createSigner, createVerifier, TokenError } from 'fast-jwt'
import { Failure } from '../../kernel/errors.ts'
import type { Keyring } from '../../kit/keyring.ts'

const ISSUER = 'waymark'
/** Verified tokens that are remembered: checking a signature takes about 0.1 ms, a look into the cache some microseconds. */
const CACHED_MAX = 20_000

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
}

/** Signs access tokens with the newest key of the ring and verifies those of every key, by `kid`. */
export class Tokens {
  private readonly ttlMs: number
  private readonly sign: (payload: object) => string
  private readonly verifiers: ReadonlyMap<string, (token: string) => { [claim: string]: unknown }>

  constructor(keyring: Keyring, ttlMs: number) {
    const [newest] = keyring.tokenKeys
    this.ttlMs = ttlMs
    this.sign = createSigner({ key: newest.privateKey, algorithm: 'EdDSA', kid: newest.kid })
    this.verifiers = new Map(keyring.tokenKeys.map(({ kid, publicKey }) => [kid, verifierOf(publicKey)]))
  }

  /** `now` in ms since the epoch. */
  issue(subject: { userId: string; organizationId: string; jti: string }, now: number): SignedToken {
    const iat = Math.floor(now / 1000)
    const expiresInSeconds = Math.ceil(this.ttlMs / 1000)
    const { userId: sub, organizationId: org, jti } = subject
    return { token: this.sign({ sub, org, jti, iat, exp: iat + expiresInSeconds, iss: ISSUER }), expiresInSeconds }
  }

  /**
   * What the token says, when it is one of ours and has not ended; whether it was revoked is not asked here.
   * @throws Failure unauthenticated
   */
  verify(token: string, now: number): TokenClaims {
    const verify = this.verifiers.get(kidOf(token) ?? '')
    if (verify === undefined) throw new Failure('unauthenticated')
    const { sub, org, jti, exp } = claimsOf(verify, token)
    const isWhole = typeof sub === 'string' && typeof org === 'string' && typeof jti === 'string' && typeof exp === 'number'
    if (!isWhole || exp * 1000 <= now) throw new Failure('unauthenticated')
    return { userId: sub, organizationId: org, jti, expiresAt: exp * 1000 }
  }
}

// Time is checked against the clock of the service, not by the library.
const verifierOf = (key: string): ((token: string) => { [claim: string]: unknown }) =>
  createVerifier({ key, algorithms: ['EdDSA'], allowedIss: ISSUER, ignoreExpiration: true, cache: CACHED_MAX })

const claimsOf = (verify: (token: string) => { [claim: string]: unknown }, token: string): { [claim: string]: unknown } => {
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
