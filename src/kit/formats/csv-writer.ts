import type { TableWriter, WrittenCell } from './table-writer.ts'
import { ZonedTime } from '../../kernel/zoned-time.ts'

export interface CsvOptions {
  header: readonly string[]
  /** Zone of times; default UTC. */
  timeZone?: string
  delimiter?: string
}

/**
 * Beginnings of a formula: spreadsheets pass over blanks before it, some take full-width signs too. Apostrophes before it
 * are the text's own.
 */
const FORMULA = /^'*(?:\s*[=+\-@＝＋－＠]|[\t\r\n])/

/** A text that a spreadsheet shows and does not run: an apostrophe is put before one that begins like a formula. */
export const harmless = (text: string): string => (FORMULA.test(text) ? `'${text}` : text)

/** The text that `harmless` was given: an export or a report of refused rows is read as what it was made from. */
export const unharmed = (cell: string): string =>
  cell.startsWith("'") && FORMULA.test(cell.slice(1)) ? cell.slice(1) : cell

/** CSV (RFC 4180) in UTF-8, with a line for the header. */
export const csvWriter = ({ header, timeZone = 'UTC', delimiter = ',' }: CsvOptions): TableWriter => {
  const zone = new ZonedTime(timeZone)
  const special = new RegExp(`["\\r\\n${delimiter === '|' ? '\\|' : delimiter}]|^\\s|\\s$`)
  const quoted = (text: string): string => (special.test(text) ? `"${text.replaceAll('"', '""')}"` : text)
  const cell = (value: WrittenCell): string => {
    if (value === null || value === undefined) return ''
    if (typeof value === 'string') return quoted(harmless(value))
    return value instanceof Date ? zone.text(value.getTime()) : String(value)
  }
  const lines = (rows: readonly (readonly WrittenCell[])[]): string => {
    let text = ''
    for (const cells of rows) {
      let between = ''
      for (const value of cells) {
        text += between + cell(value)
        between = delimiter
      }
      text += '\r\n'
    }
    return text
  }
  return {
    start: () => lines([header]),
    rows: lines,
    end: () => '',
  }
}
