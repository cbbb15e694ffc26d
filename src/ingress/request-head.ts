import { env } from 'node:process'
import type { HttpRequest } from 'uWebSockets.js'
import { Failure } from '../kernel/errors.ts'

/** Bytes of all header names and values; more is answered 431 here, and by uWebSockets.js beyond twice as much. */
const HEAD_BYTES_MAX = 16 * 1024

// uWebSockets.js reads its limit (4 KiB by default: too little for a cursor, or a browser with cookies) from the
// environment, once, when it is loaded. So this module has to be imported before it.
env.UWS_HTTP_MAX_HEADERS_SIZE ??= String(2 * HEAD_BYTES_MAX)

/** Headers of a request; `fault` is the reason why nothing after them may be read. */
export interface RequestHead {
  headers: ReadonlyMap<string, string>
  fault: Failure | undefined
}

/** Headers of which uWebSockets.js reads the first, where another hop may have read the last. */
const DECISIVE = new Set(['content-length', 'transfer-encoding', 'host'])
const LENGTH = /^\d{1,15}$/

/** Reads all headers. Repeated ones are joined by a comma, but for a length repeated unchanged. */
export const readHead = (req: HttpRequest): RequestHead => {
  const headers = new Map<string, string>()
  let bytes = 0
  let repeated: string | undefined
  req.forEach((name, value) => {
    bytes += name.length + value.length
    const before = headers.get(name)
    if (before === undefined) headers.set(name, value)
    else if (name !== 'content-length' || before !== value) {
      headers.set(name, `${before}, ${value}`)
      if (DECISIVE.has(name)) repeated = name
    }
  })
  return { headers, fault: faultOf(headers, bytes, repeated) }
}

const faultOf = (headers: RequestHead['headers'], bytes: number, repeated: string | undefined): Failure | undefined => {
  const malformed = (message: string): Failure => new Failure('invalid', { message })
  if (bytes > HEAD_BYTES_MAX)
    return new Failure('too_large', {
      status: 431,
      message: `The headers are larger than ${HEAD_BYTES_MAX} bytes.`,
    })
  if (repeated !== undefined) return malformed(`The request has several ${repeated} headers.`)
  const length = headers.get('content-length')
  if (length !== undefined && !LENGTH.test(length)) return malformed('Content-Length must be a number of bytes.')
  const encoding = headers.get('transfer-encoding')
  if (encoding === undefined) return undefined
  if (length !== undefined) return malformed('The request has both Content-Length and Transfer-Encoding.')
  return encoding.toLowerCase() === 'chunked' ? undefined : malformed('Transfer-Encoding must be chunked.')
}
