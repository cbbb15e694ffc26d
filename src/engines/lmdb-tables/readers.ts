import type { Database } from 'lmdb'
import type { TableEnvironment } from './layout.ts'

/**
 * Views of the databases that a question walks, which make no object for each entry: a walk over 100,000 entries
 * takes 10 to 20 ms instead of 80.
 */
export interface TableReaders {
  /** Row numbers in the order of ids. */
  rows: Database<number, Uint8Array>
  /** Ids and stored rows; a row's bytes count until the next step of the walk. */
  wholeRows: Database<Buffer, Uint8Array | string>
  /** Row numbers in the order of a field. */
  order: Database<number, Uint8Array>
  /** Chunk numbers and chunks; a chunk's bytes count until the next step of the walk. */
  postings: Database<Buffer, Uint8Array | number>
  /** Whole keys, a character for each byte, and chunks. */
  postingKeys: Database<Buffer, Uint8Array | string>
}

export const openTableReaders = ({ root }: TableEnvironment): TableReaders => ({
  rows: root.openDB({ name: 'rows', ...numbersAlone } as { name: string }) as Database<number, Uint8Array>,
  wholeRows: root.openDB({ name: 'rows', ...wholeRows } as { name: string }) as Database<Buffer, Uint8Array | string>,
  order: root.openDB({ name: 'order', ...numbersAlone } as { name: string }) as Database<number, Uint8Array>,
  postings: root.openDB({ name: 'postings', ...chunks } as { name: string }) as Database<Buffer, Uint8Array | number>,
  postingKeys: root.openDB({ name: 'postings', ...wholeKeys } as { name: string }) as Database<
    Buffer,
    Uint8Array | string
  >,
})

const writeKey = (key: Uint8Array, target: Buffer, start: number): number => {
  target.set(key, start)
  return start + key.length
}

const readOnly = (): never => {
  throw new Error('Readers do not write.')
}

const numbersAlone = {
  keyEncoder: { writeKey, readKey: () => 0 },
  encoder: { encode: readOnly, decode: (bytes: Buffer) => bytes.readUInt32BE(0) },
}

const chunks = {
  keyEncoder: { writeKey, readKey: (source: Buffer, _start: number, end: number) => source.readUInt32BE(end - 4) },
  encoder: { encode: readOnly, decode: (bytes: Buffer) => bytes },
}

const wholeKeys = {
  ...chunks,
  keyEncoder: {
    writeKey,
    readKey: (source: Buffer, start: number, end: number) => source.toString('latin1', start, end),
  },
}

/** Bytes of a space's number before the id in a key of `rows`. */
const SPACE_BYTES = 8

const wholeRows = {
  ...chunks,
  keyEncoder: {
    writeKey,
    readKey: (source: Buffer, start: number, end: number) => source.toString('utf8', start + SPACE_BYTES, end),
  },
}
