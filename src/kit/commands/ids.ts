import { createHmac, hash, randomFillSync } from 'node:crypto'
import { v7 } from 'uuid'
import type { IdSource } from '../http/route.ts'

/** Namespace of ids derived from other ids. Fixed for ever. */
const NAMESPACE = '6f5e7b0a-3c1d-5e0f-9a57-3b6e1c2d4f80'

const NAMESPACE_BYTES = Buffer.from(NAMESPACE.replaceAll('-', ''), 'hex')

/** A UUIDv5 (RFC 9562, 5.5) derived from its parts. By hand: the hot path makes one for each delivery or transition. */
export const idFrom = (...parts: (string | number)[]): string => {
  const hex = hash('sha1', named(parts.join('|')), 'hex')
  const variant = ((Number.parseInt(hex[16], 16) & 0x3) | 0x8).toString(16)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-5${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}

const NAMED = Buffer.alloc(1_024)
NAMED.set(NAMESPACE_BYTES)
/** Characters that fit behind the namespace, in UTF-8. */
const NAMED_LENGTH_MAX = (NAMED.length - NAMESPACE_BYTES.length) / 3

/** The namespace and the name behind it; valid until the next call. */
const named = (name: string): Buffer =>
  name.length <= NAMED_LENGTH_MAX
    ? NAMED.subarray(0, NAMESPACE_BYTES.length + NAMED.write(name, NAMESPACE_BYTES.length))
    : Buffer.concat([NAMESPACE_BYTES, Buffer.from(name)])

/** Whether an id has the form of derived ids. */
export const isDerived = (id: string): boolean => id[14] === '5'

/** Random bytes drawn for many ids at once: each draw asks the operating system. */
const drawn = Buffer.alloc(16 * 256)
let used = drawn.length

const randomBytes = (): Uint8Array => {
  if (used === drawn.length) {
    randomFillSync(drawn)
    used = 0
  }
  used += 16
  return drawn.subarray(used - 16, used)
}

/** UUIDv7s of the given time; with a seed the same ones at each call (a repeated request makes the ids of the first). */
export const idSource = (now: number, seed?: Buffer, isRepeat?: boolean): IdSource => {
  if (seed === undefined)
    return { next: () => v7({ msecs: now, random: randomBytes() }), isRepeat: false, isRandom: true }
  let made = 0
  return {
    isRepeat,
    next: () => v7({ msecs: now, random: createHmac('sha256', seed).update(String(made++)).digest().subarray(0, 16) }),
  }
}

/** A UUIDv7 derived from its seed and its place, which sorts after those of the places before. */
export const idInOrder = (atMs: number, place: number, seed: string): string => {
  // By hand: the rows of a file have one each. The sequence takes the place of the first random bits, as in uuid's v7.
  const hex = hash('sha1', `${seed}|${place}`, 'hex')
  const at = atMs.toString(16).padStart(12, '0')
  const high = ((place >>> 20) & 0xfff).toString(16).padStart(3, '0')
  const middle = (0x8000 | ((place >>> 6) & 0x3fff)).toString(16)
  const low = (((place << 2) & 0xfc) | (Number.parseInt(hex[21], 16) & 0x3)).toString(16).padStart(2, '0')
  return `${at.slice(0, 8)}-${at.slice(8)}-7${high}-${middle}-${low}${hex.slice(22, 32)}`
}
