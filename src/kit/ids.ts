import { createHash, createHmac, randomBytes } from 'node:crypto'
import { v7 } from 'uuid'
import type { IdSource } from './route.ts'

/** Names of ids that follow from other ids live below this one. Fixed for ever. */
const NAMESPACE = '6f5e7b0a-3c1d-5e0f-9a57-3b6e1c2d4f80'

const NAMESPACE_BYTES = Buffer.from(NAMESPACE.replaceAll('-', ''), 'hex')

/** A UUIDv5 (RFC 9562, 5.5) that follows from its parts and never changes. By hand: the hot path makes one for each delivery and transition. */
export const idFrom = (...parts: (string | number)[]): string => {
  const hash = createHash('sha1').update(NAMESPACE_BYTES).update(parts.join('|')).digest()
  hash[6] = (hash[6] & 0x0f) | 0x50
  hash[8] = (hash[8] & 0x3f) | 0x80
  const hex = hash.toString('hex', 0, 16)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}

/** UUIDv7s of the given time; with a seed the same ones at each call (a repeated request makes the ids of the first). */
export const idSource = (now: number, seed: Buffer = randomBytes(32)): IdSource => {
  let made = 0
  return {
    next: () => v7({ msecs: now, random: createHmac('sha256', seed).update(String(made++)).digest().subarray(0, 16) }),
  }
}
