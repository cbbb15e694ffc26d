import { analyse } from 'chardet'

/** Name of an encoding, and the number of leading bytes that declare it. */
export interface Encoding {
  name: string
  bomBytes: number
}

const SAMPLE_BYTES = 64 * 1024
/** Distinguished from Western text by the bytes that can occur, not by their frequency. */
const DISTINCT = new Set(['Big5', 'GB18030', 'Shift_JIS', 'EUC-JP', 'EUC-KR', 'windows-1251', 'KOI8-R'])
const CONFIDENCE_MIN = 60

/** The encoding of a text: by its byte order mark, else by all of its bytes. */
export const detectEncoding = (pieces: readonly Uint8Array[]): Encoding => {
  const head = Buffer.concat(pieces.slice(0, 2).map((piece) => piece.subarray(0, SAMPLE_BYTES)))
  if (head[0] === 0xef && head[1] === 0xbb && head[2] === 0xbf) return { name: 'UTF-8', bomBytes: 3 }
  if (head[0] === 0xff && head[1] === 0xfe) return { name: 'UTF-16LE', bomBytes: 2 }
  if (head[0] === 0xfe && head[1] === 0xff) return { name: 'UTF-16BE', bomBytes: 2 }
  const wide = wideOf(head)
  if (wide !== undefined) return { name: wide, bomBytes: 0 }
  if (isUtf8(pieces)) return { name: 'UTF-8', bomBytes: 0 }
  const sample = sampleOf(pieces)
  const [best] = analyse(sample)
  if (best !== undefined && DISTINCT.has(best.name) && best.confidence >= CONFIDENCE_MIN)
    return { name: best.name, bomBytes: 0 }
  // Latin-1 has no characters where Windows-1252 has quotes, dashes and the euro.
  const isWindows = sample.some((byte) => byte >= 0x80 && byte <= 0x9f)
  return { name: isWindows ? 'windows-1252' : 'ISO-8859-1', bomBytes: 0 }
}

/** UTF-16 without a mark: of Western text every other byte is zero. */
const wideOf = (head: Buffer): string | undefined => {
  let [even, odd] = [0, 0]
  for (let i = 0; i < head.length; i++) if (head[i] === 0) i % 2 === 0 ? even++ : odd++
  const many = head.length * 0.2
  if (odd > many && even < odd / 10) return 'UTF-16LE'
  return even > many && odd < even / 10 ? 'UTF-16BE' : undefined
}

const isUtf8 = (pieces: readonly Uint8Array[]): boolean => {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  try {
    for (const piece of pieces) decoder.decode(piece, { stream: true })
    decoder.decode()
    return true
  } catch {
    return false
  }
}

/** The part with the first letters beyond ASCII. */
const sampleOf = (pieces: readonly Uint8Array[]): Buffer => {
  const at = pieces.findIndex((piece) => piece.some((byte) => byte >= 0x80))
  const own = pieces[Math.max(0, at)] ?? new Uint8Array()
  const from = Math.max(0, own.findIndex((byte) => byte >= 0x80) - SAMPLE_BYTES / 2)
  return Buffer.from(own.subarray(from, from + SAMPLE_BYTES))
}
