import { timingSafeEqual } from 'node:crypto'
import type { Keyring } from '../../kit/keys/keyring.ts'
import { readUuid, writeUuid } from '../../kernel/uuid-bytes.ts'

const START_AT = 16
const SIGN_AT = 22
const TOKEN_BYTES = 38

/** Tracking token of a tracker's trip that starts (or started) at `startedAt`, ms since the epoch: both, signed. */
export const tripToken = (keyring: Keyring, trackerId: string, startedAt: number): string => {
  const bytes = Buffer.alloc(TOKEN_BYTES)
  writeUuid(trackerId, bytes, 0)
  bytes.writeUIntBE(startedAt, START_AT, 6)
  signature(keyring, trackerId, startedAt).copy(bytes, SIGN_AT)
  return bytes.toString('base64url')
}

/** Content of a token; undefined if this installation did not issue it. Does not check whether the trip exists yet. */
export const readTripToken = (
  keyring: Keyring,
  token: string,
): { trackerId: string; startedAt: number } | undefined => {
  if (!/^[\w-]{51}$/.test(token)) return undefined
  const bytes = Buffer.from(token, 'base64url')
  if (bytes.length !== TOKEN_BYTES) return undefined
  const trackerId = readUuid(bytes, 0)
  const startedAt = bytes.readUIntBE(START_AT, 6)
  return timingSafeEqual(bytes.subarray(SIGN_AT), signature(keyring, trackerId, startedAt))
    ? { trackerId, startedAt }
    : undefined
}

const signature = (keyring: Keyring, trackerId: string, startedAt: number): Buffer =>
  keyring.hmac('trip-token', `${trackerId}|${startedAt}`).subarray(0, TOKEN_BYTES - SIGN_AT)
