import { Packr } from 'msgpackr'
import type { Row, TableDeclaration } from '../../kernel/table.ts'
import { wordsOfRow } from '../../kernel/words.ts'

const packr = new Packr({ useRecords: false, variableMapSize: true })

export const packRow = (row: Row): Buffer => packr.pack(row)
/** Bytes in a row are Uint8Arrays: a Buffer's `slice` would not copy. */
export const unpackRow = <R extends Row>({ buffer, byteOffset, byteLength }: Buffer): R =>
  packr.unpack(new Uint8Array(buffer, byteOffset, byteLength)) as R

const MISSING = Buffer.of(0)
const NUMBER = 1
const TEXT = 2
const END = Buffer.of(0, 0)
const FALSE = Buffer.of(3)
const TRUE = Buffer.of(4)

/**
 * A value as the beginning of an index member, in an order that bytes keep: nothing, then numbers, then texts by their
 * UTF-8, then false and true. A text ends with two zero bytes; a zero byte inside it is written as zero and 255.
 */
export const encoded = (value: unknown): Buffer => {
  if (typeof value === 'number') return numberBytes(value)
  if (typeof value === 'string') return Buffer.concat([textStart(value), END])
  if (typeof value === 'boolean') return value ? TRUE : FALSE
  return MISSING
}

/** The beginning of every text that begins so. */
export const textStart = (text: string): Buffer => {
  const bytes = Buffer.from(text)
  if (!bytes.includes(0)) return Buffer.concat([Buffer.of(TEXT), bytes])
  return Buffer.concat([
    Buffer.of(TEXT),
    ...[...bytes].map((byte) => (byte === 0 ? Buffer.of(0, 255) : Buffer.of(byte))),
  ])
}

const numberBytes = (value: number): Buffer => {
  const bytes = Buffer.alloc(9)
  bytes[0] = NUMBER
  bytes.writeDoubleBE(value === 0 ? 0 : value, 1)
  if (bytes[1] & 0x80) for (let i = 1; i < 9; i++) bytes[i] ^= 0xff
  else bytes[1] ^= 0x80
  return bytes
}

/** Names of a table's indexes. */
export const indexNames = ({ equality = [], range = [], text = [] }: TableDeclaration): string[] => [
  ...equality.map((field) => `e:${field}`),
  ...range.map((field) => `r:${field}`),
  ...(text.length > 0 ? ['w'] : []),
]

/** Every term under which the indexes of its table name a row: index, zero byte, member. Packed, so that the server can compare and take them apart. */
export const termsOf = (
  { equality = [], range = [], sparse = [], text = [] }: TableDeclaration,
  id: string,
  row: Row,
): Buffer => {
  const idBytes = Buffer.from(id)
  const terms: Buffer[] = []
  const add = (index: string, value: Buffer): void => {
    terms.push(Buffer.concat([Buffer.from(`${index}\0`), value, idBytes]))
  }
  for (const field of equality) {
    const value = row[field]
    if (value === undefined) continue
    for (const member of new Set(Array.isArray(value) ? value : [value]))
      if (isTerm(member)) add(`e:${field}`, encoded(member))
  }
  for (const field of range)
    if (isSortable(row[field])) add(`r:${field}`, encoded(row[field]))
    else if (!sparse.includes(field)) add(`r:${field}`, encoded(undefined))
  if (text.length > 0) for (const word of wordsOfRow(row, text)) add('w', encoded(word))
  return Buffer.concat(terms.sort(Buffer.compare).flatMap((term) => [sizeOf(term), term]))
}

const sizeOf = (term: Buffer): Buffer => {
  const size = Buffer.alloc(4)
  size.writeUInt32BE(term.byteLength)
  return size
}

const isTerm = (value: unknown): boolean => ['string', 'number', 'boolean'].includes(typeof value)
const isSortable = (value: unknown): boolean => typeof value === 'string' || typeof value === 'number'
