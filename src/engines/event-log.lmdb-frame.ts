import type { EventMetadata, NewEvent, RecordedEvent } from '../kernel/event.ts'

/*
 * One stored event:
 *   1 byte flags | 6 position | 6 loggedAt | 16 id as a UUID (or 1 length, id) | 1 length, type | 4 length, metadata JSON | data
 */
const IS_JSON = 1
const IS_UUID = 2
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** What of an event is turned to text before its size is known. */
export interface PreparedEvent {
  event: NewEvent
  isUuid: boolean
  metadata: string
  metadataBytes: number
  frameBytes: number
}

/** @throws Error when id or type are empty or longer than 255 bytes. */
export const prepareEvent = (event: NewEvent): PreparedEvent => {
  const isUuid = UUID.test(event.id)
  const metadata = JSON.stringify(event.metadata)
  const metadataBytes = Buffer.byteLength(metadata)
  const idBytes = isUuid ? 16 : 1 + shortBytes('id', event.id)
  const frameBytes = 13 + idBytes + 1 + shortBytes('type', event.type) + 4 + metadataBytes + event.data.byteLength
  return { event, isUuid, metadata, metadataBytes, frameBytes }
}

const shortBytes = (what: string, text: string): number => {
  const bytes = Buffer.byteLength(text)
  if (bytes === 0 || bytes > 255) throw new Error(`The ${what} of an event takes 1 to 255 bytes, not ${bytes}: ${text.slice(0, 100)}`)
  return bytes
}

/** Writes the frame at `start` and answers where it ends. */
export const writeFrame = (target: Buffer, start: number, prepared: PreparedEvent, position: number, loggedAt: number): number => {
  const { event, isUuid, metadata, metadataBytes } = prepared
  target[start] = (event.isJson ? IS_JSON : 0) | (isUuid ? IS_UUID : 0)
  target.writeUIntBE(position, start + 1, 6)
  target.writeUIntBE(loggedAt, start + 7, 6)
  let at = start + 13
  if (isUuid) at += target.write(event.id.replaceAll('-', ''), at, 'hex')
  else at += writeShort(target, at, event.id)
  at += writeShort(target, at, event.type)
  target.writeUInt32BE(metadataBytes, at)
  at += 4
  at += target.write(metadata, at, metadataBytes)
  target.set(event.data, at)
  return at + event.data.byteLength
}

const writeShort = (target: Buffer, at: number, text: string): number => {
  const bytes = target.write(text, at + 1)
  target[at] = bytes
  return bytes + 1
}

/** The event that a frame holds; its data is a view into the frame. */
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

export const positionOfFrame = (frame: Buffer): number => frame.readUIntBE(1, 6)

export const idOfFrame = (frame: Buffer): string => {
  const flags = frame[0] as number
  const start = (flags & IS_UUID) === 0 ? 14 : 13
  return idOf(frame, flags, start, start + ((flags & IS_UUID) === 0 ? (frame[13] as number) : 16))
}

const idOf = (frame: Buffer, flags: number, start: number, end: number): string => {
  if ((flags & IS_UUID) === 0) return frame.toString('utf8', start, end)
  const hex = frame.toString('hex', start, end)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}
