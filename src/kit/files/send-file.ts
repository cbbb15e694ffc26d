import type { FileStore } from '../../engines/file-store.ts'
import type { Reply, RouteRequest } from '../http/route.ts'
import { sendRanged } from '../http/send-ranged.ts'

/** A file as it is downloaded. It never changes under its id. */
export interface SentFile {
  _id: string
  key: string
  name: string
  contentType: string
}

/**
 * Answers a file as an attachment, whole or in part. No browser shows it in place of a page or takes it for another type.
 * @throws Failure not_found where the store has no such file
 */
export const sendFile = (
  files: Pick<FileStore, 'get'>,
  request: Pick<RouteRequest, 'headers'>,
  { _id, key, name, contentType }: SentFile,
): Promise<Reply> =>
  sendRanged({ get: (range) => files.get(key, range) }, request, {
    etag: `"${_id}"`,
    cacheControl: 'private, no-cache',
    contentType,
    more: { 'content-disposition': attachment(name), 'content-security-policy': "default-src 'none'; sandbox" },
  })

/** RFC 6266: in ASCII for old clients, unchanged for others. */
const attachment = (name: string): string => {
  const ascii = name.replace(/[^\x20-\x7e]|["\\%]/g, '_')
  const encoded = encodeURIComponent(name).replace(
    /['()*]/g,
    (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`,
  )
  return `attachment; filename="${ascii}"; filename*=UTF-8''${encoded}`
}
