import { Writable } from 'node:stream'
import type exceljs from 'exceljs'
import type { TableWriter, WrittenCell } from './table-writer.ts'
import { ZonedTime } from '../../kernel/zoned-time.ts'
import { plainText } from './xlsx-text.ts'

export interface XlsxOptions {
  header: readonly string[]
  sheet: string
  /** Zone of times, which a workbook keeps without one; default UTC. */
  timeZone?: string
}

/** Capacity of one sheet, its header included. */
const SHEET_ROWS_MAX = 1_048_576
const CELL_CHARS_MAX = 32_767
/** Of the 31 that a sheet's name may have, in UTF-16, some are for the number of a further sheet. */
const NAME_CHARS_MAX = 25
const DAY_MS = 86_400_000
/** Serial 0 of the 1900 system. */
const SERIAL_ZERO_MS = Date.UTC(1899, 11, 30)
/** Serial of the first of March 1900. */
const MARCH_1900_DAYS = 61
/** Serial of the first of January 10000, from which on a workbook has no times. */
const TOO_LATE_DAYS = 2_958_466
const TIME_FORMAT = 'yyyy-mm-dd hh:mm:ss'
const TEXT_FORMAT = '@'
const LEVEL = 4

/** A workbook, written by its thread as it is sent; rows beyond one sheet go on in a further one. Texts stay texts. */
export const xlsxWriter = ({ header, sheet, timeZone = 'UTC' }: XlsxOptions, rowsMax = SHEET_ROWS_MAX): TableWriter => {
  const zone = new ZonedTime(timeZone)
  const sink = new Sink()
  let book: exceljs.stream.xlsx.WorkbookWriter
  const name = sheetName(sheet)
  let sheets = 0
  let row = 0
  let current: exceljs.Worksheet
  const line = (cells: readonly WrittenCell[], font?: Partial<exceljs.Font>): void => {
    row++
    const made = current.getRow(row)
    for (const [i, value] of cells.entries()) writeCell(made, i + 1, value, zone)
    if (font !== undefined) made.font = font
    made.commit()
  }
  const begin = (): void => {
    sheets++
    row = 0
    const views = [{ state: 'frozen' as const, ySplit: 1 }]
    current = book.addWorksheet(sheets === 1 ? name : `${name} (${sheets})`, { views })
    line(header, { bold: true })
  }
  return {
    start: async () => {
      book = await openBook(sink)
      begin()
      return sink.take()
    },
    rows: (rows) => {
      for (const cells of rows) {
        if (row === rowsMax) {
          current.commit()
          begin()
        }
        line(cells)
      }
      return sink.take()
    },
    end: async () => {
      current.commit()
      await book.commit()
      return sink.take()
    },
  }
}

/** Loaded by the first workbook: half of the package's modules date from before Node had them, and take 0.25 s. */
const openBook = async (stream: Writable): Promise<exceljs.stream.xlsx.WorkbookWriter> => {
  const { default: library } = await import('exceljs')
  const zip = { zlib: { level: LEVEL } }
  return new library.stream.xlsx.WorkbookWriter({ stream, useStyles: true, useSharedStrings: false, zip })
}

/** Keeps the available output of the workbook until it is sent. */
class Sink extends Writable {
  private ready: Buffer[] = []

  override _write(piece: Buffer, _encoding: string, done: () => void): void {
    this.ready.push(piece)
    done()
  }

  take(): Buffer {
    const bytes = Buffer.concat(this.ready)
    this.ready = []
    return bytes
  }
}

const writeCell = (row: exceljs.Row, column: number, value: WrittenCell, zone: ZonedTime): void => {
  if (value === null || value === undefined || value === '') return
  const cell = row.getCell(column)
  if (typeof value === 'boolean' || (typeof value === 'number' && Number.isFinite(value))) {
    cell.value = value
    return
  }
  if (value instanceof Date) {
    const days = (value.getTime() + zone.offsetAt(value.getTime()) - SERIAL_ZERO_MS) / DAY_MS
    // A workbook has no times before 1900, and a 29th of February of that year, which did not exist.
    const serial = days < MARCH_1900_DAYS ? days - 1 : days
    if (serial < 1 || serial >= TOO_LATE_DAYS) return writeCell(row, column, value.toISOString(), zone)
    cell.value = serial
    cell.numFmt = TIME_FORMAT
    return
  }
  const text = plainText(String(value).slice(0, CELL_CHARS_MAX))
  cell.value = READ_TWICE.test(text) ? { richText: [{ text }] } : text
  cell.numFmt = TEXT_FORMAT
}

/** The package writes plain texts as results of formulas: some readers decode entities in them twice or trim them. */
const READ_TWICE = /&|_x[0-9a-fA-F]{4}_|^\s|\s$/

const sheetName = (name: string): string => {
  const clean = name.replace(/[[\]:*?/\\\p{Cc}]/gu, ' ').trim()
  const short = clean.slice(0, NAME_CHARS_MAX).replace(/[\ud800-\udbff]$/, '')
  const bare = short.replace(/^'|'$/g, ' ').trim()
  return bare === '' || bare.toLowerCase() === 'history' ? 'Sheet' : bare
}
