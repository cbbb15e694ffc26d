import { Readable } from 'node:stream'
import { promisify } from 'node:util'
import { brotliCompress, constants } from 'node:zlib'

/** Blocks of points shrink to a quarter: a sixth of the time of gzip at its default, and two thirds of its bytes. */
const QUALITY = 2
const PARTS_BYTES = 64 * 1024

const compress = promisify(brotliCompress)

/** Data that crosses no network is not worth compressing. */
export const isSameMachine = (hostname: string): boolean => /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname)

/**
 * The body of an insert. Another thread compresses it in one go: in the client's parts of 16 KiB each part waits for a
 * turn of the event loop, which is some 50 of them for a block of 50,000 points.
 */
export const insertBody = async (
  block: Uint8Array,
  isCompressed: boolean,
): Promise<{ values: Readable; http_headers?: { [name: string]: string } }> => {
  if (!isCompressed) return { values: Readable.from([block], { objectMode: false }) }
  const params = { [constants.BROTLI_PARAM_QUALITY]: QUALITY, [constants.BROTLI_PARAM_SIZE_HINT]: block.byteLength }
  const chunkSize = Math.max(PARTS_BYTES, block.byteLength >> 1)
  const bytes = await compress(block, { params, chunkSize })
  return { values: Readable.from([bytes], { objectMode: false }), http_headers: { 'Content-Encoding': 'br' } }
}
