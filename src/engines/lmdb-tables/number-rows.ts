import type { NumberRows } from '../../kernel/table.ts'
import { idBytes, pack } from './layout.ts'

const MAP_16 = 0xde
const MAP_HEADER_BYTES = 3
const TEXT_HEADER_BYTES_MAX = 3
const UNIT_BYTES_MAX = 3
const NUMBER_BYTES_MAX = 9
/** Approximate bytes of the id and the scope of a row, on their way to the writer. */
const NAMES_BYTES = 80

export const bytesOfNumbers = ({ ids, values }: NumberRows): number => values.byteLength + NAMES_BYTES * ids.length

/** The rows for the other thread, which takes the memory of its copy of the numbers. @throws Error for an id that no row can have */
export const sendable = (rows: NumberRows): NumberRows => {
  for (const id of rows.ids) idBytes(id)
  return { ...rows, values: rows.values.slice() }
}

/** Rows of numbers in MessagePack, in the same bytes as `pack` gives to their objects. */
export class NumberRowPacker {
  private readonly rows: NumberRows
  private readonly names: readonly Uint8Array[]
  private readonly idName: Uint8Array
  private readonly scopeName: Uint8Array
  private readonly fixedBytes: number
  private scope: string | undefined
  private scopeBytes: Uint8Array = new Uint8Array()
  private bytes = Buffer.alloc(1_024)
  private at = 0

  constructor(rows: NumberRows) {
    this.rows = rows
    this.idName = packedText(rows.idField)
    this.scopeName = packedText(rows.scopeField)
    this.names = rows.fields.map(packedText)
    const names = [this.idName, this.scopeName, ...this.names].reduce((sum, { length }) => sum + length, 0)
    this.fixedBytes = MAP_HEADER_BYTES + TEXT_HEADER_BYTES_MAX + names + NUMBER_BYTES_MAX * rows.fields.length
  }

  /** The row at `i`, in memory that the next one reuses. */
  pack(i: number): Buffer {
    const { names, rows } = this
    const id = rows.ids[i]
    this.takeScope(rows.scopes[i])
    this.makeRoom(this.fixedBytes + UNIT_BYTES_MAX * id.length + this.scopeBytes.length)
    const { bytes } = this
    bytes[0] = MAP_16
    bytes.writeUInt16BE(names.length + 2, 1)
    this.at = MAP_HEADER_BYTES
    this.write(this.idName)
    this.writeText(id)
    for (const [place, name] of names.entries()) {
      this.write(name)
      this.writeNumber(rows.values[i * names.length + place])
    }
    this.write(this.scopeName)
    this.write(this.scopeBytes)
    return bytes.subarray(0, this.at)
  }

  /** Rows of one scope follow each other. */
  private takeScope(scope: string): void {
    if (scope === this.scope) return
    this.scope = scope
    this.scopeBytes = packedText(scope)
  }

  private makeRoom(bytes: number): void {
    if (bytes > this.bytes.length) this.bytes = Buffer.alloc(2 * bytes)
  }

  private write(part: Uint8Array): void {
    const { bytes } = this
    for (let i = 0; i < part.length; i++) bytes[this.at++] = part[i]
  }

  private writeText(text: string): void {
    const { bytes } = this
    const length = Buffer.byteLength(text)
    if (length < 0x20) bytes[this.at++] = 0xa0 | length
    else if (length < 0x100) {
      bytes[this.at++] = 0xd9
      bytes[this.at++] = length
    } else {
      bytes[this.at++] = 0xda
      this.at = bytes.writeUInt16BE(length, this.at)
    }
    this.at += bytes.write(text, this.at)
  }

  /** In the fewest bytes, but for whole numbers of more than 32 bits: these are doubles, as all others are. */
  private writeNumber(value: number): void {
    const { bytes, at } = this
    if (value >>> 0 === value) this.writeUnsigned(value)
    else if (value >> 0 !== value) {
      bytes[at] = 0xcb
      this.at = bytes.writeDoubleBE(value, at + 1)
    } else if (value >= -0x20) bytes[this.at++] = 0x100 + value
    else if (value >= -0x80) {
      bytes[at] = 0xd0
      this.at = bytes.writeInt8(value, at + 1)
    } else if (value >= -0x8000) {
      bytes[at] = 0xd1
      this.at = bytes.writeInt16BE(value, at + 1)
    } else {
      bytes[at] = 0xd2
      this.at = bytes.writeInt32BE(value, at + 1)
    }
  }

  private writeUnsigned(value: number): void {
    const { bytes, at } = this
    if (value < 0x80) bytes[this.at++] = value
    else if (value < 0x100) {
      bytes[at] = 0xcc
      this.at = bytes.writeUInt8(value, at + 1)
    } else if (value < 0x10000) {
      bytes[at] = 0xcd
      this.at = bytes.writeUInt16BE(value, at + 1)
    } else {
      bytes[at] = 0xce
      this.at = bytes.writeUInt32BE(value, at + 1)
    }
  }
}

const packedText = (text: string): Uint8Array => Uint8Array.from(pack(text))
