import type { Keyring } from '../../kit/keys/keyring.ts'
import type { TableDeclaration } from '../../kernel/table.ts'

export const SERVICE_ACCOUNTS_TABLE = 'serviceAccounts'

/** Data needed to authorize a key at each call, by organization and service account. */
export const ACCESS_SERVICES: TableDeclaration = { name: 'access-services', version: 1, isShared: true }

export type AccessServiceRow = {
  roleId: string
  hubIds: string[]
  /** RFC 3339; absent: no expiry. */
  expiresAt?: string
  keyHash: string
  /** The previous key, and the end of its validity. */
  previousKeyHash?: string
  previousKeyUntil?: string
}

/** Owner of a key, by its hash, without organization. */
export const ACCESS_KEYS: TableDeclaration = { name: 'access-keys', version: 1 }

export type AccessKeyRow = {
  organizationId: string
  accountId: string
}

const KEY = /^wmk_[\w-]{43}$/

/** Whether a credential has the form of a service account's key; tokens and device keys never begin like that. */
export const isServiceKey = (token: string): boolean => token.startsWith('wmk_')

/** A key `wmk_<256 bits derived from the seed>` and its stored hash. */
export const makeServiceKey = (keyring: Keyring, seed: string): { key: string; keyHash: string } => {
  const key = `wmk_${keyring.hmac('service-key-secret', seed).toString('base64url')}`
  return { key, keyHash: keyHashOf(keyring, key) as string }
}

/** Keys are long and random: a keyed hash without stretching is enough. Undefined if the text is no key. */
export const keyHashOf = (keyring: Keyring, key: string): string | undefined =>
  KEY.test(key) ? keyring.hmac('service-key', key).toString('base64url') : undefined
