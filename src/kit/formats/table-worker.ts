import { parentPort } from 'node:worker_threads'
import { ConventionFinder, type ConventionDefaults } from './conventions.ts'
import { csvFormOf, readCsv } from './csv-reader.ts'
import { findHeader, HEADER_ROWS, isFootnote, nameKey } from './find-header.ts'
import { mappedRow, type Mapping } from './mapped-rows.ts'
import { FileFault, type TableAbout, type TableLimits, type TableRow } from './table-cells.ts'
import {
  type ExaminedTable,
  PAGE_ROWS,
  type OpenedTable,
  type TableAnswer,
  type TableAsked,
  type TablePage,
} from './table-request.ts'
import { XlsxReader } from './xlsx-reader.ts'
import { ZonedTime } from '../../kernel/zoned-time.ts'

type Rows = () => AsyncIterable<TableRow> | Iterable<TableRow>

/** A file in the memory of this thread. */
class WorkedTable {
  private readonly pieces: Uint8Array[] = []
  private source: Rows = () => []
  private header = { row: 0, columns: [] as string[] }
  private reading: AsyncGenerator<TableRow> | undefined
  private mapping: (Mapping & { zone: ZonedTime }) | undefined

  add(piece: Uint8Array): void {
    this.pieces.push(piece)
  }

  /** @throws FileFault */
  async open({ sheet, expected, limits }: Extract<TableAsked, { kind: 'open' }>): Promise<OpenedTable> {
    const { about, rows } = await opened(this.pieces, sheet, limits)
    this.source = rows
    const head: TableRow[] = []
    for await (const row of rows()) if (head.push(row) === HEADER_ROWS) break
    this.header = findHeader(head, new Set(expected.map(nameKey)))
    return { about, columns: this.header.columns, headerRow: this.header.row }
  }

  async examine(defaults: ConventionDefaults): Promise<ExaminedTable> {
    const finder = new ConventionFinder()
    let rows = 0
    for await (const { cells } of this.below(0)) {
      rows++
      finder.see(cells)
    }
    return { rows, conventions: finder.end(this.header.columns.length, defaults) }
  }

  async begin({ after, mapping }: Extract<TableAsked, { kind: 'begin' }>): Promise<void> {
    await this.reading?.return(undefined)
    this.reading = this.below(after)
    this.mapping = mapping && { ...mapping, zone: new ZonedTime(mapping.timeZone) }
  }

  async next(): Promise<TablePage> {
    const { rows, isLast } = await this.page()
    const { mapping } = this
    if (mapping === undefined) return { rows, isLast }
    return { mapped: JSON.stringify(rows.map((row) => mappedRow(row, mapping.columns, mapping.zone))), isLast }
  }

  private async page(): Promise<{ rows: TableRow[]; isLast: boolean }> {
    const rows: TableRow[] = []
    while (rows.length < PAGE_ROWS) {
      const next = await this.reading?.next()
      if (next === undefined || next.done === true) return { rows, isLast: true }
      rows.push(next.value)
    }
    return { rows, isLast: false }
  }

  /** Rows below the header and a row's number. */
  private async *below(after: number): AsyncGenerator<TableRow> {
    const { row: head, columns } = this.header
    let before = head
    for await (const one of this.source()) {
      if (one.row <= head) continue
      if (isFootnote(one, before, columns.length)) continue
      before = one.row
      if (one.row > after) yield one
    }
  }
}

const opened = async (
  pieces: readonly Uint8Array[],
  asked: string | undefined,
  limits: TableLimits,
): Promise<{ about: TableAbout; rows: Rows }> => {
  const head = Buffer.concat(pieces.slice(0, 1)).subarray(0, 8)
  if (head.length === 0) throw new FileFault('invalid', 'The file is empty.')
  if (head.length >= 4 && head.readUInt32BE(0) === 0x504b0304) {
    const book = await XlsxReader.open(Buffer.concat(pieces), limits)
    const sheet = sheetOf(book.sheets, asked)
    return { about: aboutBook('xlsx', book.sheets, sheet.name), rows: () => book.rows(sheet) }
  }
  if (head.length >= 4 && head.readUInt32BE(0) === 0xd0cf11e0) {
    const bytes = Buffer.concat(pieces)
    // A workbook with a password is a package in the old container.
    if (bytes.includes(Buffer.from('EncryptedPackage', 'utf16le')))
      throw new FileFault('invalid', 'The file is encrypted: save it without a password.')
    const { XlsReader } = await import('./xls-reader.ts')
    const book = new XlsReader(bytes, limits)
    const sheet = sheetOf(book.sheets, asked)
    return { about: aboutBook('xls', book.sheets, sheet.name), rows: () => book.rows(sheet) }
  }
  const form = csvFormOf(pieces)
  const about = { format: 'csv' as const, encoding: form.encoding.name, delimiter: form.delimiter, sheets: [] }
  return { about, rows: () => readCsv(pieces, form, limits) }
}

interface NamedSheet {
  name: string
  isHidden: boolean
}

const aboutBook = (format: 'xlsx' | 'xls', sheets: readonly NamedSheet[], sheet: string): TableAbout => ({
  format,
  sheets: sheets.filter(({ isHidden }) => !isHidden).map(({ name }) => name),
  sheet,
})

/** The requested sheet, also a hidden one; else the first visible one. */
const sheetOf = <Sheet extends NamedSheet>(sheets: readonly Sheet[], asked: string | undefined): Sheet => {
  if (asked === undefined) return sheets.find(({ isHidden }) => !isHidden) ?? sheets[0]
  const found = sheets.find(({ name }) => name === asked) ?? sheets.find(({ name }) => nameKey(name) === nameKey(asked))
  if (found !== undefined) return found
  const names = sheets.filter(({ isHidden }) => !isHidden).map(({ name }) => JSON.stringify(name))
  throw new FileFault('invalid', `The file has no sheet ${JSON.stringify(asked)}; it has ${names.join(', ')}.`)
}

const table = new WorkedTable()

const answerOf = async (asked: Exclude<TableAsked, { kind: 'piece' }>): Promise<TableAnswer> => {
  try {
    if (asked.kind === 'open') return { opened: await table.open(asked) }
    if (asked.kind === 'examine') return { examined: await table.examine(asked.defaults) }
    if (asked.kind === 'next') return await table.next()
    await table.begin(asked)
    return { begun: true }
  } catch (error) {
    if (!(error instanceof FileFault)) throw error
    return { fault: { code: error.code, message: error.message } }
  }
}

parentPort?.on('message', (asked: TableAsked) => {
  if (asked.kind === 'piece') table.add(asked.piece)
  else void answerOf(asked).then((answer) => parentPort?.postMessage(answer))
})
