import type { NewEvent } from '../../kernel/event.ts'
import type { ExpectedRevision } from '../event-log.ts'

/*
 * `BatchAppendReq` of EventStoreDB's streams.proto, an append in one piece:
 *     1 correlation id · 2 options { 1 stream { 3 name } · 2 revision | 3 no stream | 4 any } ·
 *     3 events { 1 id · 2 content type and type, by name · 3 metadata · 4 data } · 4 is final
 * The generated code copies the data of an event twice on the way into a request: with batches of points, collecting that
 * garbage took more than all else of an append.
 */

/** The bytes of an append, without a deadline: the server would hold it against its own clock. */
export const encodeAppend = (
  correlationId: string,
  stream: string,
  events: readonly NewEvent[],
  expected: ExpectedRevision,
): Buffer => {
  const parts = events.map(partsOf)
  const streamBytes = fieldBytes(Buffer.byteLength(stream))
  const optionsBytes = fieldBytes(streamBytes) + expectedBytes(expected)
  let size = idBytes(correlationId) + fieldBytes(optionsBytes) + 2
  for (const { bytes } of parts) size += fieldBytes(bytes)
  const request = new ProtobufWriter(size)
  request.id(1, correlationId)
  request.head(2, optionsBytes)
  request.head(1, streamBytes)
  request.text(3, stream)
  request.expected(expected)
  for (const part of parts) request.event(part)
  request.number(4, 1)
  return request.bytes
}

interface EventParts {
  event: NewEvent
  /** Encoded fields. */
  type: Buffer
  metadata: string
  metadataBytes: number
  bytes: number
}

const partsOf = (event: NewEvent): EventParts => {
  const type = typeOf(event)
  const metadata = JSON.stringify(event.metadata)
  const metadataBytes = Buffer.byteLength(metadata)
  const bytes = idBytes(event.id) + type.byteLength + fieldBytes(metadataBytes) + fieldBytes(event.data.byteLength)
  return { event, type, metadata, metadataBytes, bytes }
}

/** Fields one after the other; those with bytes are preceded by their number and length. */
class ProtobufWriter {
  readonly bytes: Buffer
  private at = 0

  constructor(size: number) {
    this.bytes = Buffer.allocUnsafe(size)
  }

  head(field: number, length: number): void {
    this.bytes[this.at++] = (field << 3) | LENGTH_DELIMITED
    this.varint(length)
  }

  text(field: number, text: string, bytes = Buffer.byteLength(text)): void {
    this.head(field, bytes)
    this.at += this.bytes.write(text, this.at, bytes)
  }

  id(field: number, id: string): void {
    this.head(field, fieldBytes(Buffer.byteLength(id)))
    this.text(2, id)
  }

  number(field: number, value: number): void {
    this.bytes[this.at++] = field << 3
    this.varint(value)
  }

  expected(expected: ExpectedRevision): void {
    if (typeof expected === 'number') this.number(2, expected)
    else this.head(expected === 'none' ? 3 : 4, 0)
  }

  event({ event: { id, data }, type, metadata, metadataBytes, bytes }: EventParts): void {
    this.head(3, bytes)
    this.id(1, id)
    this.add(type)
    this.text(3, metadata, metadataBytes)
    this.head(4, data.byteLength)
    this.add(data)
  }

  private add(bytes: Uint8Array): void {
    this.bytes.set(bytes, this.at)
    this.at += bytes.byteLength
  }

  /** Seven bits a byte, the lowest first. */
  private varint(value: number): void {
    let rest = value
    for (; rest > 127; rest = Math.floor(rest / 128)) this.bytes[this.at++] = (rest & 127) | 128
    this.bytes[this.at++] = rest
  }
}

const LENGTH_DELIMITED = 2

const varintBytes = (value: number): number => {
  let bytes = 1
  for (let rest = value; rest > 127; rest = Math.floor(rest / 128)) bytes++
  return bytes
}

const fieldBytes = (length: number): number => 1 + varintBytes(length) + length

const idBytes = (id: string): number => fieldBytes(fieldBytes(Buffer.byteLength(id)))

const expectedBytes = (expected: ExpectedRevision): number =>
  typeof expected === 'number' ? 1 + varintBytes(expected) : 2

const TYPES_CACHED_MAX = 1_000
const types = new Map<string, Buffer>()

/** Content type and type, as two entries by name; a service has some dozens. */
const typeOf = ({ type, isJson }: NewEvent): Buffer => {
  const key = `${isJson ? 'j' : 'b'}${type}`
  let bytes = types.get(key)
  if (bytes === undefined) {
    const contentType = isJson ? 'application/json' : 'application/octet-stream'
    bytes = Buffer.concat([named('content-type', contentType), named('type', type)])
    if (types.size < TYPES_CACHED_MAX) types.set(key, bytes)
  }
  return bytes
}

const named = (name: string, value: string): Buffer => {
  const bytes = fieldBytes(Buffer.byteLength(name)) + fieldBytes(Buffer.byteLength(value))
  const entry = new ProtobufWriter(fieldBytes(bytes))
  entry.head(2, bytes)
  entry.text(1, name)
  entry.text(2, value)
  return entry.bytes
}
