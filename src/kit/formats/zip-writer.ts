import { promisify } from 'node:util'
import { crc32, createDeflateRaw, deflateRaw, type DeflateRaw } from 'node:zlib'

const LEVEL = 4
/** More than a local header can say without ZIP64. */
const SIZE_MAX = 0xffff_ffff

/** An entry that is complete. */
interface Entry {
  name: string
  crc: number
  packed: number
  size: number
  offset: number
  flags: number
}

/**
 * A zip file that is made as it is sent: one entry may be as long as it likes, since its sizes stand behind it. All other
 * entries come whole. No ZIP64: 4 GiB are the end. @throws RangeError beyond that
 */
export class ZipWriter {
  private readonly entries: Entry[] = []
  private offset = 0
  private open: { entry: Entry; deflate: DeflateRaw; ready: Buffer[] } | undefined

  async whole(name: string, text: string): Promise<Buffer> {
    const bytes = Buffer.from(text)
    const packed = await promisify(deflateRaw)(bytes)
    const entry = {
      name,
      crc: crc32(bytes),
      packed: packed.length,
      size: bytes.length,
      offset: this.offset,
      flags: UTF8,
    }
    this.entries.push(entry)
    return this.sent(Buffer.concat([localHeader(entry), packed]))
  }

  begin(name: string): Buffer {
    const entry = { name, crc: 0, packed: 0, size: 0, offset: this.offset, flags: UTF8 | SIZES_BEHIND }
    const ready: Buffer[] = []
    const deflate = createDeflateRaw({ level: LEVEL }).on('data', (piece: Buffer) => void ready.push(piece))
    this.open = { entry, deflate, ready }
    return this.sent(localHeader(entry))
  }

  /** More of the open entry; answers what is ready to be sent. */
  async add(text: string): Promise<Buffer> {
    const { entry, deflate } = this.opened()
    const bytes = Buffer.from(text)
    entry.crc = crc32(bytes, entry.crc)
    entry.size += bytes.length
    await new Promise<void>((resolve, reject) => deflate.write(bytes, (error) => (error ? reject(error) : resolve())))
    return this.take()
  }

  async finish(): Promise<Buffer> {
    const { entry, deflate } = this.opened()
    await new Promise<void>((resolve, reject) => void deflate.on('error', reject).on('end', resolve).end())
    const last = this.take()
    this.open = undefined
    this.entries.push(entry)
    return Buffer.concat([last, this.sent(descriptor(entry))])
  }

  end(): Buffer {
    const directory = Buffer.concat(this.entries.map(centralHeader))
    const end = Buffer.alloc(22)
    end.writeUInt32LE(0x06054b50, 0)
    end.writeUInt16LE(this.entries.length, 8)
    end.writeUInt16LE(this.entries.length, 10)
    end.writeUInt32LE(directory.length, 12)
    end.writeUInt32LE(this.offset, 16)
    return Buffer.concat([directory, end])
  }

  private opened(): NonNullable<typeof this.open> {
    if (this.open === undefined) throw new Error('no entry of the zip file is open')
    return this.open
  }

  private take(): Buffer {
    const { entry, ready } = this.opened()
    const bytes = Buffer.concat(ready.splice(0))
    entry.packed += bytes.length
    return this.sent(bytes)
  }

  private sent(bytes: Buffer): Buffer {
    this.offset += bytes.length
    if (this.offset > SIZE_MAX) throw new RangeError('a zip file of more than 4 GiB')
    return bytes
  }
}

const DEFLATED = 8
const UTF8 = 0x800
const SIZES_BEHIND = 0x8
/** 1980-01-01: files say nothing of when they were made, and so are the same each time. */
const DOS_DATE = 0x21

const localHeader = ({ name, crc, packed, size, flags }: Entry): Buffer => {
  const head = Buffer.alloc(30)
  head.writeUInt32LE(0x04034b50, 0)
  head.writeUInt16LE(20, 4)
  head.writeUInt16LE(flags, 6)
  head.writeUInt16LE(DEFLATED, 8)
  head.writeUInt16LE(DOS_DATE, 12)
  head.writeUInt32LE(crc, 14)
  head.writeUInt32LE(packed, 18)
  head.writeUInt32LE(size, 22)
  head.writeUInt16LE(Buffer.byteLength(name), 26)
  return Buffer.concat([head, Buffer.from(name)])
}

const descriptor = ({ crc, packed, size }: Entry): Buffer => {
  const behind = Buffer.alloc(16)
  behind.writeUInt32LE(0x08074b50, 0)
  behind.writeUInt32LE(crc, 4)
  behind.writeUInt32LE(packed, 8)
  behind.writeUInt32LE(size, 12)
  return behind
}

const centralHeader = (entry: Entry): Buffer => {
  const head = Buffer.alloc(46)
  head.writeUInt32LE(0x02014b50, 0)
  head.writeUInt16LE(20, 4)
  head.writeUInt16LE(20, 6)
  head.writeUInt16LE(entry.flags, 8)
  head.writeUInt16LE(DEFLATED, 10)
  head.writeUInt16LE(DOS_DATE, 14)
  head.writeUInt32LE(entry.crc, 16)
  head.writeUInt32LE(entry.packed, 20)
  head.writeUInt32LE(entry.size, 24)
  head.writeUInt16LE(Buffer.byteLength(entry.name), 28)
  head.writeUInt32LE(entry.offset, 42)
  return Buffer.concat([head, Buffer.from(entry.name)])
}
