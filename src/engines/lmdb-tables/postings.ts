import { Chunk, chunkOf, firstWholeChunk, offsetOf } from './bits.ts'
import { ALL_FIELD, KEY_BYTES_MAX, TEXT_FIELD, type TableEnvironment, writeEquality } from './layout.ts'

/** Value under which an index of equality or of words lists rows. */
export type Term = string | number | boolean

/** More than there are chunks. */
const CHUNKS = 2 ** 20

/** Rows of one space that a transaction adds to terms, and removes. */
export class Postings {
  private readonly env: TableEnvironment
  private readonly space: Buffer
  /** By field and chunk. A chunk with one row is that row's offset alone, as for most terms. */
  private readonly fields = new Map<number, Map<Term, Chunk | number>>()
  /** First chunk in which nothing was stored before the transaction. */
  private freshFrom = CHUNKS

  constructor(env: TableEnvironment, space: Buffer) {
    this.env = env
    this.space = space
  }

  /** Declares that no row has this number or a higher one. */
  endsBefore(no: number): void {
    this.freshFrom = firstWholeChunk(no)
  }

  post(field: number, term: Term, no: number, on: boolean): void {
    const chunkNo = chunkOf(no)
    const offset = offsetOf(no)
    const terms = this.termsOf(field * CHUNKS + chunkNo)
    let chunk = terms.get(term)
    if (chunk === undefined && on && chunkNo >= this.freshFrom) {
      terms.set(term, offset)
      return
    }
    if (typeof chunk !== 'object') {
      chunk = chunk === undefined ? this.stored(field, term, chunkNo) : Chunk.of(chunk)
      terms.set(term, chunk)
    }
    if (on) chunk.add(offset)
    else chunk.remove(offset)
  }

  /** Adds the row to the terms that are new in its value, and removes it from those that are gone. */
  repost(field: number, no: number, before: readonly Term[], now: readonly Term[]): void {
    for (const term of lacking(before, now)) this.post(field, term, no, false)
    for (const term of lacking(now, before)) this.post(field, term, no, true)
  }

  flush(): void {
    const { postings } = this.env
    for (const [at, terms] of this.fields) {
      const [field, chunkNo] = [Math.floor(at / CHUNKS), at % CHUNKS]
      for (const [term, chunk] of terms) {
        const key = postingKey(this.space, field, term, chunkNo)
        const bytes = typeof chunk === 'number' ? Chunk.bytesOf(chunk) : chunk.serialize()
        if (bytes === undefined) postings.removeSync(key)
        else postings.putSync(key, bytes)
      }
    }
  }

  private stored(field: number, term: Term, chunkNo: number): Chunk {
    return Chunk.parse(this.env.postings.getBinary(postingKey(this.space, field, term, chunkNo)))
  }

  private termsOf(at: number): Map<Term, Chunk | number> {
    let terms = this.fields.get(at)
    if (terms === undefined) {
      terms = new Map()
      this.fields.set(at, terms)
    }
    return terms
  }
}

/** Above this many, terms are looked up in a set. */
const SEARCHED_MAX = 16

const lacking = (terms: readonly Term[], others: readonly Term[]): readonly Term[] => {
  if (others.length === 0 || terms.length === 0) return terms
  const known = others.length > SEARCHED_MAX ? new Set(others) : undefined
  return terms.filter((term) => (known === undefined ? !others.includes(term) : !known.has(term)))
}

// The driver copies a key before it returns, so one buffer serves all.
const keyBytes = Buffer.alloc(KEY_BYTES_MAX)

const postingKey = (space: Buffer, field: number, term: Term, chunkNo: number): Buffer => {
  keyBytes.set(space, 0)
  keyBytes[space.length] = field
  const end = writeTerm(field, term, space.length + 1)
  keyBytes.writeUInt32BE(chunkNo, end)
  return keyBytes.subarray(0, end + 4)
}

const writeTerm = (field: number, term: Term, at: number): number => {
  if (field === ALL_FIELD) return at
  if (field !== TEXT_FIELD) return writeEquality(keyBytes, at, term)
  const end = at + keyBytes.write(term as string, at)
  keyBytes[end] = 0
  return end + 1
}
