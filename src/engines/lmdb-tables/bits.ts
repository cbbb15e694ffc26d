/*
 * Sets of row numbers, in chunks of 4096. A stored chunk is a sorted list of 2-byte offsets while that is shorter than
 * the 512 bytes of a bitmap (the idea of Roaring bitmaps, Chambi et al. 2016).
 */
const CHUNK_BITS = 12
const CHUNK_ROWS = 1 << CHUNK_BITS
const BITMAP_BYTES = CHUNK_ROWS / 8
const WORDS = CHUNK_ROWS / 32
const LIST_MAX = BITMAP_BYTES / 2 - 1

export const chunkOf = (no: number): number => no >>> CHUNK_BITS
export const offsetOf = (no: number): number => no & (CHUNK_ROWS - 1)
/** The first chunk all of whose rows have this number or a higher one. */
export const firstWholeChunk = (no: number): number => Math.ceil(no / CHUNK_ROWS)

const oneRow = Buffer.alloc(2)

/** One chunk changed by a transaction. */
export class Chunk {
  private list: number[] | undefined = []
  private bitmap: Buffer | undefined

  static parse(bytes: Buffer | undefined): Chunk {
    const chunk = new Chunk()
    if (bytes === undefined) return chunk
    if (bytes.length === BITMAP_BYTES) {
      chunk.list = undefined
      chunk.bitmap = Buffer.from(bytes)
    } else {
      for (let at = 0; at < bytes.length; at += 2) chunk.list?.push(bytes.readUInt16BE(at))
    }
    return chunk
  }

  /** With one row. */
  static of(offset: number): Chunk {
    const chunk = new Chunk()
    chunk.list = [offset]
    return chunk
  }

  /** A chunk with one row as it is stored, in memory that the next one takes over. */
  static bytesOf(offset: number): Buffer {
    oneRow.writeUInt16BE(offset)
    return oneRow
  }

  add(offset: number): void {
    if (this.bitmap !== undefined) {
      this.bitmap[offset >> 3] = (this.bitmap[offset >> 3] as number) | (1 << (offset & 7))
      return
    }
    const list = this.list as number[]
    const at = placeOf(list, offset)
    if (list[at] === offset) return
    list.splice(at, 0, offset)
    if (list.length > LIST_MAX) this.toBitmap()
  }

  remove(offset: number): void {
    if (this.bitmap !== undefined) {
      this.bitmap[offset >> 3] = (this.bitmap[offset >> 3] as number) & ~(1 << (offset & 7))
      return
    }
    const list = this.list as number[]
    const at = placeOf(list, offset)
    if (list[at] === offset) list.splice(at, 1)
  }

  /** Undefined when it is empty. */
  serialize(): Buffer | undefined {
    if (this.bitmap !== undefined) {
      const left = offsetsOf(this.bitmap)
      if (left.length > LIST_MAX) return this.bitmap
      this.list = left
      this.bitmap = undefined
    }
    const list = this.list as number[]
    if (list.length === 0) return undefined
    const bytes = Buffer.allocUnsafe(list.length * 2)
    for (let at = 0; at < list.length; at += 1) bytes.writeUInt16BE(list[at] as number, at * 2)
    return bytes
  }

  private toBitmap(): void {
    const list = this.list as number[]
    this.list = undefined
    this.bitmap = Buffer.alloc(BITMAP_BYTES)
    for (const offset of list) this.add(offset)
  }
}

// New rows have the highest numbers, so the end is tried first.
const placeOf = (list: readonly number[], offset: number): number => {
  let high = list.length
  if (high === 0 || (list[high - 1] as number) < offset) return high
  let low = 0
  while (low < high) {
    const middle = (low + high) >> 1
    if ((list[middle] as number) < offset) low = middle + 1
    else high = middle
  }
  return low
}

const offsetsOf = (bitmap: Buffer): number[] => {
  const offsets: number[] = []
  for (let byte = 0; byte < BITMAP_BYTES; byte += 1) {
    const bits = bitmap[byte] as number
    for (let bit = 0; bits >> bit !== 0; bit += 1) if (((bits >> bit) & 1) === 1) offsets.push(byte * 8 + bit)
  }
  return offsets
}

/** The bits of a chunk as they are stored, and in words for operations on all of them. */
interface Bits {
  bytes: Uint8Array
  words: Uint32Array
}

const newBits = (): Bits => {
  const words = new Uint32Array(WORDS)
  return { bytes: new Uint8Array(words.buffer), words }
}

/** Target of a copy of a stored bitmap. */
const copied = newBits()

/** A set of row numbers in memory, for one question. */
export class RowSet {
  private readonly chunks = new Map<number, Bits>()

  addChunk(chunk: number, bytes: Buffer): void {
    const bits = this.bitsOf(chunk)
    if (bytes.length === BITMAP_BYTES) {
      copied.bytes.set(bytes.subarray(0, BITMAP_BYTES))
      for (let word = 0; word < WORDS; word += 1) bits.words[word] |= copied.words[word]
      return
    }
    for (let at = 0; at < bytes.length; at += 2) set(bits, (bytes[at] << 8) | bytes[at + 1])
  }

  add(no: number): void {
    set(this.bitsOf(chunkOf(no)), offsetOf(no))
  }

  remove(no: number): void {
    const bits = this.chunks.get(chunkOf(no))
    const offset = offsetOf(no)
    if (bits !== undefined) bits.bytes[offset >> 3] &= ~(1 << (offset & 7))
  }

  has(no: number): boolean {
    const bits = this.chunks.get(chunkOf(no))
    if (bits === undefined) return false
    const offset = offsetOf(no)
    return ((bits.bytes[offset >> 3] >> (offset & 7)) & 1) === 1
  }

  /** Keeps the rows that the other set has too. */
  keep(other: RowSet): void {
    for (const [chunk, { words }] of this.chunks) {
      const others = other.chunks.get(chunk)
      if (others === undefined) this.chunks.delete(chunk)
      else for (let word = 0; word < WORDS; word += 1) words[word] &= others.words[word]
    }
  }

  /** Drops the rows of the other set. */
  drop(other: RowSet): void {
    for (const [chunk, others] of other.chunks) {
      const words = this.chunks.get(chunk)?.words
      if (words === undefined) continue
      for (let word = 0; word < WORDS; word += 1) words[word] &= ~others.words[word]
    }
  }

  countIn(chunk: number, bytes: Buffer): number {
    const bits = this.chunks.get(chunk)
    if (bits === undefined) return 0
    let count = 0
    if (bytes.length === BITMAP_BYTES) {
      copied.bytes.set(bytes.subarray(0, BITMAP_BYTES))
      for (let word = 0; word < WORDS; word += 1) count += popcount(bits.words[word] & copied.words[word])
      return count
    }
    for (let at = 0; at < bytes.length; at += 2) {
      const offset = (bytes[at] << 8) | bytes[at + 1]
      count += (bits.bytes[offset >> 3] >> (offset & 7)) & 1
    }
    return count
  }

  get size(): number {
    let size = 0
    for (const { words } of this.chunks.values())
      for (let word = 0; word < WORDS; word += 1) size += popcount(words[word])
    return size
  }

  get bytes(): number {
    return this.chunks.size * (BITMAP_BYTES + 300)
  }

  *[Symbol.iterator](): Generator<number> {
    for (const [chunk, { bytes, words }] of this.chunks) {
      for (let at = 0; at < BITMAP_BYTES; at += 1) {
        if ((at & 3) === 0 && words[at >> 2] === 0) {
          at += 3
          continue
        }
        for (let bits = bytes[at]; bits !== 0; bits &= bits - 1)
          yield chunk * CHUNK_ROWS + at * 8 + 31 - Math.clz32(bits & -bits)
      }
    }
  }

  private bitsOf(chunk: number): Bits {
    let bits = this.chunks.get(chunk)
    if (bits === undefined) {
      bits = newBits()
      this.chunks.set(chunk, bits)
    }
    return bits
  }
}

const set = ({ bytes }: Bits, offset: number): void => {
  bytes[offset >> 3] |= 1 << (offset & 7)
}

const popcount = (word: number): number => {
  let bits = word - ((word >>> 1) & 0x55555555)
  bits = (bits & 0x33333333) + ((bits >>> 2) & 0x33333333)
  return (((bits + (bits >>> 4)) & 0x0f0f0f0f) * 0x01010101) >>> 24
}
