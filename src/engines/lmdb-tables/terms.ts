import type { Row } from '../../kernel/table.ts'
import type { Term } from './postings.ts'
import { bufferOf, equalityBytes, number4, ROW_HEADER_BYTES, time6 } from './layout.ts'
import { wordsOfRow } from '../../kernel/words.ts'

/* A row in the databases: its stored bytes, and the terms under which its indexes list it. */
export interface StoredBytes {
  no: number
  expiresAt: number
  packed: Buffer
}

export const storedBytes = (value: Buffer | undefined): StoredBytes | undefined => {
  if (value === undefined) return undefined
  const bytes = bufferOf(value)
  return { no: bytes.readUInt32BE(0), expiresAt: bytes.readDoubleBE(4), packed: bytes.subarray(ROW_HEADER_BYTES) }
}

let written = Buffer.alloc(8_192)

/** A row as it is stored, in memory that the next one reuses: the driver copies it at once. */
export const rowBytes = (no: number, expiresAt: number, packed: Buffer): Buffer => {
  const bytes = ROW_HEADER_BYTES + packed.length
  if (bytes > written.length) written = Buffer.alloc(2 * bytes)
  written.writeUInt32BE(no, 0)
  written.writeDoubleBE(expiresAt, 4)
  written.set(packed, ROW_HEADER_BYTES)
  return written.subarray(0, bytes)
}

export const expiryKeys = (space: Buffer, no: number, expiresAt: number): Buffer[] => [
  Buffer.concat([Buffer.of(0), time6(expiresAt), space, number4(no)]),
  Buffer.concat([Buffer.of(1), space, time6(expiresAt), number4(no)]),
]

export const NOTHING = Buffer.alloc(0)
const NONE: ReadonlyMap<string, Buffer> = new Map()
export const NUMBER_MAX = 2 ** 32 - 1

// Table and scope as one number that a double holds exactly (tables stay below 2^20).
export const spaceName = (space: Buffer): number => space.readUInt32BE(0) * 2 ** 32 + space.readUInt32BE(4)

export const isSame = (a: unknown, b: unknown): boolean =>
  a === b ||
  (Array.isArray(a) && Array.isArray(b) && a.length === b.length && a.every((member, index) => member === b[index]))

export const equalityTerms = (value: unknown): ReadonlyMap<string, Buffer> => {
  if (value === undefined) return NONE
  const terms = new Map<string, Buffer>()
  for (const member of Array.isArray(value) ? value : [value]) {
    const bytes = equalityBytes(member)
    if (bytes !== undefined) terms.set(bytes.toString('latin1'), bytes)
  }
  return terms
}

/** The terms under which a value is found, each once. */
export const termsOf = (value: unknown): readonly Term[] => {
  if (!Array.isArray(value)) return isTerm(value) ? [value] : NO_TERMS
  const terms = value.filter(isTerm)
  return terms.length > 1 ? [...new Set(terms)] : terms
}

export const wordTerms = (row: Row | undefined, fields: readonly string[]): readonly Term[] =>
  row === undefined || fields.length === 0 ? NO_TERMS : wordsOfRow(row, fields)

const NO_TERMS: readonly Term[] = []

const isTerm = (value: unknown): value is Term =>
  typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'

export const sortable = (value: unknown): string | number | null =>
  typeof value === 'string' || typeof value === 'number' ? value : null
