import { createHmac, randomBytes } from 'node:crypto'
import { v5, v7 } from 'uuid'
import type { IdSource } from './route.ts'

/** Names of ids that follow from other ids live below this one. Fixed for ever. */
const NAMESPACE = '6f5e7b0a-3c1d-5e0f-9a57-3b6e1c2d4f80'

/** A UUIDv5 that follows from its parts and never changes. */
export const idFrom = (...parts: (string | number)[]): string => v5(parts.join('|'), NAMESPACE)

/** UUIDv7s of the given time; with a seed the same ones at each call (a repeated request makes the ids of the first). */
export const idSource = (now: number, seed: Buffer = randomBytes(32)): IdSource => {
  let made = 0
  return {
    next: () => v7({ msecs: now, random: createHmac('sha256', seed).update(String(made++)).digest().subarray(0, 16) }),
  }
}
