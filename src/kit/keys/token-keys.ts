import { newTokenKey, type TokenKeyEntry } from './keyring-store.ts'

/** Number of keys that verify at a time: a token names its key, so more keys only enlarge the file. */
const KEYS_MAX = 16

/** A new key first; the signing one verifies for `tokenTtlMs` more. @throws Error when too many still verify. */
export const rotateTokenKeys = (keys: readonly TokenKeyEntry[], now: number, tokenTtlMs: number): TokenKeyEntry[] => {
  const before = verifyingTokenKeys(keys, now).map((key) => ({
    ...key,
    verifiesUntil: key.verifiesUntil ?? now + wholeSeconds(tokenTtlMs),
  }))
  if (before.length >= KEYS_MAX)
    throw new Error(`${before.length} token keys verify still; the next one can be made when the oldest has ended`)
  return [newTokenKey(), ...before]
}

/** Keys that still sign or verify. */
export const verifyingTokenKeys = (keys: readonly TokenKeyEntry[], now: number): TokenKeyEntry[] =>
  keys.filter(({ verifiesUntil = now }) => verifiesUntil >= now)

/** In the unit of tokens. */
const wholeSeconds = (ms: number): number => Math.ceil(ms / 1000) * 1000
