/**
 * Writes Thrift's compact protocol, as far as the metadata of a Parquet file need it: structs of integers, texts, lists and
 * structs. https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
 */
export type ThriftValue = { i32: number } | { i64: number } | { text: string } | { flag: boolean } | { list: readonly ThriftValue[] } | { struct: ThriftStruct }

/** Values by field number. */
export type ThriftStruct = { readonly [field: number]: ThriftValue | undefined }

export const encodeThrift = (struct: ThriftStruct): Uint8Array => {
  const bytes: number[] = []
  writeStruct(bytes, struct)
  return Uint8Array.from(bytes)
}

const TYPES = { true: 1, false: 2, i32: 5, i64: 6, text: 8, list: 9, struct: 12 }

const writeStruct = (bytes: number[], struct: ThriftStruct): void => {
  let last = 0
  // Integer keys come in rising order.
  for (const [name, value] of Object.entries(struct)) {
    if (value === undefined) continue
    const field = Number(name)
    bytes.push(((field - last) << 4) | typeOf(value))
    last = field
    writeValue(bytes, value)
  }
  bytes.push(0)
}

const typeOf = (value: ThriftValue): number => ('flag' in value ? TYPES[value.flag ? 'true' : 'false'] : TYPES[Object.keys(value)[0] as keyof typeof TYPES])

const writeValue = (bytes: number[], value: ThriftValue): void => {
  if ('flag' in value) return
  if ('i32' in value) writeVarint(bytes, value.i32 * 2)
  else if ('i64' in value) writeVarint(bytes, value.i64 * 2)
  else if ('text' in value) {
    const text = Buffer.from(value.text)
    writeVarint(bytes, text.length)
    bytes.push(...text)
  } else if ('list' in value) writeList(bytes, value.list)
  else writeStruct(bytes, value.struct)
}

const writeList = (bytes: number[], items: readonly ThriftValue[]): void => {
  const type = items.length === 0 ? TYPES.struct : typeOf(items[0])
  if (items.length < 15) bytes.push((items.length << 4) | type)
  else {
    bytes.push(0xf0 | type)
    writeVarint(bytes, items.length)
  }
  for (const item of items) writeValue(bytes, item)
}

/** Of numbers that are not negative; a zigzag of such a number is its double. */
const writeVarint = (bytes: number[], value: number): void => {
  let left = value
  for (; left > 127; left = Math.floor(left / 128)) bytes.push((left % 128) | 128)
  bytes.push(left)
}
