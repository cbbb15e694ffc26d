import { type CellObject, read, set_cptable, type WorkBook } from '@e965/xlsx'
import * as codePages from '@e965/xlsx/dist/cpexcel.full.mjs'
import { numberCell, shownByCode } from './serial-dates.ts'
import { type Cell, FileFault, type TableLimits, type TableRow } from './table-cells.ts'

set_cptable(codePages)

/** A workbook of Excel 97 to 2003. It is read as a whole: the memory of its thread must be bounded. */
export class XlsReader {
  readonly sheets: readonly { name: string; isHidden: boolean }[]
  private readonly book: WorkBook
  private readonly limits: TableLimits

  /** @throws FileFault */
  constructor(bytes: Buffer, limits: TableLimits) {
    this.limits = limits
    this.book = bookOf(bytes)
    const states = this.book.Workbook?.Sheets ?? []
    this.sheets = this.book.SheetNames.map((name, i) => ({ name, isHidden: (states[i]?.Hidden ?? 0) > 0 }))
  }

  /** @throws FileFault */
  *rows({ name }: { name: string }): Generator<TableRow> {
    const { rowsMax, columnsMax, cellCharsMax } = this.limits
    const is1904 = this.book.Workbook?.WBProps?.date1904 === true
    const lines = (this.book.Sheets[name]['!data'] ?? []) as (CellObject[] | undefined)[]
    let found = 0
    for (const [i, line] of lines.entries()) {
      const cells = Array.from(line ?? [], (cell) => cellOf(cell, is1904))
      while (cells.length > 0 && cells[cells.length - 1] === null) cells.pop()
      if (cells.length === 0) continue
      if (++found > rowsMax) throw new FileFault('too_large', `The file has more than ${rowsMax} rows.`)
      if (cells.length > columnsMax)
        throw new FileFault('too_large', `Row ${i + 1} has more than ${columnsMax} columns.`)
      if (cells.some((cell) => typeof cell === 'string' && cell.length > cellCharsMax))
        throw new FileFault('too_large', `Row ${i + 1} has a cell of more than ${cellCharsMax} characters.`)
      yield { row: i + 1, cells }
    }
  }
}

const bookOf = (bytes: Buffer): WorkBook => {
  try {
    return read(bytes, {
      type: 'buffer',
      dense: true,
      cellNF: true,
      cellFormula: false,
      cellHTML: false,
      cellText: false,
    })
  } catch (error) {
    const isLocked = /password|encrypt/i.test((error as Error).message)
    if (isLocked) throw new FileFault('invalid', 'The file is encrypted: save it without a password.')
    throw new FileFault('invalid', 'The file is damaged or incomplete; save and send it again.')
  }
}

const cellOf = (cell: CellObject | undefined, is1904: boolean): Cell => {
  if (cell === undefined || cell.v === undefined || cell.t === 'z') return null
  if (cell.t === 'e') return { fault: String(cell.w ?? '#ERROR!') }
  if (typeof cell.v === 'number') return numberCell(cell.v, shownByCode(String(cell.z ?? 'General')), is1904)
  return cell.v instanceof Date ? { at: cell.v.toISOString().slice(0, -1) } : cell.v === '' ? null : cell.v
}
