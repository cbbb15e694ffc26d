import { Buffer } from 'node:buffer'

/** Maximum length of frames that may be an `auth` message. */
const AUTH_BYTES_MAX = 8 * 1024
/** Maximum length at which the first frame of an unauthenticated socket is parsed. */
const FIRST_BYTES_MAX = 64 * 1024
const USUAL_START = Buffer.from('{"type":"')
const LETTER_A = 0x61
const AUTH = Buffer.from('"auth"')
/** Types of the channels, beside `auth`. */
const KNOWN_TYPES: readonly unknown[] = ['points', 'subscribe', 'unsubscribe']

/** Kind of a frame of an unauthenticated socket: a token to check, something that has to wait for one, or nonsense. */
export type FirstFrame = { kind: 'auth'; auth: AuthFrame } | { kind: 'early' } | { kind: 'bad' }

export interface AuthFrame {
  /** Undefined: none. */
  token: string | undefined
  /** Names an unknown member. */
  fault: string | undefined
}

export const readFirstFrame = (data: ArrayBuffer, isBinary: boolean): FirstFrame => {
  if (isBinary || data.byteLength > FIRST_BYTES_MAX) return { kind: 'early' }
  const message = parse(data)
  if (Array.isArray(message)) return { kind: 'early' }
  if (typeof message !== 'object' || message === null) return { kind: 'bad' }
  const { type, recordedAt } = message as { [member: string]: unknown }
  if (type === 'auth') return { kind: 'auth', auth: authFrame(message) }
  const isPoint = type === undefined && recordedAt !== undefined
  return { kind: isPoint || KNOWN_TYPES.includes(type) ? 'early' : 'bad' }
}

/**
 * The message of a text frame if it is an `auth` message, else undefined. Most frames are points: the ninth byte tells
 * them apart, and only text that contains the word is parsed.
 */
export const readAuthFrame = (data: ArrayBuffer): AuthFrame | undefined => {
  if (data.byteLength > AUTH_BYTES_MAX) return undefined
  if (isUsual(new Uint8Array(data)) || !Buffer.from(data).includes(AUTH)) return undefined
  const message = parse(data)
  if (typeof message !== 'object' || message === null || (message as { type?: unknown }).type !== 'auth')
    return undefined
  return authFrame(message)
}

/** Whether it begins as messages do, with a type that is not `auth`: a loop costs less than a call of `Buffer`. */
const isUsual = (bytes: Uint8Array): boolean => {
  for (let i = 0; i < USUAL_START.length; i++) if (bytes[i] !== USUAL_START[i]) return false
  return bytes[USUAL_START.length] !== LETTER_A
}

const authFrame = (message: object): AuthFrame => {
  const { token } = message as { token?: unknown }
  const unknown = Object.keys(message).find((name) => name !== 'type' && name !== 'token')
  return {
    token: typeof token === 'string' ? token : undefined,
    fault: unknown === undefined ? undefined : `/${unknown} is not a known field`,
  }
}

const parse = (data: ArrayBuffer): unknown => {
  try {
    return JSON.parse(Buffer.from(data).toString('utf8'))
  } catch (error) {
    // No JSON: the caller treats it like a message of an unknown type.
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}
