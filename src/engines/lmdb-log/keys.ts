const PAGE_BYTES = 4096
const STREAM_NAME_BYTES_MAX = 1000

export interface IndexEntry {
  position: number
  no: number
  revision: number
}
/** Disk space of an event, about: a large one takes whole pages, a small one a share of one. */
export const bytesOfFrame = (frameBytes: number): number =>
  frameBytes > PAGE_BYTES / 2
    ? Math.ceil((frameBytes + 16) / PAGE_BYTES) * PAGE_BYTES + 100
    : Math.ceil(frameBytes * 1.4) + 100

/** @throws Error when the name is empty or longer than 1000 bytes. */
export const streamKey = (name: string): Buffer => {
  const key = Buffer.from(name)
  if (key.length === 0 || key.length > STREAM_NAME_BYTES_MAX)
    throw new Error(`A stream's name takes 1 to ${STREAM_NAME_BYTES_MAX} bytes, not ${key.length}.`)
  return key
}

export const textOf = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')

// The driver copies a key before it returns, so one buffer of each kind serves all.
const eventKeyBuffer = Buffer.alloc(10)
export const eventKey = (no: number, revision: number): Buffer => {
  eventKeyBuffer.writeUInt32BE(no, 0)
  eventKeyBuffer.writeUIntBE(revision, 4, 6)
  return eventKeyBuffer
}

const indexKeyBuffer = Buffer.alloc(8)
export const indexKey = (category: number, position: number): Buffer => {
  indexKeyBuffer.writeUInt16BE(category, 0)
  indexKeyBuffer.writeUIntBE(position, 2, 6)
  return indexKeyBuffer
}

export const INDEX_ENTRIES = {
  keyEncoder: {
    writeKey: (key: Uint8Array, target: Buffer, start: number): number => {
      target.set(key, start)
      return start + key.length
    },
    readKey: (source: Buffer, start: number): number => source.readUIntBE(start + 2, 6),
  },
  encoder: {
    encode: (): never => {
      throw new Error('Entries are written to the index itself.')
    },
    decode: (value: Buffer): IndexEntry => ({
      position: -1,
      no: value.readUInt32BE(0),
      revision: value.readUIntBE(4, 6),
    }),
  },
}

const numberKeyBuffer = Buffer.alloc(4)
export const numberKey = (no: number): Buffer => {
  numberKeyBuffer.writeUInt32BE(no, 0)
  return numberKeyBuffer
}
