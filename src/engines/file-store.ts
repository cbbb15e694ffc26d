import { Failure } from '../kernel/errors.ts'

/** Bytes `from` to `to`, both included, from 0; `to` beyond the end means the end. */
export interface ByteRange {
  from: number
  to: number
}

export interface FoundFile {
  /** Size of the whole file. */
  bytes: number
  /** The requested bytes, as read; ending the iteration releases the file. None where a range begins behind the end. */
  stream: AsyncIterable<Uint8Array>
}

export interface ListedFile {
  key: string
  bytes: number
  /** Time at which it was put, ms since the epoch by the engine's clock. */
  putAt: number
}

/**
 * Uploaded and generated files, by keys such as `logos/<organization>/<hash>`. Promises of every engine
 * (test/contracts/file-store.ts):
 * - A file is there whole or not at all, and durable when `put` resolves; putting it again replaces it as a whole. One
 *   that was too large, failed or was cut off leaves nothing that `get` or `list` shows.
 * - Nothing is held in memory but pieces: files pass through as streams.
 * - A key is parts of letters, digits, `.`, `_` and `-`, none of which begins with a dot, joined by slashes: client
 *   input never becomes a path.
 * - An engine that cannot do its work rejects with a `Failure` `engine_down`; it works again by itself when it can.
 */
export interface FileStore {
  /** Answers its number of bytes. @throws Failure too_large over `bytesMax`; the failure of the source. */
  put(key: string, source: AsyncIterable<Uint8Array>, bytesMax: number): Promise<number>
  /** Undefined where there is none. */
  get(key: string, range?: ByteRange): Promise<FoundFile | undefined>
  /** Deleting a missing file does nothing. */
  delete(key: string): Promise<void>
  /** Files whose keys begin with the prefix, in no order; files that come or go meanwhile may be among them. */
  list(prefix: string): AsyncIterable<ListedFile>
  ping(): Promise<void>
  close(): Promise<void>
}

const KEY = /^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}(\/[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}){0,7}$/

/** @throws Error for an invalid key: keys are made by the service, so it is a fault of the code. */
export const assertKey = (key: string): void => {
  if (!KEY.test(key)) throw new Error(`no key of a file: ${JSON.stringify(key)}`)
}

export const fileTooLarge = (bytesMax: number): Failure =>
  new Failure('too_large', { message: `The file is larger than ${bytesMax} bytes.` })
