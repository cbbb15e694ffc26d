import { readUuid, writeUuid } from '../../kernel/uuid-bytes.ts'
import type { EventMetadata, NewEvent, RecordedEvent } from '../../kernel/event.ts'

/*
 * One stored event:
 *   1 byte flags | 6 position | 6 loggedAt | 16 id as a UUID (or 1 length, id) | 1 length, type | 4 length, metadata JSON | data
 */
const IS_JSON = 1
const IS_UUID = 2
/** Parts of an event that are encoded before its size is known. */
export interface PreparedEvent {
  event: NewEvent
  isUuid: boolean
  type: Buffer
  metadata: string
  metadataBytes: number
  frameBytes: number
}

/** @throws Error when id or type are empty or longer than 255 bytes. */
export const prepareEvent = (event: NewEvent): PreparedEvent => {
  const isUuid = PLAIN_UUID.test(event.id)
  const type = typeBytes(event.type)
  const { metadata, metadataBytes } = metadataText(event.metadata)
  const idBytes = isUuid ? 16 : 1 + short('id', Buffer.from(event.id)).length
  const frameBytes = 13 + idBytes + 1 + type.length + 4 + metadataBytes + event.data.byteLength
  return { event, isUuid, type, metadata, metadataBytes, frameBytes }
}

let lastMetadata: { of: EventMetadata | undefined; metadata: string; metadataBytes: number; stored?: EventMetadata } = {
  of: undefined,
  metadata: '',
  metadataBytes: 0,
}

/** Rows of one file or request share their metadata, which nobody changes. */
const metadataText = (of: EventMetadata): typeof lastMetadata => {
  if (of === lastMetadata.of) return lastMetadata
  const metadata = JSON.stringify(of)
  lastMetadata = { of, metadata, metadataBytes: Buffer.byteLength(metadata) }
  return lastMetadata
}

const TYPES_CACHED_MAX = 1_000
const types = new Map<string, Buffer>()

// A service has some dozens of types.
const typeBytes = (type: string): Buffer => {
  let bytes = types.get(type)
  if (bytes === undefined) {
    bytes = short('type', Buffer.from(type))
    if (types.size < TYPES_CACHED_MAX) types.set(type, bytes)
  }
  return bytes
}

const short = (what: string, bytes: Buffer): Buffer => {
  if (bytes.length === 0 || bytes.length > 255)
    throw new Error(`The ${what} of an event takes 1 to 255 bytes, not ${bytes.length}.`)
  return bytes
}

/** Writes the frame at `start` and answers its end. */
export const writeFrame = (
  target: Buffer,
  start: number,
  prepared: PreparedEvent,
  position: number,
  loggedAt: number,
): number => {
  const { event, isUuid, type, metadata, metadataBytes } = prepared
  target[start] = (event.isJson ? IS_JSON : 0) | (isUuid ? IS_UUID : 0)
  target.writeUIntBE(position, start + 1, 6)
  target.writeUIntBE(loggedAt, start + 7, 6)
  let at = start + 13
  if (isUuid) writeUuid(event.id, target, at)
  at = isUuid ? at + 16 : writeShort(target, at, Buffer.from(event.id))
  at = writeShort(target, at, type)
  target.writeUInt32BE(metadataBytes, at)
  at += 4
  at += target.write(metadata, at, metadataBytes)
  target.set(event.data, at)
  return at + event.data.byteLength
}

const writeShort = (target: Buffer, at: number, bytes: Buffer): number => {
  target[at] = bytes.length
  target.set(bytes, at + 1)
  return at + 1 + bytes.length
}

/** The usual form of a UUID, which 16 bytes can hold. */
const PLAIN_UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** The event in a frame; its data is a view into the frame. */
export const readFrame = (frame: Buffer, stream: string, revision: number): RecordedEvent => {
  const flags = frame[0] as number
  const idStart = (flags & IS_UUID) === 0 ? 14 : 13
  const idEnd = idStart + ((flags & IS_UUID) === 0 ? (frame[13] as number) : 16)
  const typeEnd = idEnd + 1 + (frame[idEnd] as number)
  const dataStart = typeEnd + 4 + frame.readUInt32BE(typeEnd)
  return {
    id: idOf(frame, flags, idStart, idEnd),
    type: frame.toString('utf8', idEnd + 1, typeEnd),
    data: new Uint8Array(frame.buffer, frame.byteOffset + dataStart, frame.byteLength - dataStart),
    isJson: (flags & IS_JSON) !== 0,
    metadata: JSON.parse(frame.toString('utf8', typeEnd + 4, dataStart)) as EventMetadata,
    stream,
    revision,
    position: positionOfFrame(frame),
    loggedAt: frame.readUIntBE(7, 6),
  }
}

/** The same event as its frame holds. */
export const recordedEvent = (
  { event, metadata }: PreparedEvent,
  stream: string,
  revision: number,
  position: number,
  loggedAt: number,
): RecordedEvent => ({
  id: event.id,
  type: event.type,
  data: event.data,
  isJson: event.isJson,
  metadata: sharedMetadata(event.metadata, metadata),
  stream,
  revision,
  position,
  loggedAt,
})

const sharedMetadata = (metadata: EventMetadata, text: string): EventMetadata => {
  if (metadata !== lastMetadata.of) return storedMetadata(metadata, text)
  lastMetadata.stored ??= storedMetadata(metadata, text)
  return lastMetadata.stored
}

/** Metadata as its JSON has it, which is parsed only where members other than undefined ones differ. */
const storedMetadata = (metadata: EventMetadata, text: string): EventMetadata => {
  const stored: { [name: string]: string } = {}
  for (const [name, value] of Object.entries(metadata)) {
    if (typeof value === 'string') stored[name] = value
    else if (value !== undefined) return JSON.parse(text) as EventMetadata
  }
  return stored
}

export const positionOfFrame = (frame: Buffer): number => frame.readUIntBE(1, 6)

export const idOfFrame = (frame: Buffer): string => {
  const flags = frame[0] as number
  const start = (flags & IS_UUID) === 0 ? 14 : 13
  return idOf(frame, flags, start, start + ((flags & IS_UUID) === 0 ? (frame[13] as number) : 16))
}

const idOf = (frame: Buffer, flags: number, start: number, end: number): string => {
  if ((flags & IS_UUID) === 0) return frame.toString('utf8', start, end)
  return readUuid(frame, start)
}
