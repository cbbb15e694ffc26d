import type { HistoryFormat } from '../history-store.ts'

/** Bytes of the header that the engine in process repeats before each chunk of an answer. */
export const headerLength = (format: HistoryFormat, bytes: Uint8Array): number => {
  if (format === 'CSVWithNames') return bytes.indexOf(10) + 1
  if (format !== 'RowBinaryWithNamesAndTypes') return 0
  let at = 0
  const length = (): number => {
    let value = 0
    for (let shift = 0; ; shift += 7) {
      const byte = bytes[at++]
      value |= (byte & 127) << shift
      if (byte < 128) return value
    }
  }
  for (let strings = length() * 2; strings > 0; strings--) {
    const size = length()
    at += size
  }
  return at
}
