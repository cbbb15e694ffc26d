/** As much of the beginning of a file as its type is found from. */
export const HEAD_BYTES = 4_100

const UNKNOWN = 'application/octet-stream'

/** The media type of a file by its first bytes, whatever its sender calls it. Text is text, whether it is a page or a script. */
export const contentTypeOf = async (head: Uint8Array): Promise<string> => {
  const { fileTypeFromBuffer } = await import('file-type')
  // Looking at a file that is made to mislead may fail: it is of no type that we know.
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
