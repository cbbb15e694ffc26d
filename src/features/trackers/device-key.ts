import type { Keyring } from '../../kit/keys/keyring.ts'

const KEY = /^([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\.([\w-]{43})$/i

/** A credential `<id>.<256 bits derived from the seed>` and its stored hash. */
export const makeDeviceKey = (keyring: Keyring, id: string, seed: string): { key: string; keyHash: string } => {
  const secret = keyring.hmac('device-key-secret', seed).toString('base64url')
  return { key: `${id}.${secret}`, keyHash: hashOf(keyring, id, secret).toString('base64url') }
}

/** Parts of a text with the form of a device or ingest key; undefined for any other credential. */
export const parseDeviceKey = (token: string): { id: string; secret: string } | undefined => {
  const parts = KEY.exec(token)
  return parts === null ? undefined : { id: parts[1].toLowerCase(), secret: parts[2] }
}

/** Secrets are long and random: a keyed hash without stretching is enough, and fast. */
export const hashOf = (keyring: Keyring, id: string, secret: string): Buffer =>
  keyring.hmac('device-key', `${id}.${secret}`)
