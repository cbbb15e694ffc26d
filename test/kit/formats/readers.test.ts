import { readdirSync, readFileSync } from 'node:fs'
import { deflateRawSync } from 'node:zlib'
import { type CellObject, read, utils, type WorkBook, write } from '@e965/xlsx'
import { parse } from 'csv-parse/sync'
import iconv from 'iconv-lite'
import t from 'tap'
import { LANGUAGES, monthOf } from '../../../src/kit/formats/date-words.ts'
import { parseMoment, parseNumber, understood } from '../../../src/kit/formats/cell-values.ts'
import { csvFormOf, readCsv } from '../../../src/kit/formats/csv-reader.ts'
import type { MappedRow } from '../../../src/kit/formats/mapped-rows.ts'
import { type OpenTable, openTable, type OpenTableOptions } from '../../../src/kit/formats/open-table.ts'
import { type Cell, shownCell, TABLE_LIMITS, type TableRow } from '../../../src/kit/formats/table-cells.ts'
import { zipOf } from '../../support/zip-of.ts'
import { ZonedTime } from '../../../src/kernel/zoned-time.ts'
import { systemClock } from '../../../src/kernel/system-clock.ts'
import { withoutData } from '../../support/shared-data.ts'

const FOLDER = '../shared/data/spreadsheets/'

const opened = async (
  t: { teardown(end: () => Promise<void>): void },
  bytes: Uint8Array | string,
  options: Partial<OpenTableOptions> = {},
): Promise<OpenTable> => {
  const source = async function* () {
    const whole = Buffer.from(bytes)
    for (let from = 0; from < whole.length; from += 1_000) yield whole.subarray(from, from + 1_000)
  }
  const { signal } = new AbortController()
  const table = await openTable(source(), { clock: systemClock, signal, ...options })
  t.teardown(() => table.close())
  return table
}

const allRows = async (table: OpenTable): Promise<TableRow[]> => {
  const rows: TableRow[] = []
  for await (const page of table.pages()) rows.push(...page)
  return rows
}

const fileRows = (name: string): Buffer => readFileSync(FOLDER + name)

t.test('every CSV of the reference data, cell by cell', { skip: withoutData }, async (t) => {
  const forms: { [name: string]: [encoding: string, delimiter: string] } = {
    'italy-projects-semicolon.csv': ['UTF-8', ';'],
    'taiwan-attractions-big5.csv': ['Big5', ','],
  }
  for (const name of readdirSync(FOLDER).filter((one) => one.endsWith('.csv'))) {
    const bytes = fileRows(name)
    const table = await opened(t, bytes)
    const [encoding = 'UTF-8', delimiter = ','] = forms[name] ?? []
    t.match(table.about, { format: 'csv', encoding, delimiter }, name)
    const text = iconv.decode(bytes, encoding === 'Big5' ? 'cp950' : encoding)
    const options = { delimiter, relax_column_count: true, relax_quotes: true, record_delimiter: ['\r\n', '\n', '\r'] }
    const [, ...wanted] = parse(text, options) as string[][]
    const found = await allRows(table)
    t.same(
      found.map(({ cells }) => cells),
      wanted.filter((cells) => cells.some((cell) => cell.trim() !== '')),
      name,
    )
  }
})

/** As the independent reader has it. */
const cellOf = (cell: CellObject | undefined): unknown => {
  if (cell === undefined || cell.v === undefined || cell.v === '') return null
  if (cell.t === 'e') return { fault: cell.w }
  return cell.v instanceof Date ? cell.v.getTime() : cell.v
}

const shownAs = (cell: Cell | undefined, wanted: unknown): unknown => {
  if (cell === undefined) return null
  if (typeof cell === 'object' && cell !== null && 'at' in cell && typeof wanted === 'number') {
    const at = cell.at.length === 8 ? `1899-12-31T${cell.at}` : cell.at
    return Math.abs(Date.parse(`${at.length === 10 ? `${at}T00:00:00` : at}Z`) - wanted) < 1_000 ? wanted : cell
  }
  return cell
}

t.test('every workbook of the reference data, cell by cell', { skip: withoutData }, async (t) => {
  for (const name of readdirSync(FOLDER).filter((one) => /\.xlsx?$/.test(one))) {
    const bytes = fileRows(name)
    const book: WorkBook = read(bytes, { cellDates: true, UTC: true, dense: true })
    for (const sheet of book.SheetNames) {
      const table = await opened(t, bytes, { sheet })
      const lines = (book.Sheets[sheet]['!data'] ?? []) as (CellObject[] | undefined)[]
      const found = await allRows(table)
      let wrong = 0
      for (const { row, cells } of found)
        for (const [i, cell] of cells.entries()) {
          const wanted = cellOf(lines[row - 1]?.[i])
          const isSame = JSON.stringify(shownAs(cell, wanted)) === JSON.stringify(wanted)
          if (!isSame && wrong++ < 3)
            t.comment(`${name} ${sheet} row ${row} column ${i}: ${JSON.stringify([cell, wanted])}`)
        }
      t.equal(wrong, 0, `${name}: ${sheet}, ${found.length} rows below row ${table.headerRow}`)
    }
  }
})

t.test('what the README says of the files', { skip: withoutData }, async (t) => {
  const ports = await opened(t, fileRows('port-line-up.xlsx'))
  t.ok(ports.headerRow > 1, 'titles stand above')
  const hidden = await opened(t, fileRows('libreoffice-hidden-row-column.xlsx'))
  t.equal(hidden.about.format, 'xlsx')
  const staff = await opened(t, fileRows('staff-report-dates.xls'))
  const dates = (await allRows(staff))
    .flatMap(({ cells }) => cells)
    .filter((cell) => typeof cell === 'object' && cell !== null && 'at' in cell)
  t.ok(dates.length > 380, `${dates.length} dates`)
  const examined = await (await opened(t, fileRows('italy-projects-semicolon.csv'))).examine({
    decimal: '.',
    dateOrder: 'mdy',
  })
  t.ok(
    examined.conventions.some(({ decimal }) => decimal === ','),
    'decimal commas',
  )
  const york = await (await opened(t, fileRows('nyc311-addresses.csv'))).examine({ decimal: '.', dateOrder: 'dmy' })
  t.ok(
    york.conventions.every(({ dateOrder }) => dateOrder === 'mdy'),
    'month before day',
  )
})

t.test('encodings and delimiters', async (t) => {
  const text = 'name;naïve\r\n"Zoë; ""x""\r\nline 2";Müller\r\n'
  for (const [encoding, bom, name] of [
    ['utf8', false, 'UTF-8'],
    ['utf8', true, 'UTF-8'],
    ['utf16le', true, 'UTF-16LE'],
    ['utf16be', true, 'UTF-16BE'],
    ['utf16le', false, 'UTF-16LE'],
    ['latin1', false, 'ISO-8859-1'],
  ] as const) {
    const table = await opened(t, iconv.encode(text, encoding, { addBOM: bom }))
    t.match(table.about, { encoding: name, delimiter: ';' })
    t.same(table.columns, ['name', 'naïve'])
    t.same(await allRows(table), [{ row: 2, cells: ['Zoë; "x"\r\nline 2', 'Müller'] }])
  }
  const euro = await opened(t, iconv.encode('a,b\n€ 5,“x”\n', 'win1252'))
  t.equal(euro.about.encoding, 'windows-1252')
  t.same(await allRows(euro), [{ row: 2, cells: ['€ 5', '“x”'] }])
  for (const delimiter of [',', ';', '\t', '|'])
    t.equal((await opened(t, `a${delimiter}b\n1${delimiter}2\n`)).about.delimiter, delimiter)
  t.same((await opened(t, 'sep=|\na|b\n1|2')).columns, ['a', 'b'])
})

t.test('titles above, footnotes below, blank rows, headers that repeat or are empty', async (t) => {
  const table = await opened(t, 'Report of May\n\nname,,name,Amount\nA,1,x,2\n,,,\nB,3,y,4\n\nSource: somewhere\n')
  t.same(table.columns, ['name', 'Column B', 'name (2)', 'Amount'])
  t.equal(table.headerRow, 3)
  t.same(await allRows(table), [
    { row: 4, cells: ['A', '1', 'x', '2'] },
    { row: 6, cells: ['B', '3', 'y', '4'] },
  ])
  t.equal((await opened(t, 'x,1\nNumber,Name\n1,2\n', { expected: ['number', 'name'] })).headerRow, 2)
})

t.test('rows are read again from any row on', async (t) => {
  const text = `n\n${Array.from({ length: 2_000 }, (_, i) => `v${i}`).join('\n')}\n`
  const table = await opened(t, text)
  t.equal((await table.examine({ decimal: '.', dateOrder: 'dmy' })).rows, 2_000)
  t.equal((await allRows(table)).length, 2_000)
  const rest: TableRow[] = []
  for await (const page of table.pages(1_500)) rest.push(...page)
  t.same([rest[0], rest.length], [{ row: 1_501, cells: ['v1499'] }, 501])
})

t.test('rows are understood as a mapping says, one fault a row', async (t) => {
  const table = await opened(t, 'No,Lat,Lng,At\na,"1,5",20,24.12.2026 14:30\nb,much,20,\nc,,1e999,\nd,,,\n')
  const convention = { decimal: ',', dateOrder: 'dmy' } as const
  const columns = (['no', 'place.lat', 'place.lng', 'at'] as const).map((name, index) => {
    const type = index === 0 ? 'text' : index === 3 ? 'datetime' : 'number'
    return { index, name: table.columns[index], target: { name, rule: { type } as const }, convention }
  })
  const rows: MappedRow[] = []
  for await (const page of table.mappedPages({ columns, timeZone: 'Europe/Warsaw' })) rows.push(...page)
  t.same(rows, [
    { row: 2, values: { no: 'a', place: { lat: 1.5, lng: 20 }, at: '2026-12-24T13:30:00.000Z' } },
    { row: 3, fault: { column: 'Lat', message: '"much" must be a number' } },
    { row: 4, fault: { column: 'Lng', message: '"1e999" must be a number' } },
    { row: 5, values: { no: 'd' } },
  ])
})

const sheetXml = (rows: string): string =>
  `<worksheet xmlns="x"><dimension ref="A1:XFD1048576"/><sheetData>${rows}</sheetData></worksheet>`

const bookOf = async (sheet: string, prolog = ''): Promise<Buffer> =>
  zipOf({
    'xl/workbook.xml': '<workbook xmlns:r="r"><sheets><sheet name="S" sheetId="1" r:id="r1"/></sheets></workbook>',
    'xl/_rels/workbook.xml.rels':
      '<Relationships><Relationship Id="r1" Type="x/worksheet" Target="worksheets/s.xml"/></Relationships>',
    'xl/worksheets/s.xml': prolog + sheet,
  })

t.test('hostile files are refused by name, soon', async (t) => {
  const refused = async (
    bytes: Buffer | string,
    code: string,
    message: RegExp,
    options: Partial<OpenTableOptions> = {},
  ) => t.rejects((async () => allRows(await opened(t, bytes, options)))(), { code, message }, String(message))
  const limits = { ...TABLE_LIMITS, unpackedMax: 10_000_000 }
  await refused(await bookOf(sheetXml(' '.repeat(20_000_000))), 'too_large', /unpacks to more/, { limits })
  const laughs = '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]>'
  await refused(await bookOf(sheetXml('<row><c t="str"><v>&b;</v></c></row>'), laughs), 'invalid', /entities/)
  await refused(await bookOf(sheetXml('<row r="9999999"><c><v>1</v></c></row>')), 'invalid', /no row 9999999/)
  await refused(await bookOf(sheetXml('<row><c r="XFD1"><v>1</v></c></row>')), 'too_large', /columns/)
  await refused(await bookOf('<worksheet><sheetData><row></sheetData>'), 'invalid', /damaged/)
  await refused((await bookOf(sheetXml(''))).subarray(0, 300), 'invalid', /damaged/)
  await refused(Buffer.from('\0\x01\x02binary\0\0'), 'unsupported_type', /neither/)
  await refused('%PDF-1.7 x', 'unsupported_type', /document/)
  await refused('', 'invalid', /empty/)
  await refused('a,b\n"never closed,1\n2,3\n', 'invalid', /quote that begins in row 2/)
  const encrypted = Buffer.concat([Buffer.from('d0cf11e0a1b11ae1', 'hex'), Buffer.from('EncryptedPackage', 'utf16le')])
  await refused(encrypted, 'invalid', /encrypted/)
  await refused(Buffer.from('d0cf11e0a1b11ae1', 'hex'), 'invalid', /damaged/)
  await refused('a\nb\nc\nd\n', 'too_large', /more than 2 rows/, { limits: { ...TABLE_LIMITS, rowsMax: 2 } })
  await refused(deflateRawSync(Buffer.alloc(1_000)), 'unsupported_type', /neither/)
})

t.test('a dimension that lies and a million empty rows cost nothing', async (t) => {
  const rows = '<row/>'.repeat(1_000_000)
  const table = await opened(
    t,
    await bookOf(sheetXml(`<row r="1"><c t="str"><v>n</v></c></row><row r="2"><c><v>1</v></c></row>${rows}`)),
  )
  t.same(await allRows(table), [{ row: 2, cells: [1] }])
})

t.test('a line of a gigabyte ends at its first megabyte', async (t) => {
  let sent = 0
  const endless = async function* () {
    yield Buffer.from('a,b\n1,"')
    for (; sent < 1024; sent++) yield Buffer.alloc(1024 * 1024, 'x')
  }
  const form = csvFormOf([Buffer.from('a,b\n1,2\n')])
  await t.rejects(
    async () => {
      for await (const _row of readCsv(endless(), form, TABLE_LIMITS));
    },
    { code: 'too_large' },
  )
  t.ok(sent < 20, `${sent} MiB were read`)
})

t.test('a thread that needs too much memory ends, and its file is refused', async (t) => {
  const rows = Array.from({ length: 20_000 }, (_, i) => [i, `text ${i}`, i / 3])
  const book = utils.book_new()
  utils.book_append_sheet(book, utils.aoa_to_sheet([['a', 'b', 'c'], ...rows]), 'S')
  const xls = write(book, { type: 'buffer', bookType: 'biff8' }) as Buffer
  await t.rejects(opened(t, xls, { heapMb: 12 }), { code: 'too_large', message: /memory/ })
  const table = await opened(t, xls)
  t.equal((await table.examine({ decimal: '.', dateOrder: 'dmy' })).rows, 20_000)
})

t.test('numbers as people write them', (t) => {
  const same = (text: string, decimal: ',' | '.', value: number | undefined): void =>
    void t.equal(parseNumber(text, decimal), value, text)
  same(' 27,275.25 ', '.', 27275.25)
  same('1.234,5', ',', 1234.5)
  same('1 234,5', ',', 1234.5)
  same("12'345.60", '.', 12345.6)
  same('(12.5)', '.', -12.5)
  same('12,5 %', ',', 0.125)
  same('€ 5', '.', 5)
  same('5 EUR', '.', 5)
  same('-$1,000', '.', -1000)
  same('−3', '.', -3)
  same('1.2.3', '.', undefined)
  same('abc', '.', undefined)
  same('59600  MT', '.', undefined)
  same('1,23', '.', undefined)
  same('1 234,56 zł', ',', 1234.56)
  same('12,50 Kč', ',', 12.5)
  same('kr 12,50', ',', 12.5)
  same('R$ 1.234,50', ',', 1234.5)
  same('US$5', '.', 5)
  same('$(5.00)', '.', -5)
  same('₹ 1,23,456.50', '.', 123456.5)
  same('1.23.456', ',', undefined)
  same('5 kg', '.', undefined)
  t.end()
})

t.test('dates as people write them', (t) => {
  const same = (text: string, order: 'dmy' | 'mdy' | 'ymd', value: object | undefined): void =>
    void t.same(parseMoment(text, order), value, text)
  same('04/05/2019 09:55:45 PM', 'mdy', { date: '2019-04-05', time: '21:55:45' })
  same('04/05/2019', 'dmy', { date: '2019-05-04' })
  same('19-05-04', 'ymd', { date: '2019-05-04' })
  same('06-Sep-11', 'dmy', { date: '2011-09-06' })
  same('September 6th, 2011', 'dmy', { date: '2011-09-06' })
  same('31.12.2026', 'dmy', { date: '2026-12-31' })
  same('31.12.26', 'dmy', { date: '2026-12-31' })
  same('2026-11-20T14:30:00+01:00', 'dmy', { date: '2026-11-20', time: '14:30:00', zone: '+01:00' })
  same('14:30', 'dmy', { time: '14:30:00' })
  same('24. 12. 2026', 'dmy', { date: '2026-12-24' })
  same('2026. 12. 24.', 'dmy', { date: '2026-12-24' })
  same('24th December 2026', 'dmy', { date: '2026-12-24' })
  same('2026-12-24 14:30:00 UTC', 'dmy', { date: '2026-12-24', time: '14:30:00', zone: 'Z' })
  same('Thu, 24 Dec 2026 14:30:00 GMT', 'dmy', { date: '2026-12-24', time: '14:30:00', zone: 'Z' })
  for (const text of ['Thurs, 24 Dec 2026', 'Thursday 24 December 2026', 'thurs. 2026-12-24', 'czw., 24 grudnia 2026'])
    same(text, 'dmy', { date: '2026-12-24' })
  same('Xyz, 24 Dec 2026', 'dmy', undefined)
  same('2026-12-24 14:30:00.5+02', 'dmy', { date: '2026-12-24', time: '14:30:00.5', zone: '+02:00' })
  for (const text of ['12 maja 2026 r.', '12. května 2026', '12. Mai 2026', 'mardi 12 mai 2026', '12 de mayo de 2026'])
    same(text, 'mdy', { date: '2026-05-12' })
  for (const text of [
    'wtorek, 12 MAJA 2026',
    '12 maj 2026',
    '2026. május 12.',
    '12 мая 2026 г.',
    '12. toukokuuta 2026',
  ])
    same(text, 'mdy', { date: '2026-05-12' })
  same('1. červenec 2026', 'dmy', { date: '2026-07-01' })
  same('1. června 2026 14:30', 'dmy', { date: '2026-06-01', time: '14:30:00' })
  same('Mar 12, 2026', 'dmy', { date: '2026-03-12' })
  same('mar 12 mai 2026', 'dmy', { date: '2026-05-12' })
  same('3 Marz 26', 'dmy', { date: '2026-03-03' })
  same('12 majonez 2026', 'dmy', undefined)
  same('12 de 2026', 'dmy', undefined)
  same('08:00-12:00', 'dmy', undefined)
  same(`1${' '.repeat(30_000)}x`, 'dmy', undefined)
  same('31/02/2026', 'dmy', undefined)
  same('not a date', 'dmy', undefined)
  t.end()
})

t.test('each name of a month is one month, in all languages that are read', (t) => {
  for (const language of LANGUAGES)
    for (let month = 0; month < 12; month++)
      for (const style of ['long', 'short'] as const) {
        const name = new Date(Date.UTC(2026, month, 1)).toLocaleString(language, { month: style, timeZone: 'UTC' })
        if (monthOf(name.replace(/\.$/, '')) !== month + 1) t.fail(`${language}: ${name}`)
      }
  t.end()
})

t.test('cells as values', (t) => {
  const reading = { decimal: ',' as const, dateOrder: 'dmy' as const, zone: new ZonedTime('Europe/Berlin') }
  const value = (cell: Cell, type: string, options?: string[]): unknown =>
    understood(cell, { type, options } as never, reading)
  t.same(value('0049 30', 'text'), { value: '0049 30' })
  t.same(value(12345678901234, 'text'), { value: '12345678901234' })
  t.same(value('1,5', 'number'), { value: 1.5 })
  t.same(value('Yes', 'boolean'), { value: true })
  t.same(value('01.02.2026 10:00', 'datetime'), { value: '2026-02-01T09:00:00.000Z' })
  t.same(value({ at: '2026-02-01' }, 'date'), { value: '2026-02-01' })
  t.same(value('52.2, 21', 'coordinate'), { value: { lat: 52.2, lng: 21 } })
  for (const text of ['52,23; 20,98', '52,23 20,98', '(52,23;20,98)', '\u200e52.23, 20.98'])
    t.same(value(text, 'coordinate'), { value: { lat: 52.23, lng: 20.98 } }, text)
  t.same(value('−33,86; 151', 'coordinate'), { value: { lat: -33.86, lng: 151 } })
  t.match(value('52,23, 20,98, 1', 'coordinate'), { expected: /place/ })
  t.same(value('\u202a+48 600 100 200\u202c', 'text'), { value: '+48 600 100 200' }, 'as address books have it')
  t.same(value('\u200fשלום\u200f', 'text'), { value: '\u200fשלום\u200f' })
  t.same(value('\u200e-5,5\u200e', 'number'), { value: -5.5 })
  t.same(value('\u200e24\u200e.\u200e12\u200e.\u200e2026', 'date'), { value: '2026-12-24' })
  t.same(value('٢٤/١٢/٢٠٢٦', 'date'), { value: '2026-12-24' })
  t.same(understood('۱٬۲۳۴٫۵', { type: 'number' }, { ...reading, decimal: '.' }), { value: 1234.5 })
  t.same(value('٥٢٫٢٣، ٢١', 'coordinate'), { value: { lat: 52.23, lng: 21 } })
  t.same(value('غرفة ٣', 'text'), { value: 'غرفة ٣' }, 'a text stays as it is')
  t.same(
    ['نعم', 'לא', 'ANO'].map((text) => value(text, 'boolean')),
    [{ value: true }, { value: false }, { value: true }],
  )
  t.same(value('SHOP', 'option', ['shop']), { value: 'shop' })
  t.same(value('a; B', 'options', ['A', 'b']), { value: ['A', 'b'] })
  t.same(value('E\u0301TE\u0301', 'option', ['\u00e9t\u00e9']), { value: '\u00e9t\u00e9' }, 'as macOS writes it')
  t.same(value('Na\u0303o', 'boolean'), { value: false })
  t.match(value('abc', 'number'), { expected: /number/ })
  t.match(value({ fault: '#N/A' }, 'text'), { expected: /error/ })
  t.same(value('  ', 'number'), { value: undefined })
  t.equal(shownCell({ at: 'x' }), 'x')
  t.end()
})
