import type { FileStore } from '../../engines/file-store.ts'
import { Failure } from '../../kernel/errors.ts'
import type { Reply, RouteRequest } from '../http/route.ts'

/** A file as it is downloaded. It never changes under its id. */
export interface SentFile {
  _id: string
  /** Key in the file store. */
  key: string
  name: string
  contentType: string
}

/**
 * Answers a file as an attachment: whole, the part that `Range` asks for (RFC 9110, one range of bytes), or 304 to whoever
 * has it. No browser shows it in place of a page or takes it for another type.
 * @throws Failure not_found where the store has no such file
 */
export const sendFile = async (
  files: Pick<FileStore, 'get'>,
  { headers }: Pick<RouteRequest, 'headers'>,
  { _id, key, name, contentType }: SentFile,
): Promise<Reply> => {
  const etag = `"${_id}"`
  const common = {
    etag,
    'cache-control': 'private, no-cache',
    'accept-ranges': 'bytes',
  }
  if (namesTag(headers.get('if-none-match'), etag)) return { status: 304, raw: '', headers: common }
  const whole = {
    ...common,
    'content-type': contentType,
    'content-disposition': attachment(name),
    'content-security-policy': "default-src 'none'; sandbox",
  }
  const range = rangeOf(headers.get('range'))
  const ifRange = headers.get('if-range')
  const asked = ifRange === undefined || ifRange.trim() === etag ? range : undefined
  if (asked === undefined) {
    const { bytes, stream } = await found(files.get(key))
    return { headers: whole, stream, streamBytes: bytes }
  }
  return part(files, key, asked, whole)
}

/** From a byte on, or the last so many. */
type Asked = { from: number; to: number } | { last: number }

const part = async (
  files: Pick<FileStore, 'get'>,
  key: string,
  asked: Asked,
  headers: { [name: string]: string },
): Promise<Reply> => {
  const from = 'last' in asked ? await beginOfLast(files, key, asked.last) : asked.from
  const to = 'last' in asked ? Number.MAX_SAFE_INTEGER : asked.to
  // What S3 is asked for must not be beyond what it can count.
  const { bytes, stream } = await found(files.get(key, { from, to: Math.min(to, 2 ** 48) }))
  if (from >= bytes || ('last' in asked && asked.last === 0)) {
    await stream[Symbol.asyncIterator]().return?.()
    return outside(bytes)
  }
  const last = Math.min(to, bytes - 1)
  const contentRange = `bytes ${from}-${last}/${bytes}`
  return { status: 206, headers: { ...headers, 'content-range': contentRange }, stream, streamBytes: last - from + 1 }
}

const beginOfLast = async (files: Pick<FileStore, 'get'>, key: string, last: number): Promise<number> => {
  const { bytes, stream } = await found(files.get(key, { from: 0, to: 0 }))
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

/** Undefined for no range, several, or what is none: the whole file answers those. */
const rangeOf = (header: string | undefined): Asked | undefined => {
  const [, first = '', last = ''] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header?.trim() ?? '') ?? []
  if (first === '') return last === '' ? undefined : { last: Number(last) }
  const from = Number(first)
  if (last === '') return { from, to: Number.MAX_SAFE_INTEGER }
  return Number(last) < from ? undefined : { from, to: Number(last) }
}

const namesTag = (header: string | undefined, etag: string): boolean =>
  (header ?? '').split(',').some((one) => ['*', etag, `W/${etag}`].includes(one.trim()))

/** RFC 6266: for old clients in ASCII, for others as it is. */
const attachment = (name: string): string => {
  const ascii = name.replace(/[^\x20-\x7e]|["\\%]/g, '_')
  const encoded = encodeURIComponent(name).replace(
    /['()*]/g,
    (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`,
  )
  return `attachment; filename="${ascii}"; filename*=UTF-8''${encoded}`
}
