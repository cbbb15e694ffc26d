/** Longest message with which ClickHouse ends a broken answer; newer servers cut theirs at 16 KiB. */
const TAIL_BYTES = 16_384 + 256
const MARKER = '__exception__'
/** Text that servers before 25.11 write into an answer that they cannot finish: the exception, and nothing after it. */
const UNTAGGED = /Code: (\d+)\. DB::Exception: [\s\S]*\(version [\d.]+[^)\n]*(?:\([^)\n]*\))?\)\s*$/

export interface QueryException {
  message: string
  /** ClickHouse's number, where the message tells it. */
  code: number | undefined
}

/** An answer that ended with an exception of the server instead of its last rows. */
export class BrokenAnswer extends Error {
  readonly code: number | undefined

  constructor({ message, code }: QueryException) {
    super(message)
    this.code = code
  }
}

/**
 * The bytes of an answer, without the exception that the server may have written at its end. HTTP has already said 200,
 * so the end of each answer is held back until it is known to be data.
 * @param tag value of `X-ClickHouse-Exception-Tag`, which newer servers mark such an exception with.
 * @throws BrokenAnswer
 */
export async function* checkedBody(
  body: AsyncIterable<Uint8Array>,
  tag: string | undefined,
): AsyncGenerator<Uint8Array> {
  let held: Uint8Array = new Uint8Array(0)
  try {
    for await (const chunk of body) {
      if (chunk.byteLength >= TAIL_BYTES) {
        if (held.byteLength > 0) yield held
        yield chunk.subarray(0, chunk.byteLength - TAIL_BYTES)
        held = chunk.subarray(chunk.byteLength - TAIL_BYTES)
        continue
      }
      const joined = Buffer.concat([held, chunk])
      const ready = joined.byteLength - TAIL_BYTES
      if (ready > 0) yield joined.subarray(0, ready)
      held = ready > 0 ? joined.subarray(ready) : joined
    }
  } catch (error) {
    const exception = exceptionIn(held, tag)
    throw exception === undefined ? error : new BrokenAnswer(exception)
  }
  const exception = exceptionIn(held, tag)
  if (exception !== undefined) throw new BrokenAnswer(exception)
  if (held.byteLength > 0) yield held
}

/** The exception at the end of an answer, if there is one. */
export const exceptionIn = (tail: Uint8Array, tag: string | undefined): QueryException | undefined => {
  const text = Buffer.from(tail.buffer, tail.byteOffset, tail.byteLength).toString('latin1')
  if (tag === undefined) {
    const [message, code] = UNTAGGED.exec(text) ?? []
    return message === undefined ? undefined : { message, code: Number(code) }
  }
  const begin = text.lastIndexOf(`${MARKER}\r\n${tag}`)
  if (begin < 0) return undefined
  const message = text.slice(begin + MARKER.length + 2 + tag.length).trim()
  const [, code] = /Code: (\d+)\./.exec(message) ?? []
  return { message, code: code === undefined ? undefined : Number(code) }
}
