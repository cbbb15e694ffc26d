/** Length of the beginning of a file by which its type is found. */
export const HEAD_BYTES = 4_100

const UNKNOWN = 'application/octet-stream'

/** The media type of a file by its first bytes, whatever is declared. Text is text, whether a page or a script. */
export const contentTypeOf = async (head: Uint8Array): Promise<string> => {
  const { fileTypeFromBuffer } = await import('file-type')
  // The examination of a misleading file may fail: its type is then unknown.
  const found = await fileTypeFromBuffer(head).catch(() => undefined)
  return found?.mime ?? (isText(head) ? 'text/plain' : UNKNOWN)
}

export const isImage = (contentType: string): boolean => contentType.startsWith('image/')

/** UTF-8 without control characters; the last character may be cut. */
const isText = (head: Uint8Array): boolean => {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(head, { stream: true })
    return !/[\0-\x08\x0e-\x1a\x1c-\x1f]/.test(text)
  } catch {
    return false
  }
}
