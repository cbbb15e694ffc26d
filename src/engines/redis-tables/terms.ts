import { Packr } from 'msgpackr'
import type { Row, TableDeclaration } from '../../kernel/table.ts'
import { wordsOfRow } from '../../kernel/words.ts'
import { type Range, stretchesOf } from '../table-store.ts'

const packr = new Packr({ useRecords: false, variableMapSize: true })

export const packed = (value: unknown): Buffer => packr.pack(value)
/** Bytes in a row are Uint8Arrays: a Buffer's `slice` would not copy. */
export const unpackRow = <R extends Row>({ buffer, byteOffset, byteLength }: Buffer): R =>
  packr.unpack(new Uint8Array(buffer, byteOffset, byteLength)) as R

export const unpackIds = (bytes: Buffer): string[] => packr.unpack(bytes) as string[]

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
  if (typeof value === 'string') return textBytes(value)
  if (typeof value === 'boolean') return value ? TRUE : FALSE
  return MISSING
}

/** The value of such `encoded` bytes. */
export const decoded = (bytes: Buffer): string | number | boolean => {
  const [kind] = bytes
  if (kind === NUMBER) return numberIn(bytes.subarray(1, 9))
  if (kind !== TEXT) return kind === TRUE[0]
  const inside = bytes.subarray(1, bytes.length - END.length)
  return inside.includes(0)
    ? Buffer.from(latin1(inside).replaceAll('\0\xff', '\0'), 'latin1').toString()
    : inside.toString()
}

const textBytes = (text: string): Buffer =>
  text.includes('\0') ? Buffer.concat([textStart(text), END]) : Buffer.from(`\x02${text}\0\0`)

/** The common beginning of all encoded texts with this prefix. */
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

const numberIn = (bytes: Buffer): number => {
  const double = Buffer.from(bytes)
  if (double[0] & 0x80) double[0] ^= 0x80
  else for (let i = 0; i < 8; i++) double[i] ^= 0xff
  return double.readDoubleBE(0)
}

export const latin1 = (bytes: Buffer): string => bytes.toString('latin1')
/** The bytes of an encoded value as a string, which compares as the bytes do. */
export const textOf = (value: unknown): string => latin1(encoded(value))

/** Tells whether the value of such a string lies within the bounds. */
export const insideOf = (range: Range): ((value: string) => boolean) => {
  const stretches = stretchesOf(range).map(({ from, to }) => ({
    // A row without the field has a zero byte there.
    low: from === undefined ? '\x01' : textOf(from),
    high: to === undefined ? undefined : textOf(to),
  }))
  return (value) => stretches.some(({ low, high }) => value >= low && (high === undefined || value <= high))
}

export const indexNames = ({ equality = [], range = [], text = [] }: TableDeclaration): string[] => [
  ...equality.map((field) => `e:${field}`),
  ...range.map((field) => `r:${field}`),
  ...(text.length > 0 ? ['w'] : []),
]

/** Values under which an index lists a row, packed so that the server can compare and split them. */
export interface Terms {
  packed: Buffer
  count: number
}

const NAMES = new Map<string, Buffer>()
let scratch = Buffer.allocUnsafe(64 * 1024)

/** A row's terms in the indexes of its table, each with length, index, zero byte, value, id; as declared in order. */
export const termsOf = (
  { equality = [], range = [], sparse = [], text = [] }: TableDeclaration,
  id: string,
  row: Row,
): Terms => {
  const idBytes = Buffer.from(id)
  let end = 0
  let count = 0
  const add = (index: string, value: Buffer): void => {
    const name = nameBytes(index)
    const size = name.byteLength + value.byteLength + idBytes.byteLength
    if (end + 4 + size > scratch.byteLength) scratch = Buffer.concat([scratch], 2 * (end + 4 + size))
    scratch.writeUInt32BE(size, end)
    end += 4
    for (const part of [name, value, idBytes]) {
      scratch.set(part, end)
      end += part.byteLength
    }
    count++
  }
  for (const field of equality) {
    const value = row[field]
    if (value === undefined) continue
    for (const member of Array.isArray(value) ? new Set(value) : [value])
      if (isTerm(member)) add(`e:${field}`, encoded(member))
  }
  for (const field of range)
    if (isSortable(row[field])) add(`r:${field}`, encoded(row[field]))
    else if (!sparse.includes(field)) add(`r:${field}`, MISSING)
  if (text.length > 0) for (const word of wordsOfRow(row, text)) add('w', encoded(word))
  return { packed: Buffer.from(scratch.subarray(0, end)), count }
}

const nameBytes = (index: string): Buffer => {
  let bytes = NAMES.get(index)
  if (bytes === undefined) NAMES.set(index, (bytes = Buffer.from(`${index}\0`)))
  return bytes
}

const isTerm = (value: unknown): boolean => ['string', 'number', 'boolean'].includes(typeof value)
export const isSortable = (value: unknown): boolean => typeof value === 'string' || typeof value === 'number'
