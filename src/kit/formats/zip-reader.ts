import { Readable } from 'node:stream'
import { createInflateRaw } from 'node:zlib'
import { FileFault } from './table-cells.ts'

interface Entry {
  method: number
  flags: number
  packed: number
  offset: number
}

const END = 0x06054b50
const CENTRAL = 0x02014b50
const LOCAL = 0x04034b50
const ENCRYPTED = 0x1
const STORED = 0
const DEFLATED = 8
const ENTRIES_MAX = 10_000
const CHUNK_BYTES = 64 * 1024

/** The entries of a zip file in memory. The unpacked size is counted during unpacking, whatever the file declares. */
export class ZipReader {
  private readonly bytes: Buffer
  private readonly entries: ReadonlyMap<string, Entry>
  private readonly unpackedMax: number
  private unpacked = 0

  /** @throws FileFault */
  constructor(bytes: Buffer, unpackedMax: number) {
    this.bytes = bytes
    this.unpackedMax = unpackedMax
    this.entries = directoryOf(bytes)
  }

  has(name: string): boolean {
    return this.entries.has(name)
  }

  /** The unpacked bytes of an entry, piece by piece. @throws FileFault */
  async *read(name: string): AsyncGenerator<Buffer> {
    const entry = this.entries.get(name)
    if (entry === undefined) throw broken()
    if ((entry.flags & ENCRYPTED) !== 0)
      throw new FileFault('invalid', 'The file is encrypted: save it without a password.')
    const packed = this.packedOf(entry)
    if (entry.method === STORED) return yield this.counted(packed)
    if (entry.method !== DEFLATED) throw broken()
    const inflate = createInflateRaw({ chunkSize: CHUNK_BYTES })
    const source = Readable.from(slices(packed)).pipe(inflate)
    try {
      for await (const piece of source as AsyncIterable<Buffer>) yield this.counted(piece)
    } catch (error) {
      throw error instanceof FileFault ? error : broken()
    } finally {
      source.destroy()
    }
  }

  private counted(piece: Buffer): Buffer {
    this.unpacked += piece.length
    if (this.unpacked > this.unpackedMax)
      throw new FileFault('too_large', `The file unpacks to more than ${this.unpackedMax} bytes.`)
    return piece
  }

  private packedOf({ offset, packed }: Entry): Buffer {
    if (offset + 30 > this.bytes.length || this.bytes.readUInt32LE(offset) !== LOCAL) throw broken()
    const from = offset + 30 + this.bytes.readUInt16LE(offset + 26) + this.bytes.readUInt16LE(offset + 28)
    if (from + packed > this.bytes.length) throw broken()
    return this.bytes.subarray(from, from + packed)
  }
}

const broken = (): FileFault => new FileFault('invalid', 'The file is damaged or incomplete; save and send it again.')

function* slices(bytes: Buffer): Generator<Buffer> {
  for (let from = 0; from < bytes.length; from += CHUNK_BYTES) yield bytes.subarray(from, from + CHUNK_BYTES)
}

const directoryOf = (bytes: Buffer): Map<string, Entry> => {
  const end = bytes.lastIndexOf(Buffer.from([0x50, 0x4b, 0x05, 0x06]))
  if (end < 0 || end + 22 > bytes.length || bytes.readUInt32LE(end) !== END) throw broken()
  const count = bytes.readUInt16LE(end + 10)
  if (count > ENTRIES_MAX) throw new FileFault('too_large', `The file has more than ${ENTRIES_MAX} parts.`)
  const entries = new Map<string, Entry>()
  let at = bytes.readUInt32LE(end + 16)
  for (let i = 0; i < count; i++) {
    if (at + 46 > bytes.length || bytes.readUInt32LE(at) !== CENTRAL) throw broken()
    const [names, extra, comment] = [28, 30, 32].map((place) => bytes.readUInt16LE(at + place))
    const name = bytes
      .toString('utf8', at + 46, at + 46 + names)
      .replaceAll('\\', '/')
      .replace(/^\//, '')
    entries.set(name, {
      flags: bytes.readUInt16LE(at + 8),
      method: bytes.readUInt16LE(at + 10),
      packed: bytes.readUInt32LE(at + 20),
      offset: bytes.readUInt32LE(at + 42),
    })
    at += 46 + names + extra + comment
  }
  return entries
}
