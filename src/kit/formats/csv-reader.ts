import { Readable } from 'node:stream'
import iconv from 'iconv-lite'
import { CsvError, parse } from 'csv-parse'
import { unharmed } from './csv-writer.ts'
import { type Encoding, detectEncoding } from './detect-encoding.ts'
import { FileFault, type TableLimits, type TableRow } from './table-cells.ts'

const DELIMITERS = [',', ';', '\t', '|'] as const
export type Delimiter = (typeof DELIMITERS)[number]

export interface CsvForm {
  encoding: Encoding
  delimiter: Delimiter
  /** Lines before the first row that only describe the format of the file. */
  hintLines: number
}

const SNIFFED_BYTES = 64 * 1024
const SNIFFED_LINES = 100
const PIECE_BYTES = 64 * 1024
/** A longer row is an unclosed quote, or no table. */
const ROW_CHARS_MAX = 1024 * 1024

/** The format of a CSV file, by its own bytes. @throws FileFault for a file that is no text */
export const csvFormOf = (pieces: readonly Uint8Array[]): CsvForm => {
  const encoding = detectEncoding(pieces)
  const head = Buffer.concat(pieces.slice(0, 2)).subarray(encoding.bomBytes, SNIFFED_BYTES)
  const text = iconv.decode(head, encoding.name)
  if (text.includes('\0')) throw new FileFault('unsupported_type', 'The file is neither a spreadsheet nor text.')
  if (/^\s*(<!doctype|<html|<\?xml|%PDF-|\{\\rtf)/i.test(text))
    throw new FileFault('unsupported_type', 'The file is a document, not a table: save it as .csv or .xlsx.')
  const [, hint] = /^sep=([,;|\t])\r?\n/.exec(text) ?? []
  if (hint !== undefined) return { encoding, delimiter: hint as Delimiter, hintLines: 1 }
  return { encoding, delimiter: delimiterOf(text), hintLines: 0 }
}

/** The delimiter that divides most lines alike, quotes looked at. */
const delimiterOf = (text: string): Delimiter => {
  const counts = countsOf(text)
  let best: { delimiter: Delimiter; score: number } = { delimiter: ',', score: 0 }
  DELIMITERS.forEach((delimiter, at) => {
    const found = counts.map((line) => line[at]).filter((count) => count > 0)
    const score =
      found.length === 0 ? 0 : (shareOfMost(found) * found.length * Math.log2(1 + median(found))) / counts.length
    if (score > best.score) best = { delimiter, score }
  })
  return best.delimiter
}

/** Counts, for each line that is not blank, of each delimiter outside of quotes. */
const countsOf = (text: string): number[][] => {
  const lines: number[][] = []
  let line = DELIMITERS.map(() => 0)
  let [isQuoted, isBlank] = [false, true]
  for (let i = 0; i < text.length && lines.length < SNIFFED_LINES; i++) {
    const char = text[i]
    if (char === '"') isQuoted = !isQuoted
    if (!isQuoted && (char === '\n' || char === '\r')) {
      if (!isBlank) lines.push(line)
      line = DELIMITERS.map(() => 0)
      isBlank = true
      continue
    }
    isBlank = false
    const at = isQuoted ? -1 : DELIMITERS.indexOf(char as Delimiter)
    if (at >= 0) line[at]++
  }
  if (!isBlank && lines.length < SNIFFED_LINES) lines.push(line)
  return lines
}

const median = (values: readonly number[]): number => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]

const shareOfMost = (values: readonly number[]): number => {
  const counts = new Map<number, number>()
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1)
  return Math.max(...counts.values()) / values.length
}

/** Rows of a CSV file, blank ones left out, each with the number that a spreadsheet gives it. @throws FileFault */
export async function* readCsv(
  pieces: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
  { encoding, delimiter, hintLines }: CsvForm,
  { rowsMax, columnsMax, cellCharsMax }: TableLimits,
): AsyncGenerator<TableRow> {
  const parser = parse({
    delimiter,
    record_delimiter: ['\r\n', '\n', '\r'],
    relax_column_count: true,
    relax_quotes: true,
    max_record_size: ROW_CHARS_MAX,
  })
  const source = Readable.from(decoded(pieces, encoding))
  source.on('error', (error) => parser.destroy(error)).pipe(parser)
  let [row, found] = [-hintLines, 0]
  try {
    for await (const cells of parser as AsyncIterable<string[]>) {
      row++
      if (row < 1 || cells.every((cell) => cell.trim() === '')) continue
      if (++found > rowsMax) throw new FileFault('too_large', `The file has more than ${rowsMax} rows.`)
      while (cells.length > columnsMax && cells[cells.length - 1].trim() === '') cells.pop()
      if (cells.length > columnsMax) throw new FileFault('too_large', `Row ${row} has more than ${columnsMax} columns.`)
      if (cells.some((cell) => cell.length > cellCharsMax))
        throw new FileFault('too_large', `Row ${row} has a cell of more than ${cellCharsMax} characters.`)
      yield { row, cells: cells.map(unharmed) }
    }
  } catch (error) {
    throw error instanceof CsvError ? faultOf(error, Number(error.records ?? row) + 1 - hintLines) : error
  } finally {
    source.destroy()
    parser.destroy()
  }
}

const faultOf = ({ code, message }: CsvError, row: number): FileFault => {
  if (code === 'CSV_MAX_RECORD_SIZE')
    return new FileFault('too_large', `Row ${row} is longer than ${ROW_CHARS_MAX} characters; is a quote not closed?`)
  if (code === 'CSV_QUOTE_NOT_CLOSED')
    return new FileFault('invalid', `A quote that begins in row ${row} is not closed.`)
  return new FileFault('invalid', `Row ${row} cannot be read: ${message}`)
}

async function* decoded(
  pieces: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
  { name, bomBytes }: Encoding,
): AsyncGenerator<string> {
  const decoder = iconv.getDecoder(name, { stripBOM: false })
  let skip = bomBytes
  for await (const piece of pieces)
    for (let from = 0; from < piece.length; from += PIECE_BYTES) {
      const part = Buffer.from(piece.buffer, piece.byteOffset + from, Math.min(PIECE_BYTES, piece.length - from))
      const text = decoder.write(part.subarray(skip))
      skip = Math.max(0, skip - part.length)
      if (text.length > 0) yield text
    }
  const last = decoder.end()
  if (last !== undefined && last.length > 0) yield last
}
