import type { TableWriter, WrittenCell } from './table-writer.ts'
import { ZipWriter } from './zip-writer.ts'
import { ZonedTime } from './zoned-time.ts'

export interface XlsxOptions {
  header: readonly string[]
  /** Name of the sheet. */
  sheet: string
  /** Of times, which a workbook keeps without a zone; default UTC. */
  timeZone?: string
}

/** What one sheet holds, its header included. */
const SHEET_ROWS_MAX = 1_048_576
const CELL_CHARS_MAX = 32_767
const DAY_MS = 86_400_000
/** Serial 0 of the 1900 system. */
const SERIAL_ZERO_MS = Date.UTC(1899, 11, 30)

/** Places in `cellXfs` below. */
const STYLE = { time: 1, header: 2, text: 3 } as const

/** A workbook, made as it is sent; rows beyond what a sheet holds go on in a further one. All texts are text, whatever they begin with. */
export const xlsxWriter = ({ header, sheet, timeZone = 'UTC' }: XlsxOptions, rowsMax = SHEET_ROWS_MAX): TableWriter => {
  const zip = new ZipWriter()
  const zone = new ZonedTime(timeZone)
  const columns = header.map((_, i) => columnName(i))
  let sheets = 0
  let row = 0
  const line = (cells: readonly WrittenCell[], style?: number): string => {
    row++
    const texts = cells.map((value, i) => cellXml(`${columns[i] ?? columnName(i)}${row}`, value, zone, style))
    return `<row r="${row}">${texts.join('')}</row>`
  }
  const begin = async (): Promise<Buffer> => {
    sheets++
    row = 0
    const head = zip.begin(`xl/worksheets/sheet${sheets}.xml`)
    return Buffer.concat([head, await zip.add(SHEET_START + line(header, STYLE.header))])
  }
  const finish = async (): Promise<Buffer> => {
    const last = await zip.add('</sheetData></worksheet>')
    return Buffer.concat([last, await zip.finish()])
  }
  return {
    start: begin,
    rows: async (rows) => {
      const pieces: Buffer[] = []
      for (let from = 0; from < rows.length; ) {
        if (row === rowsMax) pieces.push(await finish(), await begin())
        const part = rows.slice(from, from + rowsMax - row)
        pieces.push(await zip.add(part.map((cells) => line(cells)).join('')))
        from += part.length
      }
      return Buffer.concat(pieces)
    },
    end: async () => {
      const pieces = [await finish()]
      for (const [name, text] of Object.entries(workbookParts(sheetName(sheet), sheets)))
        pieces.push(await zip.whole(name, text))
      return Buffer.concat([...pieces, zip.end()])
    },
  }
}

/** `A` for 0, `AA` for 26. */
export const columnName = (index: number): string =>
  (index < 26 ? '' : columnName(Math.floor(index / 26) - 1)) + String.fromCharCode(65 + (index % 26))

const cellXml = (place: string, value: WrittenCell, zone: ZonedTime, style?: number): string => {
  if (value === null || value === undefined || value === '') return ''
  if (typeof value === 'number' && Number.isFinite(value)) return `<c r="${place}"><v>${value}</v></c>`
  if (typeof value === 'boolean') return `<c r="${place}" t="b"><v>${value ? 1 : 0}</v></c>`
  if (value instanceof Date) {
    const serial = (value.getTime() + zone.offsetAt(value.getTime()) - SERIAL_ZERO_MS) / DAY_MS
    // A workbook has no times before 1900.
    if (serial >= 1) return `<c r="${place}" s="${STYLE.time}"><v>${serial}</v></c>`
    return cellXml(place, value.toISOString(), zone)
  }
  const text = escaped(String(value).slice(0, CELL_CHARS_MAX))
  return `<c r="${place}" s="${style ?? STYLE.text}" t="inlineStr"><is><t xml:space="preserve">${text}</t></is></c>`
}

const SPECIAL = /[&<>\r]/g
const NEEDS_CARE = /[&<>\r]|_x[0-9a-fA-F]{4}_|[^\t\n\r\x20-\ud7ff\ue000-\ufffd]/
const ENTITIES: { [char: string]: string } = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '\r': '&#13;' }

/** Text of an XML element; what XML has no way to say is left out. */
const escaped = (text: string): string => {
  if (!NEEDS_CARE.test(text)) return text
  return text
    .replace(/_(?=x[0-9a-fA-F]{4}_)/g, '_x005F_')
    .replace(/[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]|\p{Cs}/gu, '')
    .replace(SPECIAL, (char) => ENTITIES[char])
}

const sheetName = (name: string): string => {
  const clean = [...name.replace(/[[\]:*?/\\\p{Cc}]/gu, ' ').trim()].slice(0, 25).join('').replace(/^'|'$/g, ' ').trim()
  return clean === '' ? 'Sheet' : clean
}

const XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
const MAIN = 'http://schemas.openxmlformats.org/spreadsheetml/2006/main'
const RELATIONS = 'http://schemas.openxmlformats.org/package/2006/relationships'
const OFFICE = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships'
const TYPE = 'application/vnd.openxmlformats-officedocument.spreadsheetml'

const SHEET_START = `${XML}<worksheet xmlns="${MAIN}"><sheetViews><sheetView workbookViewId="0"><pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/></sheetView></sheetViews><sheetData>`

const STYLES = `${XML}<styleSheet xmlns="${MAIN}"><numFmts count="1"><numFmt numFmtId="164" formatCode="yyyy\\-mm\\-dd\\ hh:mm:ss"/></numFmts><fonts count="2"><font><sz val="11"/><name val="Calibri"/></font><font><b/><sz val="11"/><name val="Calibri"/></font></fonts><fills count="2"><fill><patternFill patternType="none"/></fill><fill><patternFill patternType="gray125"/></fill></fills><borders count="1"><border/></borders><cellStyleXfs count="1"><xf/></cellStyleXfs><cellXfs count="4"><xf/><xf numFmtId="164" applyNumberFormat="1"/><xf fontId="1" applyFont="1"/><xf numFmtId="49" applyNumberFormat="1"/></cellXfs></styleSheet>`

/** Everything but the sheets, by its name in the zip file. */
const workbookParts = (name: string, count: number): { [name: string]: string } => {
  const numbers = Array.from({ length: count }, (_, i) => i + 1)
  const shown = escaped(name).replaceAll('"', '&quot;')
  const sheets = numbers.map(
    (n) => `<sheet name="${n === 1 ? shown : `${shown} (${n})`}" sheetId="${n}" r:id="rId${n}"/>`,
  )
  const related = numbers.map(
    (n) => `<Relationship Id="rId${n}" Type="${OFFICE}/worksheet" Target="worksheets/sheet${n}.xml"/>`,
  )
  const types = numbers.map(
    (n) => `<Override PartName="/xl/worksheets/sheet${n}.xml" ContentType="${TYPE}.worksheet+xml"/>`,
  )
  return {
    'xl/styles.xml': STYLES,
    'xl/workbook.xml': `${XML}<workbook xmlns="${MAIN}" xmlns:r="${OFFICE}"><sheets>${sheets.join('')}</sheets></workbook>`,
    'xl/_rels/workbook.xml.rels': `${XML}<Relationships xmlns="${RELATIONS}">${related.join('')}<Relationship Id="rId${count + 1}" Type="${OFFICE}/styles" Target="styles.xml"/></Relationships>`,
    '_rels/.rels': `${XML}<Relationships xmlns="${RELATIONS}"><Relationship Id="rId1" Type="${OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>`,
    '[Content_Types].xml': `${XML}<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/><Override PartName="/xl/workbook.xml" ContentType="${TYPE}.sheet.main+xml"/><Override PartName="/xl/styles.xml" ContentType="${TYPE}.styles+xml"/>${types.join('')}</Types>`,
  }
}
