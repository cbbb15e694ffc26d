import { readUuid as readInOrder, writeUuid as writeInOrder } from '../../kernel/uuid-bytes.ts'

/**
 * Blocks in ClickHouse's Native format, made of typed arrays: per column its name, its type and its values one after the
 * other, little-endian. https://clickhouse.com/docs/interfaces/formats/Native
 */
export interface NativeColumn {
  name: string
  /** As ClickHouse writes it, for example `Int32` or `DateTime64(3, 'UTC')`. */
  type: string
  /** The values as they lie in memory, or strings. */
  values:
    | Uint8Array
    | Uint16Array
    | Uint32Array
    | Int32Array
    | BigUint64Array
    | BigInt64Array
    | Float64Array
    | readonly string[]
    | SparseStrings
    | StringLists
}

export interface StringLists {
  lists: readonly (readonly string[])[]
}

/** A column of mostly empty strings: the text by row. */
export interface SparseStrings {
  rows: number
  texts: ReadonlyMap<number, string>
}

/** One block of `rows` rows in memory of its own. */
export const encodeNativeBlock = (columns: readonly NativeColumn[], rows: number): Uint8Array => {
  const parts: Uint8Array[] = [lengths(columns.length, rows)]
  for (const { name, type, values } of columns) {
    parts.push(text(name), text(type), valueBytes(values))
  }
  return concat(parts)
}

export const concat = (parts: readonly Uint8Array[]): Uint8Array => {
  let bytes = 0
  for (const part of parts) bytes += part.byteLength
  const whole = new Uint8Array(bytes)
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.byteLength
  }
  return whole
}

/**
 * Writes a UUID as ClickHouse lays it out: two little-endian 64-bit halves, the first one first.
 * @throws Error when the text is no UUID.
 */
export const writeUuid = (id: string, target: Uint8Array, at: number): void => {
  writeInOrder(id, turned, 0)
  for (let byte = 0; byte < 16; byte++) target[at + TURNED[byte]] = turned[byte]
}

export const readUuid = (source: Uint8Array, at: number): string => {
  for (let byte = 0; byte < 16; byte++) turned[byte] = source[at + TURNED[byte]]
  return readInOrder(turned, 0)
}

const turned = new Uint8Array(16)
/** Where each byte of a UUID lies. */
const TURNED = [7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8]

/** Bytes of one UTF-16 unit. */
const UTF8_BYTES_MAX = 3
/** Bytes of a length as LEB128. */
const LENGTH_BYTES_MAX = 5

const valueBytes = (values: NativeColumn['values']): Uint8Array => {
  if (ArrayBuffer.isView(values)) return new Uint8Array(values.buffer, values.byteOffset, values.byteLength)
  if ('texts' in values) return sparse(values)
  if ('lists' in values) return lists(values)
  return texts(values)
}

const sparse = ({ rows, texts }: SparseStrings): Uint8Array => {
  const parts: Uint8Array[] = []
  let next = 0
  for (const row of [...texts.keys()].sort((a, b) => a - b)) {
    parts.push(new Uint8Array(row - next), text(texts.get(row) ?? ''))
    next = row + 1
  }
  parts.push(new Uint8Array(rows - next))
  return concat(parts)
}

/** The end of each array, then all the strings. */
const lists = ({ lists }: StringLists): Uint8Array => {
  let end = 0
  const ends = BigUint64Array.from(lists, ({ length }) => BigInt((end += length)))
  return concat([new Uint8Array(ends.buffer), texts(lists.flat())])
}

const text = (value: string): Uint8Array => texts([value])

/** Strings one after the other, each after its length: written into one piece of memory, not concatenated. */
const texts = (values: readonly string[]): Uint8Array => {
  let room = 0
  for (const value of values) room += value.length * UTF8_BYTES_MAX + LENGTH_BYTES_MAX
  const bytes = Buffer.allocUnsafeSlow(room)
  let at = 0
  for (const value of values) {
    let length = Buffer.byteLength(value)
    for (; length > 127; length = Math.floor(length / 128)) bytes[at++] = (length & 127) | 128
    bytes[at++] = length
    at += bytes.write(value, at)
  }
  return bytes.subarray(0, at)
}

/** Numbers as LEB128. */
const lengths = (...values: number[]): Uint8Array => {
  const bytes: number[] = []
  for (let value of values) {
    for (; value > 127; value = Math.floor(value / 128)) bytes.push((value & 127) | 128)
    bytes.push(value)
  }
  return Uint8Array.from(bytes)
}
