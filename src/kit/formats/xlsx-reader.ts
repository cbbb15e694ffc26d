import { posix } from 'node:path'
import { SaxesParser } from 'saxes'
import { numberCell, type Shown, shownByCode, shownByNumber } from './serial-dates.ts'
import { type Cell, FileFault, type TableLimits, type TableRow } from './table-cells.ts'
import { textOf } from './xlsx-text.ts'
import { ZipReader } from './zip-reader.ts'

const ROW_MAX = 1_048_576
const ROWS_AT_ONCE = 500

interface Sheet {
  name: string
  part: string
  isHidden: boolean
}

interface Tag {
  name: string
  attributes: { [name: string]: string }
}

interface Handlers {
  open(tag: Tag): void
  text?(text: string): void
  close?(name: string): void
}

/** A workbook whose bytes are in memory; its sheets are read as they are unpacked. */
export class XlsxReader {
  readonly sheets: readonly Sheet[]
  private readonly zip: ZipReader
  private readonly limits: TableLimits
  private readonly is1904: boolean
  private readonly strings: readonly string[]
  private readonly styles: readonly Shown[]

  private constructor(zip: ZipReader, limits: TableLimits, parts: Parts) {
    this.zip = zip
    this.limits = limits
    this.sheets = parts.sheets
    this.is1904 = parts.is1904
    this.strings = parts.strings
    this.styles = parts.styles
  }

  /** @throws FileFault */
  static async open(bytes: Buffer, limits: TableLimits): Promise<XlsxReader> {
    const zip = new ZipReader(bytes, limits.unpackedMax)
    return new XlsxReader(zip, limits, await partsOf(zip, limits))
  }

  /** @throws FileFault */
  async *rows(sheet: Sheet): AsyncGenerator<TableRow> {
    const reading = new SheetReading(this.limits, (cell) => this.valueOf(cell))
    for await (const _piece of parsed(this.zip, sheet.part, reading)) {
      const rows = reading.take(ROWS_AT_ONCE)
      for (const row of rows) yield row
    }
    for (const row of reading.take(0)) yield row
  }

  private valueOf({ type, style, text, hasFormula }: RawCell): Cell {
    if (type === 'inlineStr') return text === '' ? null : textOf(text)
    if (text === '') return hasFormula ? { fault: 'a formula without a value' } : null
    if (type === 's') return this.strings[Number(text)] ?? null
    if (type === 'str') return textOf(text)
    if (type === 'b') return text === '1' || text === 'true'
    if (type === 'e') return { fault: text }
    if (type === 'd') return { at: text.replace(/Z$/, '') }
    const value = Number(text)
    return Number.isNaN(value) ? text : numberCell(value, this.styles[style] ?? 'number', this.is1904)
  }
}

interface RawCell {
  type: string
  style: number
  text: string
  hasFormula: boolean
}

/** Gathers rows while the XML of a sheet goes by. */
class SheetReading implements Handlers {
  private readonly limits: TableLimits
  private readonly toValue: (cell: RawCell) => Cell
  private readonly ready: TableRow[] = []
  private found = 0
  private row = 0
  private column = -1
  private cells: Cell[] = []
  private cell: RawCell | undefined
  private isValue = false

  constructor(limits: TableLimits, toValue: (cell: RawCell) => Cell) {
    this.limits = limits
    this.toValue = toValue
  }

  open({ name, attributes }: Tag): void {
    if (name === 'row') {
      this.row = attributes.r === undefined ? this.row + 1 : Number(attributes.r)
      if (!(this.row >= 1 && this.row <= ROW_MAX))
        throw new FileFault('invalid', `There is no row ${attributes.r ?? this.row} in a sheet.`)
      this.cells = []
      this.column = -1
    } else if (name === 'c') {
      this.column = attributes.r === undefined ? this.column + 1 : columnOf(attributes.r)
      this.cell = { type: attributes.t ?? 'n', style: Number(attributes.s ?? 0), text: '', hasFormula: false }
    } else if (name === 'f' && this.cell !== undefined) this.cell.hasFormula = true
    else if (name === 'rPh') this.isValue = false
    else if (name === 'v' || name === 't') this.isValue = this.cell !== undefined
  }

  text(text: string): void {
    if (!this.isValue || this.cell === undefined) return
    this.cell.text += text
    if (this.cell.text.length > this.limits.cellCharsMax)
      throw new FileFault(
        'too_large',
        `Row ${this.row} has a cell of more than ${this.limits.cellCharsMax} characters.`,
      )
  }

  close(name: string): void {
    if (name === 'v' || name === 't') this.isValue = false
    else if (name === 'c') this.endCell()
    else if (name === 'row' && this.cells.length > 0) this.endRow()
  }

  /** The rows that are ready, if there are at least `min`. */
  take(min: number): TableRow[] {
    return this.ready.length >= min ? this.ready.splice(0) : []
  }

  private endCell(): void {
    const value = this.cell === undefined ? null : this.toValue(this.cell)
    this.cell = undefined
    if (value === null) return
    if (this.column >= this.limits.columnsMax)
      throw new FileFault('too_large', `Row ${this.row} has more than ${this.limits.columnsMax} columns.`)
    while (this.cells.length < this.column) this.cells.push(null)
    this.cells[this.column] = value
  }

  private endRow(): void {
    const { rowsMax } = this.limits
    if (++this.found > rowsMax) throw new FileFault('too_large', `The file has more than ${rowsMax} rows.`)
    this.ready.push({ row: this.row, cells: this.cells })
  }
}

/** `C` of `C12` is 2. */
const columnOf = (place: string): number => {
  let column = 0
  for (let i = 0; i < place.length && i < 4; i++) {
    const code = place.charCodeAt(i) - 64
    if (code < 1 || code > 26) break
    column = column * 26 + code
  }
  return column - 1
}

interface Parts {
  sheets: Sheet[]
  is1904: boolean
  strings: string[]
  styles: Shown[]
}

const partsOf = async (zip: ZipReader, limits: TableLimits): Promise<Parts> => {
  const root = await relationsOf(zip, '')
  const workbook = [...root.values()].find(({ type }) => type.endsWith('/officeDocument'))?.target ?? 'xl/workbook.xml'
  if (!zip.has(workbook)) throw new FileFault('unsupported_type', 'The file is no workbook: send .csv, .xlsx or .xls.')
  const relations = await relationsOf(zip, workbook)
  const targetOf = (end: string): string | undefined =>
    [...relations.values()].find(({ type, target }) => type.endsWith(end) && zip.has(target))?.target
  const { sheets, is1904 } = await workbookOf(zip, workbook, relations)
  if (sheets.length === 0) throw new FileFault('invalid', 'The workbook has no sheets.')
  const [strings, styles] = [targetOf('/sharedStrings'), targetOf('/styles')]
  return {
    sheets,
    is1904,
    strings: strings === undefined ? [] : await stringsOf(zip, strings, limits),
    styles: styles === undefined ? [] : await stylesOf(zip, styles),
  }
}

type Relations = Map<string, { type: string; target: string }>

const relationsOf = async (zip: ZipReader, part: string): Promise<Relations> => {
  const name = `${posix.join(posix.dirname(part), '_rels', posix.basename(part))}.rels`
  const relations: Relations = new Map()
  if (!zip.has(name)) return relations
  await parseAll(zip, name, {
    open: ({ name: tag, attributes: { Id = '', Type = '', Target = '' } }) => {
      if (tag !== 'Relationship') return
      const target = Target.startsWith('/') ? Target.slice(1) : posix.join(posix.dirname(part), Target)
      relations.set(Id, { type: Type, target })
    },
  })
  return relations
}

const workbookOf = async (
  zip: ZipReader,
  part: string,
  relations: Relations,
): Promise<{ sheets: Sheet[]; is1904: boolean }> => {
  const sheets: Sheet[] = []
  let is1904 = false
  await parseAll(zip, part, {
    open: ({ name, attributes }) => {
      if (name === 'workbookPr') is1904 = ['1', 'true'].includes(attributes.date1904 ?? '')
      if (name !== 'sheet') return
      const id = Object.entries(attributes).find(([key]) => key === 'id' || key.endsWith(':id'))?.[1] ?? ''
      const relation = relations.get(id)
      if (relation === undefined || !relation.type.endsWith('/worksheet') || !zip.has(relation.target)) return
      const isHidden = (attributes.state ?? 'visible') !== 'visible'
      sheets.push({ name: attributes.name ?? '', part: relation.target, isHidden })
    },
  })
  return { sheets, is1904 }
}

const stringsOf = async (zip: ZipReader, part: string, { sharedCharsMax }: TableLimits): Promise<string[]> => {
  const strings: string[] = []
  let [text, chars, isText, isPhonetic] = ['', 0, false, false]
  await parseAll(zip, part, {
    open: ({ name }) => {
      if (name === 'si') text = ''
      else if (name === 'rPh') isPhonetic = true
      else if (name === 't') isText = !isPhonetic
    },
    text: (piece) => {
      if (!isText) return
      text += piece
      chars += piece.length
      if (chars > sharedCharsMax)
        throw new FileFault('too_large', `The texts of the file are longer than ${sharedCharsMax} characters.`)
    },
    close: (name) => {
      if (name === 'rPh') isPhonetic = false
      else if (name === 't') isText = false
      else if (name === 'si') strings.push(textOf(text))
    },
  })
  return strings
}

const stylesOf = async (zip: ZipReader, part: string): Promise<Shown[]> => {
  const codes = new Map<number, string>()
  const styles: Shown[] = []
  let isCells = false
  await parseAll(zip, part, {
    open: ({ name, attributes }) => {
      if (name === 'numFmt') codes.set(Number(attributes.numFmtId), attributes.formatCode ?? '')
      else if (name === 'cellXfs') isCells = true
      else if (name === 'xf' && isCells) {
        const id = Number(attributes.numFmtId ?? 0)
        const code = codes.get(id)
        styles.push(code === undefined ? shownByNumber(id) : shownByCode(code))
      }
    },
    close: (name) => {
      if (name === 'cellXfs') isCells = false
    },
  })
  return styles
}

const parseAll = async (zip: ZipReader, part: string, handlers: Handlers): Promise<void> => {
  for await (const _piece of parsed(zip, part, handlers));
}

/** Parses a part piece by piece. Documents with a DOCTYPE are refused: no entity is ever expanded. */
async function* parsed(zip: ZipReader, part: string, handlers: Handlers): AsyncGenerator<void> {
  const parser = new SaxesParser({ position: false })
  const decoder = new TextDecoder('utf-8')
  const local = (name: string): string => name.slice(name.indexOf(':') + 1)
  parser.on('doctype', () => {
    throw new FileFault('invalid', 'The file declares entities, which no spreadsheet needs.')
  })
  parser.on('error', () => {
    throw new FileFault('invalid', 'The file is damaged: a part of it is no XML.')
  })
  parser.on('opentag', ({ name, attributes }) =>
    handlers.open({ name: local(name), attributes: attributes as Tag['attributes'] }),
  )
  if (handlers.text !== undefined) parser.on('text', (text) => handlers.text?.(text))
  if (handlers.text !== undefined) parser.on('cdata', (text) => handlers.text?.(text))
  if (handlers.close !== undefined) parser.on('closetag', ({ name }) => handlers.close?.(local(name)))
  for await (const piece of zip.read(part)) {
    parser.write(decoder.decode(piece, { stream: true }))
    yield
  }
  parser.close()
}
