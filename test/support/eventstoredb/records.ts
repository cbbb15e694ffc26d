import { readSync, writeSync } from 'node:fs'

/** One event as the server keeps it. `position` is the offset of its record in the file. */
export interface StoredEvent {
  id: string
  stream: string
  revision: number
  position: number
  type: string
  contentType: string
  /** Ticks of 100 ns since the epoch. */
  created: bigint
  data: Uint8Array
  metadata: Uint8Array
}

/** Set in the length of the head of a record that a scavenge took out. */
export const SCAVENGED = 0x8000_0000

/** Length, length of the head (and whether it was scavenged), head; then data, then metadata, not copied. */
export const encode = ({ data, metadata, position: _position, created, ...rest }: StoredEvent): Uint8Array[] => {
  const head = Buffer.from(JSON.stringify({ ...rest, created: String(created), dataBytes: data.byteLength }))
  const sizes = Buffer.allocUnsafe(8)
  sizes.writeUInt32BE(8 + head.byteLength + data.byteLength + metadata.byteLength, 0)
  sizes.writeUInt32BE(head.byteLength, 4)
  return [Buffer.concat([sizes, head]), data, metadata]
}

export const decode = (record: Buffer, position: number): StoredEvent => {
  const headEnd = headEndOf(record)
  const { dataBytes, created, ...rest } = JSON.parse(record.subarray(8, headEnd).toString())
  const dataEnd = headEnd + dataBytes
  const data = new Uint8Array(record.subarray(headEnd, dataEnd))
  return { ...rest, created: BigInt(created), position, data, metadata: new Uint8Array(record.subarray(dataEnd)) }
}

export const headEndOf = (record: Buffer): number => 8 + record.readUInt32BE(4)

/**
 * An event whose bytes are read from the file when they are asked for. With those of all events in memory the double
 * spent most of its time on collecting garbage.
 */
export class FiledEvent implements StoredEvent {
  readonly id: string
  readonly stream: string
  readonly revision: number
  readonly position: number
  readonly type: string
  readonly contentType: string
  readonly created: bigint
  private readonly file: number
  private readonly headEnd: number
  private dataBytes: number
  private metadataBytes: number

  /** @param headEnd where its data begin in its record */
  constructor(event: StoredEvent, headEnd: number, file: number) {
    this.id = event.id
    this.stream = event.stream
    this.revision = event.revision
    this.position = event.position
    this.type = event.type
    this.contentType = event.contentType
    this.created = event.created
    this.file = file
    this.headEnd = headEnd
    this.dataBytes = event.data.byteLength
    this.metadataBytes = event.metadata.byteLength
  }

  get data(): Uint8Array {
    return this.bytes(this.headEnd, this.dataBytes)
  }

  get metadata(): Uint8Array {
    return this.bytes(this.headEnd + this.dataBytes, this.metadataBytes)
  }

  /** Takes the bytes out of the file; the record stays as long as it is. */
  blank(): void {
    const mark = Buffer.alloc(4)
    mark.writeUInt32BE(((this.headEnd - 8) | SCAVENGED) >>> 0)
    writeSync(this.file, mark, 0, undefined, this.position + 4)
    writeSync(this.file, Buffer.alloc(this.dataBytes + this.metadataBytes), 0, undefined, this.position + this.headEnd)
    this.dataBytes = this.metadataBytes = 0
  }

  private bytes(at: number, length: number): Uint8Array {
    const bytes = Buffer.allocUnsafe(length)
    readSync(this.file, bytes, 0, length, this.position + at)
    return bytes
  }
}
