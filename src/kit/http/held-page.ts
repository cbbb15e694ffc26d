/** Beginning of an answer that is made piece by piece, and the rest of it. */
export interface HeldPage {
  /** Cursor of the next page, where the answer is small enough to be held until its end; else null. */
  nextCursor: string | null
  /** Read it to its end, or end it by `return`, which ends its source too. */
  body: AsyncIterable<Uint8Array>
}

/** Most bytes held of a page asked for by `limit`, to name the next one in a header. */
export const PAGE_BYTES = 2 * 1024 * 1024

/**
 * Reads the first chunk and up to `bytesMax` of further ones, so that an immediate failure occurs here, and a small
 * page is known whole. The chunks return the cursor of the next page. The signal ends them also where nobody reads on.
 */
export const holdPage = async (
  chunks: AsyncGenerator<Uint8Array, string | null>,
  bytesMax: number,
  signal?: AbortSignal,
): Promise<HeldPage> => {
  const held: Uint8Array[] = []
  let next = await chunks.next()
  for (let bytes = 0; !next.done; next = await chunks.next()) {
    held.push(next.value)
    bytes += next.value.byteLength
    if (bytes > bytesMax) break
  }
  const nextCursor = next.done ? next.value : null
  const end = async (): Promise<IteratorResult<Uint8Array>> => {
    held.length = 0
    await chunks.return(null)
    return { done: true, value: undefined }
  }
  signal?.addEventListener('abort', () => void end(), { once: true })
  // No generator: one that was never read would not pass `return` on.
  const iterator: AsyncIterator<Uint8Array> = {
    next: async () => {
      const value = held.shift()
      if (value !== undefined) return { done: false, value }
      const { done, value: chunk } = await chunks.next()
      return done ? { done, value: undefined } : { done: false, value: chunk }
    },
    return: end,
  }
  return { nextCursor, body: { [Symbol.asyncIterator]: () => iterator } }
}
