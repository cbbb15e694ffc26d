import { gzipSync } from 'node:zlib'
import { encodeThrift, type ThriftStruct, type ThriftValue } from './thrift-compact.ts'

/** A column of a Parquet file: texts in UTF-8, times in ms since the epoch (UTC), or doubles. */
export interface ParquetColumn {
  name: string
  type: 'text' | 'time' | 'number'
  /** Rows may lack it. */
  isOptional?: boolean
}

export type ParquetValue = string | number | undefined

/** Rows of a row group: what a writer holds before it makes bytes of them. */
const GROUP_ROWS = 16_384
const MAGIC = Buffer.from('PAR1')
const PHYSICAL = { time: 2, number: 5, text: 6 }
const CONVERTED = { time: 9, number: undefined, text: 0 }
const [PLAIN, RLE, GZIP] = [0, 3, 2]

/**
 * Writes a Parquet file as it comes: row groups of 16,384 rows, one plain page for each column, packed by gzip; only the
 * places of the groups are held until the end. https://parquet.apache.org/docs/file-format/
 */
export class ParquetWriter {
  private readonly columns: readonly ParquetColumn[]
  private values: ParquetValue[][]
  private ready: Uint8Array[] = [MAGIC]
  private written = MAGIC.length
  private rowsWritten = 0
  private readonly groups: ThriftValue[] = []

  constructor(columns: readonly ParquetColumn[]) {
    this.columns = columns
    this.values = columns.map(() => [])
  }

  /** A row's values in the order of the columns. */
  add(row: readonly ParquetValue[]): void {
    for (let i = 0; i < row.length; i++) this.values[i].push(row[i])
    if (this.values[0].length === GROUP_ROWS) this.finishGroup()
  }

  /** The bytes that are complete by now. */
  take(): Uint8Array {
    const bytes = Buffer.concat(this.ready)
    this.ready = []
    return bytes
  }

  /** The last bytes; nothing may be added after them. */
  end(): Uint8Array {
    if (this.values[0].length > 0) this.finishGroup()
    const footer = encodeThrift({
      1: { i32: 1 },
      2: { list: [{ struct: { 4: { text: 'schema' }, 5: { i32: this.columns.length } } }, ...this.columns.map(schemaElement)] },
      3: { i64: this.rowsWritten },
      4: { list: this.groups },
      6: { text: 'Waymark' },
    })
    const length = Buffer.alloc(4)
    length.writeUInt32LE(footer.length)
    this.ready.push(footer, length, MAGIC)
    return this.take()
  }

  private finishGroup(): void {
    const rows = this.values[0].length
    const chunks = this.columns.map((column, i) => this.writePage(column, this.values[i]))
    const bytes = chunks.reduce((sum, chunk) => sum + chunk.plainBytes, 0)
    this.groups.push({ struct: { 1: { list: chunks.map(({ chunk }) => chunk) }, 2: { i64: bytes }, 3: { i64: rows } } })
    this.rowsWritten += rows
    this.values = this.columns.map(() => [])
  }

  private writePage(column: ParquetColumn, values: readonly ParquetValue[]): { chunk: ThriftValue; plainBytes: number } {
    const plain = plainPage(column, values)
    const packed = gzipSync(plain, { level: 1 })
    const header = encodeThrift({
      1: { i32: 0 },
      2: { i32: plain.length },
      3: { i32: packed.length },
      5: { struct: { 1: { i32: values.length }, 2: { i32: PLAIN }, 3: { i32: RLE }, 4: { i32: RLE } } },
    })
    const offset = this.written
    this.ready.push(header, packed)
    this.written += header.length + packed.length
    const metadata: ThriftStruct = {
      1: { i32: PHYSICAL[column.type] },
      2: { list: [{ i32: PLAIN }, { i32: RLE }] },
      3: { list: [{ text: column.name }] },
      4: { i32: GZIP },
      5: { i64: values.length },
      6: { i64: header.length + plain.length },
      7: { i64: header.length + packed.length },
      9: { i64: offset },
    }
    return { chunk: { struct: { 2: { i64: offset }, 3: { struct: metadata } } }, plainBytes: header.length + plain.length }
  }
}

const schemaElement = ({ name, type, isOptional = false }: ParquetColumn): ThriftValue => {
  const converted = CONVERTED[type]
  const milliseconds: ThriftValue = { struct: { 1: { struct: {} } } }
  return {
    struct: {
      1: { i32: PHYSICAL[type] },
      3: { i32: isOptional ? 1 : 0 },
      4: { text: name },
      6: converted === undefined ? undefined : { i32: converted },
      10: type === 'text' ? { struct: { 1: { struct: {} } } } : type === 'time' ? { struct: { 8: { struct: { 1: { flag: true }, 2: milliseconds } } } } : undefined,
    },
  }
}

/** Which rows have a value, where some may not, and the values one after the other. */
const plainPage = ({ type, isOptional }: ParquetColumn, values: readonly ParquetValue[]): Buffer => {
  const there = isOptional ? values.filter((value) => value !== undefined) : values
  const levels = isOptional ? definitionLevels(values) : Buffer.alloc(0)
  if (type === 'text') return Buffer.concat([levels, ...textParts(there as string[])])
  const numbers = Buffer.alloc(there.length * 8)
  for (const [i, value] of there.entries()) {
    if (type === 'time') numbers.writeBigInt64LE(BigInt(value as number), i * 8)
    else numbers.writeDoubleLE(value as number, i * 8)
  }
  return Buffer.concat([levels, numbers])
}

/** One bit for each row, as one run of the bit-packed kind behind its length. */
const definitionLevels = (values: readonly ParquetValue[]): Buffer => {
  const groups = Math.ceil(values.length / 8)
  const run: number[] = []
  for (let left = groups * 2 + 1; ; left = Math.floor(left / 128)) {
    run.push(left > 127 ? (left % 128) | 128 : left)
    if (left <= 127) break
  }
  const bytes = Buffer.alloc(4 + run.length + groups)
  bytes.writeUInt32LE(run.length + groups)
  bytes.set(run, 4)
  for (let i = 0; i < values.length; i++) if (values[i] !== undefined) bytes[4 + run.length + (i >> 3)] |= 1 << (i & 7)
  return bytes
}

const textParts = (texts: readonly string[]): Buffer[] => {
  let room = 0
  for (const text of texts) room += 4 + text.length * 3
  const bytes = Buffer.allocUnsafe(room)
  let at = 0
  for (const text of texts) {
    const length = bytes.write(text, at + 4)
    bytes.writeUInt32LE(length, at)
    at += 4 + length
  }
  return [bytes.subarray(0, at)]
}
