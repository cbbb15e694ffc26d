import { Buffer } from 'node:buffer'
import type { KeptAnswer } from '../kit/http/idempotency.ts'

type Piece = Uint8Array | string

/** Most bytes of a streamed answer that are kept with an Idempotency-Key: its base64 fits; a longer one is made anew. */
const BYTES_MAX = 380 * 1024

/** Told once, before the client has the end: the whole, or undefined where it broke off or is longer than may be kept. */
export type StreamEnded = (kept: KeptAnswer | undefined) => Promise<void>

/**
 * A stream of which the first piece is there: one that fails before is a failure, and no empty answer that a client
 * would take for the whole. @throws what the stream throws
 */
export const begunStream = async (
  { status, headers, stream }: Omit<KeptAnswer, 'body'> & { stream: AsyncIterable<Piece> },
  ended?: StreamEnded,
): Promise<AsyncIterable<Piece>> => {
  const pieces = stream[Symbol.asyncIterator]()
  let first: IteratorResult<Piece> | undefined = await pieces.next()
  let whole: Buffer[] | undefined = ended === undefined ? undefined : []
  let bytes = 0
  const keep = (piece: Piece): void => {
    bytes += Buffer.byteLength(piece)
    if (bytes > BYTES_MAX) whole = undefined
    else whole?.push(Buffer.from(piece as string))
  }
  const end = async (isWhole: boolean): Promise<void> => {
    const tell = ended
    ended = undefined
    const body = isWhole && whole !== undefined ? Buffer.concat(whole).toString('base64') : undefined
    await tell?.(body === undefined ? undefined : { status, headers, body, isBase64: true })
  }
  const next = async (): Promise<IteratorResult<Piece>> => {
    const one = first ?? (await pieces.next())
    first = undefined
    if (one.done === true) await end(true)
    else keep(one.value)
    return one
  }
  const iterator: AsyncIterator<Piece> = {
    next: () =>
      next().catch(async (error: unknown) => {
        await end(false)
        throw error
      }),
    return: async () => {
      await pieces.return?.()
      await end(false)
      return { done: true, value: undefined }
    },
  }
  return { [Symbol.asyncIterator]: () => iterator }
}
