import { createHash } from 'node:crypto'
import { invalid } from '../../kernel/errors.ts'

const FINGERPRINT_LENGTH = 8

/** Fingerprint of a cursor's question: the values that decide which rows a walk meets, and in which order. */
export const fingerprintOf = (question: unknown): string =>
  createHash('sha256').update(JSON.stringify(question)).digest('base64url').slice(0, FINGERPRINT_LENGTH)

/** Opaque to clients: a place, and the question that it belongs to. */
export const sealCursor = (place: string, fingerprint: string): string =>
  Buffer.from(fingerprint + place).toString('base64url')

/** The place. @throws Failure invalid for a cursor of another question. */
export const openCursor = (cursor: string, fingerprint: string): string => {
  const text = Buffer.from(cursor, 'base64url').toString()
  if (text.slice(0, FINGERPRINT_LENGTH) !== fingerprint || text.length <= FINGERPRINT_LENGTH)
    throw invalid('/cursor', 'is not a cursor of this list and these filters')
  return text.slice(FINGERPRINT_LENGTH)
}
