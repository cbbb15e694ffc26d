import { Failure } from '../../../kernel/errors.ts'
import type { EventMetadata } from '../../../kernel/event.ts'
import { formatTime } from '../../../kit/http/request-context.ts'
import type { RouteRequest, Wrote } from '../../../kit/http/route.ts'
import type { Keyring } from '../../../kit/keys/keyring.ts'
import type { IdentityContext } from '../context.ts'
import type { Person } from '../people.ts'
import type { SecondFactor } from './second-factor.ts'
import { isFirstUse } from '../single-use.ts'

const STEP_SECONDS = 30
const SECRET_BYTES = 20
const RECOVERY_CODES = 10
const RECOVERY_CHARACTERS = 10
/** Crockford's base 32: without letters that look like digits. */
const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'
const PURPOSE = 'second-factor'

/** A secret for an app, encrypted for the log, and as a URI for a QR code (RFC 6238; SHA-1, six digits, 30 s). */
export const newSecret = async (
  keyring: Keyring,
  seed: string,
  email: string,
): Promise<{ secret: string; otpauthUri: string; sealedSecret: string }> => {
  const { generateURI, ScureBase32Plugin } = await import('otplib')
  const bytes = keyring.hmac('second-factor-secret', seed).subarray(0, SECRET_BYTES)
  const secret = new ScureBase32Plugin().encode(bytes)
  return {
    secret,
    otpauthUri: generateURI({ issuer: 'Waymark', label: email, secret }),
    sealedSecret: keyring.encrypt(PURPOSE, secret),
  }
}

/** Single-use codes for users who lost the app. A repeated request draws the same seed, and so the same codes. */
export const newRecoveryCodes = (keyring: Keyring, seed: string): string[] =>
  Array.from({ length: RECOVERY_CODES }, (_, i) => {
    const bytes = keyring.hmac('recovery-code', `${seed}|${i}`).subarray(0, RECOVERY_CHARACTERS)
    const code = Array.from(bytes, (byte) => ALPHABET[byte % ALPHABET.length]).join('')
    return `${code.slice(0, RECOVERY_CHARACTERS / 2)}-${code.slice(RECOVERY_CHARACTERS / 2)}`
  })

export const recoveryHash = (keyring: Keyring, identityId: string, code: string): string => {
  const plain = code.toLowerCase().replace(/[\s-]/g, '').replace(/o/g, '0').replace(/[il]/g, '1')
  return keyring.hmac('recovery-code-hash', `${identityId}|${plain}`).toString('base64url')
}

/** Time step (30 s since the epoch) of a code: the present one or an adjacent one; undefined for a wrong code. */
export const stepOf = async (
  keyring: Keyring,
  sealedSecret: string,
  code: string,
  now: number,
): Promise<number | undefined> => {
  const token = code.replace(/\s/g, '')
  if (!/^\d{6}$/.test(token)) return undefined
  const { verifySync } = await import('otplib')
  const secret = keyring.decrypt(PURPOSE, sealedSecret)
  const found = verifySync({
    secret,
    token,
    epoch: Math.floor(now / 1000),
    period: STEP_SECONDS,
    epochTolerance: STEP_SECONDS,
  })
  return found.valid && 'timeStep' in found ? found.timeStep : undefined
}

/**
 * Consumes a code of an app or a recovery code: neither is valid again.
 * @throws Failure wrong_code, rate_limited
 */
export const takeCode = async (
  context: IdentityContext,
  { network, now, ids }: Pick<RouteRequest, 'network' | 'now' | 'ids'>,
  { identityId, state }: Person,
  factor: SecondFactor,
  code: string,
  metadata: EventMetadata,
): Promise<Wrote | undefined> => {
  const { keyring } = context.services
  await context.throttle.countCode(state.email, network, now)
  const step = await stepOf(keyring, factor.sealedSecret, code, now)
  if (step !== undefined) {
    if (!(await isFirstUse(context, `step:${factor.factorId}:${step}`, (step + 3) * STEP_SECONDS * 1000)))
      throw new Failure('wrong_code')
    return undefined
  }
  const hash = recoveryHash(keyring, identityId, code)
  if (!factor.recoveryHashes.includes(hash)) throw new Failure('wrong_code')
  const command = { type: 'useRecoveryCode', hash, at: formatTime(now) } as const
  return context.people.command(identityId, command, { ids, metadata })
}
