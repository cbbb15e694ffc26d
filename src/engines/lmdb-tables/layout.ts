import { createHash } from 'node:crypto'
import { type Database, open, type RootDatabase } from 'lmdb'
import { Packr } from 'msgpackr'
import type { TableDeclaration } from '../../kernel/table.ts'
import { ID_BYTES_MAX, type Range } from '../table-store.ts'

/*
 * How tables lie in their LMDB environment. A table has a number, so has a scope, and so has a row within both ("space"
 * = table number, scope number; 4 bytes each). All keys are binary and big-endian.
 *
 * rows      space, id → row number (4), expiresAt (8, 0 for never), row as MessagePack
 * docs      space, row number (4) → [id, value of each range field]
 * postings  space, field (1), value, chunk (4) → which of the chunk's 4096 row numbers have the value
 * order     space, field (1), value in order-keeping bytes, id → row number (4)
 * spaces    space → next row number
 * changes   space → how often each of its indexes was changed (4 bytes each, changes.ts)
 * expiry    0, expiresAt (6), space, row number  and  1, space, expiresAt (6), row number
 * counters  scope, 0, id → count (8), expiresAt (8); in `expiry` as 2, expiresAt (6), key
 * scopes    name → number;  registry  table name → TableRecord;  meta  checkpoints, next numbers, tables to clear
 */
export type Binary = Database<Buffer, Uint8Array>

export interface TableEnvironment {
  root: RootDatabase
  rows: Binary
  docs: Binary
  postings: Binary
  order: Binary
  spaces: Binary
  changes: Binary
  expiry: Binary
  counters: Binary
  scopes: Binary
  registry: Binary
  meta: Binary
}

/** A declared table and the number under which its rows lie. */
export interface TableRecord {
  number: number
  version: number
  equality: readonly string[]
  range: readonly string[]
  text: readonly string[]
  sparse?: readonly string[]
}

/**
 * Free pages that the driver (its types lack this) keeps in memory from commit to commit: each commit puts those that
 * it frees into their sorted list. With its 75,000 a commit of one row took 0.9 ms of processor time once many rows had
 * been written, with these 0.4.
 */
const FREE_PAGES = { maxFreeSpaceToRetain: 2_000 }

export const openTableEnvironment = (path: string): TableEnvironment => {
  // noMetaSync: a power loss may take the last commits, each whole, with its checkpoint; the log has their events.
  const root = open({
    path,
    noSubdir: false,
    overlappingSync: false,
    noMetaSync: true,
    encoding: 'binary',
    keyEncoding: 'binary',
    maxDbs: 16,
    maxReaders: 1_000,
    ...FREE_PAGES,
  })
  const database = (name: string): Binary =>
    root.openDB<Buffer, Uint8Array>({ name, encoding: 'binary', keyEncoding: 'binary' })
  return {
    root,
    rows: database('rows'),
    docs: database('docs'),
    postings: database('postings'),
    order: database('order'),
    spaces: database('spaces'),
    changes: database('changes'),
    expiry: database('expiry'),
    counters: database('counters'),
    scopes: database('scopes'),
    registry: database('registry'),
    meta: database('meta'),
  }
}

const packr = new Packr({ useRecords: false, copyBuffers: true })

export const pack = (value: unknown): Buffer => packr.pack(value)
/** Binary members come back as Uint8Array: from a Buffer they would be Buffers. */
export const unpack = <Value>(bytes: Uint8Array): Value =>
  packr.unpack(new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength)) as Value
/** The value that ends there, in memory that is used again: no view of it is made. */
export const unpackUntil = <Value>(bytes: Uint8Array, end: number): Value => packr.unpack(bytes, end) as Value

export const recordOf = (table: TableDeclaration, number: number): TableRecord => ({
  number,
  version: table.version,
  equality: table.equality ?? [],
  range: table.range ?? [],
  text: table.text ?? [],
  ...(table.sparse !== undefined && { sparse: table.sparse }),
})

// Numbers of fields in `postings` and `order`.
export const ALL_FIELD = 0
export const TEXT_FIELD = 255
export const equalityField = (record: TableRecord, field: string): number => record.equality.indexOf(field) + 1
export const rangeField = (record: TableRecord, field: string): number => record.range.indexOf(field) + 1

export const ROW_HEADER_BYTES = 12
/** Every text of 200 characters; a key has room for no more beside the longest id. */
const ORDER_STRING_BYTES_MAX = 600
const EQUALITY_STRING_BYTES_MAX = 200

export const spaceKey = (table: number, scope: number): Buffer => {
  const key = Buffer.allocUnsafe(8)
  key.writeUInt32BE(table, 0)
  key.writeUInt32BE(scope, 4)
  return key
}

/** @throws Error for an id that no row can have. */
export const idBytes = (id: string): Buffer => {
  const bytes = Buffer.from(id)
  if (bytes.length === 0 || bytes.length > ID_BYTES_MAX)
    throw new Error(`The id of a row takes 1 to ${ID_BYTES_MAX} bytes, not ${bytes.length}.`)
  return bytes
}

export const rowKey = (space: Buffer, id: Buffer): Buffer => {
  const key = Buffer.allocUnsafe(space.length + id.length)
  key.set(space, 0)
  key.set(id, space.length)
  return key
}

/** The same from its parts, in one piece of memory. */
export const rowKeyOf = (table: number, scope: number, id: string): Buffer => {
  const key = Buffer.allocUnsafe(8 + Buffer.byteLength(id))
  key.writeUInt32BE(table, 0)
  key.writeUInt32BE(scope, 4)
  key.write(id, 8)
  return key
}

export const numberKey = (space: Buffer, no: number): Buffer => {
  const key = Buffer.allocUnsafe(12)
  key.set(space, 0)
  key.writeUInt32BE(no, 8)
  return key
}

export const fieldKey = (space: Buffer, field: number, ...rest: Uint8Array[]): Buffer => {
  let bytes = space.length + 1
  for (const part of rest) bytes += part.length
  const key = Buffer.allocUnsafe(bytes)
  key.set(space, 0)
  key[space.length] = field
  let at = space.length + 1
  for (const part of rest) {
    key.set(part, at)
    at += part.length
  }
  return key
}

export const AFTER_ALL = Buffer.of(255)

export interface KeyBounds {
  low: Buffer
  high: Buffer
}

/** Keys between which the bounded field lies, none of them a key itself; rows without the field lie before all values. */
export const rangeKeys = (space: Buffer, record: TableRecord, { field, from, to }: Range): KeyBounds => {
  const number = rangeField(record, field)
  return {
    low: fieldKey(space, number, from === undefined ? Buffer.of(1) : orderBytes(from)),
    high: fieldKey(space, number, to === undefined ? AFTER_ALL : Buffer.concat([orderBytes(to), AFTER_ALL])),
  }
}

export const time6 = (ms: number): Buffer => {
  const bytes = Buffer.allocUnsafe(6)
  bytes.writeUIntBE(Math.min(Math.max(Math.floor(ms), 0), 2 ** 48 - 1), 0, 6)
  return bytes
}

export const number4 = (no: number): Buffer => {
  const bytes = Buffer.allocUnsafe(4)
  bytes.writeUInt32BE(no, 0)
  return bytes
}

export const bufferOf = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)

/** Writes the bytes of a value for equality; answers their end, -1 for a value without equality. */
export const writeEquality = (target: Buffer, at: number, value: unknown): number => {
  if (typeof value === 'number') return writeDouble(target, at, 2, value)
  if (typeof value === 'boolean') return writeByte(target, writeByte(target, at, 1), value ? 1 : 0)
  if (typeof value !== 'string') return -1
  // A character takes at most three bytes, so short texts are not counted.
  const isLong = value.length * 3 > EQUALITY_STRING_BYTES_MAX && Buffer.byteLength(value) > EQUALITY_STRING_BYTES_MAX
  if (!isLong) return writeText(target, at, 3, value)
  return (
    writeByte(target, at, 4) +
    createHash('sha256')
      .update(value)
      .digest()
      .copy(target, at + 1)
  )
}

export const equalityBytes = (value: unknown): Buffer | undefined => {
  const end = writeEquality(written, 0, value)
  return end < 0 ? undefined : Buffer.from(written.subarray(0, end))
}

/** The value of such `equalityBytes`. @throws Error for a text that is kept as its hash */
export const termIn = (bytes: Buffer): string | number | boolean => {
  const [kind] = bytes
  if (kind === 1) return bytes[1] === 1
  if (kind === 2) return doubleIn(bytes.subarray(1))
  if (kind === 3) return textIn(Buffer.from(bytes).fill(2, 0, 1))
  throw new Error('A value of an index is kept as its hash: rows cannot be counted by it.')
}

/** The text of such `orderBytes`, whatever follows. @throws Error for another value */
export const textIn = (bytes: Buffer): string => {
  if (bytes[0] !== 2) throw new Error('Rows are counted by stretches of texts alone.')
  let end = 1
  while (bytes[end] !== 0 || bytes[end + 1] === 255) end += bytes[end] === 0 ? 2 : 1
  const text = bytes.toString('utf8', 1, end)
  return text.includes('\0')
    ? Buffer.from(bytes.toString('latin1', 1, end).replaceAll('\0\xff', '\0'), 'latin1').toString('utf8')
    : text
}

const doubleIn = (bytes: Buffer): number => {
  const double = Buffer.from(bytes)
  if ((double[0] & 0x80) !== 0) double[0] ^= 0x80
  else for (let i = 0; i < 8; i += 1) double[i] ^= 0xff
  return double.readDoubleBE(0)
}

export const wordBytes = (word: string): Buffer => Buffer.from(word)

/**
 * Writes bytes that sort as the values do: missing ones first, numbers, strings by code point (their first
 * `ORDER_STRING_BYTES_MAX` count). Answers their end.
 */
export const writeOrder = (target: Buffer, at: number, value: unknown): number => {
  if (typeof value === 'number' && !Number.isNaN(value)) return writeDouble(target, at, 1, value)
  if (typeof value !== 'string') return writeByte(target, at, 0)
  const isLong = value.length * 3 > ORDER_STRING_BYTES_MAX && Buffer.byteLength(value) > ORDER_STRING_BYTES_MAX
  return isLong
    ? writeEscaped(target, at, 2, Buffer.from(value).subarray(0, ORDER_STRING_BYTES_MAX))
    : writeText(target, at, 2, value)
}

export const orderBytes = (value: unknown): Buffer => Buffer.from(written.subarray(0, writeOrder(written, 0, value)))

/** Room for any key. */
export const KEY_BYTES_MAX = 4_096
const written = Buffer.alloc(KEY_BYTES_MAX)

const writeByte = (target: Buffer, at: number, byte: number): number => {
  target[at] = byte
  return at + 1
}

// IEEE 754 doubles sort like unsigned integers once the sign is flipped, and negative ones inverted.
const writeDouble = (target: Buffer, at: number, kind: number, value: number): number => {
  target[at] = kind
  target.writeDoubleBE(value === 0 ? 0 : value, at + 1)
  if ((target[at + 1] & 0x80) === 0) target[at + 1] ^= 0x80
  else for (let i = at + 1; i < at + 9; i += 1) target[i] ^= 0xff
  return at + 9
}

// 0 ends a string, a zero byte inside becomes 0 255: so 'a' sorts before 'ab', and later bytes are told apart.
const writeText = (target: Buffer, at: number, kind: number, value: string): number => {
  if (value.includes('\0')) return writeEscaped(target, at, kind, Buffer.from(value))
  target[at] = kind
  const end = at + 1 + target.write(value, at + 1)
  target[end] = 0
  target[end + 1] = 0
  return end + 2
}

const writeEscaped = (target: Buffer, at: number, kind: number, bytes: Buffer): number => {
  let end = writeByte(target, at, kind)
  for (const byte of bytes) {
    target[end++] = byte
    if (byte === 0) target[end++] = 255
  }
  target[end] = 0
  target[end + 1] = 0
  return end + 2
}
