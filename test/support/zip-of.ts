import { crc32, deflateRawSync } from 'node:zlib'

/** A zip file of a few entries, as a test needs them: each comes whole. */
export const zipOf = (entries: { readonly [name: string]: string }): Buffer => {
  const pieces: Buffer[] = []
  const directory: Buffer[] = []
  let offset = 0
  for (const [name, text] of Object.entries(entries)) {
    const bytes = Buffer.from(text)
    const packed = deflateRawSync(bytes)
    const about = [bytes, packed, name, offset] as const
    pieces.push(localHeader(...about), packed)
    directory.push(centralHeader(...about))
    offset = pieces.reduce((sum, piece) => sum + piece.length, 0)
  }
  const listed = Buffer.concat(directory)
  const end = Buffer.alloc(22)
  end.writeUInt32LE(0x06054b50, 0)
  end.writeUInt16LE(directory.length, 8)
  end.writeUInt16LE(directory.length, 10)
  end.writeUInt32LE(listed.length, 12)
  end.writeUInt32LE(offset, 16)
  return Buffer.concat([...pieces, listed, end])
}

const DEFLATED = 8
const VERSION = 20

const sizes = (head: Buffer, at: number, bytes: Buffer, packed: Buffer, name: string): void => {
  head.writeUInt32LE(crc32(bytes), at)
  head.writeUInt32LE(packed.length, at + 4)
  head.writeUInt32LE(bytes.length, at + 8)
  head.writeUInt16LE(Buffer.byteLength(name), at + 12)
}

const localHeader = (bytes: Buffer, packed: Buffer, name: string, _offset: number): Buffer => {
  const head = Buffer.alloc(30)
  head.writeUInt32LE(0x04034b50, 0)
  head.writeUInt16LE(VERSION, 4)
  head.writeUInt16LE(DEFLATED, 8)
  sizes(head, 14, bytes, packed, name)
  return Buffer.concat([head, Buffer.from(name)])
}

const centralHeader = (bytes: Buffer, packed: Buffer, name: string, offset: number): Buffer => {
  const head = Buffer.alloc(46)
  head.writeUInt32LE(0x02014b50, 0)
  head.writeUInt16LE(VERSION, 4)
  head.writeUInt16LE(VERSION, 6)
  head.writeUInt16LE(DEFLATED, 10)
  sizes(head, 16, bytes, packed, name)
  head.writeUInt32LE(offset, 42)
  return Buffer.concat([head, Buffer.from(name)])
}
