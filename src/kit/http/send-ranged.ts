import { Failure } from '../../kernel/errors.ts'
import type { Answer, AnswerHeader, Reply, RouteRequest } from './route.ts'

/** Bytes that can be read from any offset. */
export interface Ranged {
  /** Undefined where they are gone; `bytes` is the total number, whichever part is read. `to` is inclusive. */
  get(range?: { from: number; to: number }): Promise<{ bytes: number; stream: AsyncIterable<Uint8Array> } | undefined>
}

/** Headers about the bytes, with each answer. */
export interface RangedHeaders {
  /** Strong, with its quotes; different for other bytes. */
  etag: string
  cacheControl: string
  contentType: string
  /** Further headers of the bytes themselves. */
  more?: { [name: string]: string }
}

/**
 * Answers bytes whole, the part that `Range` requests (RFC 9110, one range of bytes), or 304 to a client that has them.
 * @throws Failure not_found where they are gone
 */
export const sendRanged = async (
  source: Ranged,
  { headers }: Pick<RouteRequest, 'headers'>,
  { etag, cacheControl, contentType, more }: RangedHeaders,
): Promise<Reply> => {
  const common = { etag, 'cache-control': cacheControl, 'accept-ranges': 'bytes' }
  if (namesTag(headers.get('if-none-match'), etag)) return { status: 304, raw: '', headers: common }
  const whole = { ...common, 'content-type': contentType, ...more }
  const range = rangeOf(headers.get('range'))
  const ifRange = headers.get('if-range')
  const asked = ifRange === undefined || ifRange.trim() === etag ? range : undefined
  if (asked === undefined) {
    const { bytes, stream } = await found(source.get())
    return { headers: whole, stream, streamBytes: bytes }
  }
  return part(source, asked, whole)
}

/** A range of bytes, or the last few. */
type Asked = { from: number; to: number } | { last: number }

const part = async (source: Ranged, asked: Asked, headers: { [name: string]: string }): Promise<Reply> => {
  const from = 'last' in asked ? await beginOfLast(source, asked.last) : asked.from
  const to = 'last' in asked ? Number.MAX_SAFE_INTEGER : asked.to
  // S3 must not be asked for a range beyond the numbers that it can count.
  const { bytes, stream } = await found(source.get({ from, to: Math.min(to, 2 ** 48) }))
  if (from >= bytes || ('last' in asked && asked.last === 0)) {
    await stream[Symbol.asyncIterator]().return?.()
    return outside(bytes)
  }
  const last = Math.min(to, bytes - 1)
  const contentRange = `bytes ${from}-${last}/${bytes}`
  return { status: 206, headers: { ...headers, 'content-range': contentRange }, stream, streamBytes: last - from + 1 }
}

const beginOfLast = async (source: Ranged, last: number): Promise<number> => {
  const { bytes, stream } = await found(source.get({ from: 0, to: 0 }))
  await stream[Symbol.asyncIterator]().return?.()
  return Math.max(0, bytes - last)
}

const outside = (bytes: number): Reply => ({
  status: 416,
  headers: { 'content-range': `bytes */${bytes}` },
  body: { status: false, message: `/Range must begin within the ${bytes} bytes of the file`, code: 'invalid' },
})

const found = async <File>(finding: Promise<File | undefined>): Promise<File> => {
  const file = await finding
  if (file === undefined) throw new Failure('not_found')
  return file
}

/** Undefined for no range, several, or an invalid one: the whole file answers those. */
const rangeOf = (header: string | undefined): Asked | undefined => {
  const [, first = '', last = ''] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header?.trim() ?? '') ?? []
  if (first === '') return last === '' ? undefined : { last: Number(last) }
  const from = Number(first)
  if (last === '') return { from, to: Number.MAX_SAFE_INTEGER }
  return Number(last) < from ? undefined : { from, to: Number(last) }
}

const namesTag = (header: string | undefined, etag: string): boolean =>
  (header ?? '').split(',').some((one) => ['*', etag, `W/${etag}`].includes(one.trim()))

/** Answers of a route that sends ranged bytes; `headers` are documented beside those of the bytes. */
export const rangedAnswers = (
  what: string,
  contentType: string,
  headers: readonly AnswerHeader[] = [],
): { [status: number]: Answer } => ({
  200: { description: what, contentType, headers: ['ETag', ...headers, 'Accept-Ranges'] },
  206: {
    description: 'The part that `Range` asks for.',
    contentType,
    headers: ['ETag', ...headers, 'Accept-Ranges', 'Content-Range'],
  },
  304: { description: 'It is the file that `If-None-Match` names.' },
  416: {
    description: '`Range` begins behind the end of the file.',
    headers: ['Content-Range'],
    schema: {
      type: 'object',
      properties: { status: { const: false }, message: { type: 'string' }, code: { const: 'invalid' } },
      required: ['status', 'message', 'code'],
    },
    example: { status: false, message: '/Range must begin within the 70 bytes of the file', code: 'invalid' },
  },
})
