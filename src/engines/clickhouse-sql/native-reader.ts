import { concat } from './native-block.ts'

/** The values of one column: bytes as ClickHouse lays them out, or texts. */
export type NativeValues = Uint8Array | string[]

export interface NativeRows {
  rows: number
  columns: ReadonlyMap<string, NativeValues>
}

/** Bytes of one value by type; strings have their own lengths. */
const WIDTHS: { [type: string]: number } = {
  UUID: 16,
  Int8: 1,
  UInt8: 1,
  Bool: 1,
  Int16: 2,
  UInt16: 2,
  Int32: 4,
  UInt32: 4,
  Int64: 8,
  UInt64: 8,
  Float64: 8,
}

class Incomplete extends Error {}

/** Without the methods of a Buffer, which HTTP clients hand out: its `slice` would share its memory. */
const plain = ({ buffer, byteOffset, byteLength }: Uint8Array): Uint8Array =>
  new Uint8Array(buffer, byteOffset, byteLength)

/** Reads blocks of ClickHouse's Native format from chunks cut anywhere. Supports fixed-width types and strings. */
export class NativeReader {
  private rest: Uint8Array = new Uint8Array(0)

  /** The blocks that are complete with this chunk. */
  push(chunk: Uint8Array): NativeRows[] {
    const bytes = this.rest.byteLength === 0 ? plain(chunk) : concat([this.rest, chunk])
    const blocks: NativeRows[] = []
    let at = 0
    while (at < bytes.byteLength) {
      const cursor = new Cursor(bytes, at)
      try {
        blocks.push(readBlock(cursor))
      } catch (error) {
        if (!(error instanceof Incomplete)) throw error
        break
      }
      at = cursor.at
    }
    this.rest = bytes.subarray(at)
    return blocks
  }

  /** @throws Error when the last block is cut. */
  end(): void {
    if (this.rest.byteLength > 0) throw new Error('the answer of the history ends within a block')
  }
}

class Cursor {
  at: number
  private readonly bytes: Uint8Array

  constructor(bytes: Uint8Array, at: number) {
    this.bytes = bytes
    this.at = at
  }

  length(): number {
    let value = 0
    for (let factor = 1; ; factor *= 128) {
      if (this.at >= this.bytes.byteLength) throw new Incomplete()
      const byte = this.bytes[this.at++]
      value += (byte & 127) * factor
      if (byte < 128) return value
    }
  }

  take(bytes: number): Uint8Array {
    if (this.at + bytes > this.bytes.byteLength) throw new Incomplete()
    this.at += bytes
    return this.bytes.subarray(this.at - bytes, this.at)
  }

  skipText(): void {
    this.take(this.length())
  }

  text(): string {
    const bytes = this.length()
    return bytes === 0 ? '' : decoder.decode(this.take(bytes))
  }
}

const decoder = new TextDecoder()

const readBlock = (cursor: Cursor): NativeRows => {
  const count = cursor.length()
  const rows = cursor.length()
  const columns = new Map<string, NativeValues>()
  for (let i = 0; i < count; i++) {
    const name = cursor.text()
    const type = cursor.text()
    columns.set(name, type === 'String' ? texts(cursor, rows) : cursor.take(rows * widthOf(type)))
  }
  return { rows, columns }
}

const widthOf = (type: string): number => {
  const width = type.startsWith('DateTime64(') ? 8 : WIDTHS[type]
  if (width === undefined) throw new Error(`a column of type ${type} is not read`)
  return width
}

/**
 * Cuts chunks of an answer in the Native format, wherever they end, into whole blocks, as they are inserted. Supports
 * the types of the history's columns.
 * @throws Error when the last block is cut
 */
export async function* nativeBlocks(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let rest: Uint8Array = new Uint8Array(0)
  for await (const chunk of chunks) {
    const bytes = rest.byteLength === 0 ? plain(chunk) : concat([rest, chunk])
    let at = 0
    for (let end = endOfBlock(bytes, at); end !== undefined; end = endOfBlock(bytes, at)) {
      yield bytes.slice(at, end)
      at = end
    }
    rest = bytes.subarray(at)
  }
  if (rest.byteLength > 0) throw new Error('the answer of the history ends within a block')
}

export const rowsOfBlock = (block: Uint8Array): number => {
  const cursor = new Cursor(block, 0)
  cursor.length()
  return cursor.length()
}

/** Undefined when the block that begins there is not complete. */
const endOfBlock = (bytes: Uint8Array, at: number): number | undefined => {
  if (at >= bytes.byteLength) return undefined
  const cursor = new Cursor(bytes, at)
  try {
    const count = cursor.length()
    const rows = cursor.length()
    for (let i = 0; i < count; i++) {
      cursor.skipText()
      skipColumn(cursor, cursor.text(), rows)
    }
    return cursor.at
  } catch (error) {
    if (error instanceof Incomplete) return undefined
    throw error
  }
}

const skipColumn = (cursor: Cursor, type: string, rows: number): void => {
  if (rows === 0) return
  const [, inner] = /^SimpleAggregateFunction\(\w+, (.+)\)$/.exec(type) ?? []
  if (inner !== undefined) return skipColumn(cursor, inner, rows)
  const [, item] = /^Array\((.+)\)$/.exec(type) ?? []
  if (item !== undefined) {
    const ends = cursor.take(rows * 8)
    return skipColumn(
      cursor,
      item,
      Number(new DataView(ends.buffer, ends.byteOffset).getBigUint64((rows - 1) * 8, true)),
    )
  }
  if (type === 'String') for (let i = 0; i < rows; i++) cursor.skipText()
  else cursor.take(rows * widthOf(type))
}

const texts = (cursor: Cursor, rows: number): string[] => {
  const values = new Array<string>(rows)
  for (let i = 0; i < rows; i++) values[i] = cursor.text()
  return values
}
