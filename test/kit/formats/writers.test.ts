import { Buffer } from 'node:buffer'
import { read, utils } from '@e965/xlsx'
import { parse } from 'csv-parse/sync'
import t from 'tap'
import { listed } from '../../../src/kit/formats/cell-values.ts'
import { columnName } from '../../../src/kit/formats/column-name.ts'
import { csvFormOf, readCsv } from '../../../src/kit/formats/csv-reader.ts'
import { csvWriter } from '../../../src/kit/formats/csv-writer.ts'
import { geojsonWriter, gpxWriter, jsonWriter } from '../../../src/kit/formats/feature-writers.ts'
import { openTable } from '../../../src/kit/formats/open-table.ts'
import { TABLE_LIMITS } from '../../../src/kit/formats/table-cells.ts'
import { cellOf, type TableWriter, type WrittenCell, writeTable } from '../../../src/kit/formats/table-writer.ts'
import { xlsxInThread } from '../../../src/kit/formats/xlsx-thread.ts'
import { xlsxWriter } from '../../../src/kit/formats/xlsx-writer.ts'
import { ZonedTime } from '../../../src/kernel/zoned-time.ts'
import { systemClock } from '../../../src/kernel/system-clock.ts'
import { zipOf } from '../../support/zip-of.ts'

const bytesOf = async (writer: TableWriter, ...pages: WrittenCell[][][]): Promise<Buffer> => {
  const pieces: Buffer[] = []
  const source = async function* () {
    yield* pages
  }
  for await (const piece of writeTable(writer, source())) pieces.push(Buffer.from(piece))
  return Buffer.concat(pieces)
}

const readAgain = async (bytes: Uint8Array): Promise<unknown[]> => {
  const source = async function* () {
    yield bytes
  }
  const table = await openTable(source(), { clock: systemClock, signal: new AbortController().signal })
  const rows: unknown[] = []
  for await (const page of table.pages()) rows.push(...page.map(({ cells }) => cells))
  await table.close()
  return [table.columns, ...rows]
}

const AT = new Date('2026-07-01T10:00:00.250Z')
const ROWS: WrittenCell[][] = [
  ['=1+1', -5, true, AT, ' two\n"lines" '],
  ['<b>&amp;_x000D_', 0.1, false, null, 'źdźbło 漢字 \u{1f600}'],
  ['-12', 1e21, undefined, undefined, '\u0001x'],
]
const HEADER = ['@text', 'number', 'boolean', 'time', 'further']

t.test('csv: quoted, formulas harmless, numbers numbers', async (t) => {
  const text = (await bytesOf(csvWriter({ header: HEADER, timeZone: 'Europe/Berlin' }), ROWS)).toString()
  const rows = parse(text) as string[][]
  t.same(rows[0], ["'@text", 'number', 'boolean', 'time', 'further'])
  t.same(rows[1], ["'=1+1", '-5', 'true', '2026-07-01T12:00:00.250+02:00', ' two\n"lines" '])
  t.same(rows[3].slice(0, 2), ["'-12", '1e+21'])
  const semicolons = (await bytesOf(csvWriter({ header: ['a', 'b'], delimiter: ';' }), [['1,5;', 'x']])).toString()
  t.equal(semicolons, 'a;b\r\n"1,5;";x\r\n')
})

t.test('csv: formulas are harmless also behind blanks and line breaks, and with full-width signs', async (t) => {
  const formulas = [' =1+1', '\u00a0=1', '\n=1', '\ufeff@x', '＝1+1', '＋1', '－1', '＠x']
  const texts = ['a =1', '1-1', '"=1"', '#=1', '']
  const rows = [...formulas, ...texts].map((text) => [text])
  const [, ...read] = parse((await bytesOf(csvWriter({ header: ['a'] }), rows)).toString(), {
    skip_empty_lines: false,
  }) as string[][]
  t.same(read.flat(), [...formulas.map((text) => `'${text}`), ...texts])
})

t.test('times of the last local day that there is', async (t) => {
  const rows = [[new Date('9999-12-31T22:59:59Z')], [new Date('9999-12-31T23:00:00Z')]]
  const options = { header: ['at'], sheet: 'S', timeZone: 'Europe/Warsaw' }
  t.same(parse((await bytesOf(csvWriter(options), rows)).toString()), [
    ['at'],
    ['9999-12-31T23:59:59.000+01:00'],
    ['9999-12-31T23:00:00.000Z'],
  ])
  const [, inside, beyond] = (await readAgain(await bytesOf(xlsxWriter(options), rows))) as unknown[][]
  t.match(inside, [{ at: /^9999-12-31T23:59:59/ }])
  t.same(beyond, ['9999-12-31T23:00:00.000Z'], 'workbooks have no year 10000')
})

t.test('csv: what is read again is what was written, formulas and phone numbers too', async (t) => {
  const rows = [
    ['+48 600 100 200', '-5', '@x', '=1+1'],
    ['\tx', "'quoted'", "'", '--'],
    ["'=1", "''=1", ' =1', '＝1'],
  ]
  const bytes = await bytesOf(csvWriter({ header: ['=a', 'b', 'c', 'd'] }), rows)
  const read: unknown[] = []
  for await (const { cells } of readCsv([bytes], csvFormOf([bytes]), TABLE_LIMITS)) read.push(cells)
  t.same(read, [['=a', 'b', 'c', 'd'], ...rows])
})

t.test('xlsx: times of the first months of 1900 are read again as they were, earlier ones are texts', async (t) => {
  const times = ['1900-01-01T00:00:00', '1900-02-28T23:59:59', '1900-03-01T00:00:00', '2026-07-01T10:00:00']
  const rows = times.map((time): WrittenCell[] => [new Date(`${time}Z`)])
  const read = (await readAgain(await bytesOf(xlsxWriter({ header: ['at'], sheet: 'Times' }), rows))) as unknown[][]
  t.match(
    read.slice(1).map(([cell]) => (cell as { at: string }).at.slice(0, 19)),
    times,
  )
  const early = [[new Date('1899-12-31T23:59:59Z')]]
  t.same(await readAgain(await bytesOf(xlsxWriter({ header: ['at'], sheet: 'Times' }), early)), [
    ['at'],
    ['1899-12-31T23:59:59.000Z'],
  ])
})

t.test('xlsx: what is read again is what was written, also what its XML cannot hold as it is', async (t) => {
  const rows = [['a_x0041_b', '_x005F_', 'one\r\ntwo', 'x_x00e9_x00e9_', '_x41_ & _X0041_']]
  const header = ['t_x0041_', 'b', 'c', 'd', 'e']
  t.same(await readAgain(await bytesOf(xlsxWriter({ header, sheet: 'Texts' }), rows)), [header, ...rows])
  const cell = (text: string, type: string): string =>
    `<c t="${type}">${type === 'str' ? `<v>${text}</v>` : `<is><t>${text}</t></is>`}</c>`
  const sheet = `<row>${cell('a_x0041_', 'inlineStr')}</row><row>${cell('one_x000D_\ntwo', 'str')}</row>`
  const typed = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships'
  const byHand = zipOf({
    'xl/workbook.xml': `<workbook xmlns:r="${typed}"><sheets><sheet name="S" sheetId="1" r:id="r1"/></sheets></workbook>`,
    'xl/_rels/workbook.xml.rels': `<Relationships><Relationship Id="r1" Type="${typed}/worksheet" Target="s.xml"/></Relationships>`,
    'xl/s.xml': `<worksheet><sheetData>${sheet}</sheetData></worksheet>`,
  })
  t.same(await readAgain(byHand), [['aA'], ['one\r\ntwo']])
})

t.test('xlsx: an independent reader finds the same values; no text is a formula', async (t) => {
  const bytes = await bytesOf(xlsxWriter({ header: HEADER, sheet: 'Tasks: [all]' }), ROWS.slice(0, 1), ROWS.slice(1))
  const book = read(bytes, { cellDates: false, cellFormula: true })
  t.same(book.SheetNames, ['Tasks   all'])
  const sheet = book.Sheets[book.SheetNames[0]]
  t.equal(sheet.A2.t, 's')
  t.equal(sheet.A2.f, undefined)
  const found = utils.sheet_to_json<unknown[]>(sheet, { header: 1, raw: true })
  t.same(found[0], HEADER)
  t.same(found[1].slice(0, 3), ['=1+1', -5, true])
  t.equal(Math.round(((found[1][3] as number) - 25_569) * 86_400_000), AT.getTime())
  t.equal(found[1][4], ' two\n"lines" ')
  t.equal(found[2][0], '<b>&amp;_x000D_')
  t.equal(found[2][4], 'źdźbło 漢字 \u{1f600}')
  t.equal(found[3][4], 'x')
})

t.test('xlsx: names of sheets keep to the length that spreadsheets take', async (t) => {
  const nameOf = async (sheet: string): Promise<string> =>
    read(await bytesOf(xlsxWriter({ header: ['n'], sheet }), [[1]])).SheetNames[0]
  t.equal(await nameOf('\u{1f600}'.repeat(30)), '\u{1f600}'.repeat(12), 'in UTF-16, no character cut')
  t.equal(await nameOf('x'.repeat(30)), 'x'.repeat(25))
})

t.test('xlsx: rows beyond a sheet go on in the next one', async (t) => {
  const rows = Array.from({ length: 7 }, (_, i): WrittenCell[] => [i])
  const book = read(await bytesOf(xlsxWriter({ header: ['n'], sheet: 'S' }, 4), rows))
  const found = book.SheetNames.flatMap((name) => utils.sheet_to_json<{ n: number }>(book.Sheets[name]))
  t.same(book.SheetNames, ['S', 'S (2)', 'S (3)'])
  t.same(
    found.map(({ n }) => n),
    [0, 1, 2, 3, 4, 5, 6],
  )
})

t.test('xlsx, in the thread: workbooks at the same time, one given up, a cell that nobody can write', async (t) => {
  const numbers = (from: number): WrittenCell[][] => Array.from({ length: 300 }, (_, i) => [from + i])
  const given = xlsxInThread({ header: ['n'], sheet: 'Given up' })
  await given.start()
  const inThread = (from: number): Promise<Buffer> =>
    bytesOf(xlsxInThread({ header: ['n'], sheet: 'S' }), numbers(from), numbers(from + 300))
  const books = await Promise.all([inThread(0), inThread(10_000), given.rows(numbers(0))])
  given.close?.()
  await t.rejects(given.rows(numbers(0)) as Promise<unknown>, TypeError, 'it is gone')
  for (const [i, from] of [0, 10_000].entries()) {
    const found = utils.sheet_to_json<{ n: number }>(read(books[i]).Sheets.S)
    t.same([found.length, found[0].n, found[599].n], [600, from, from + 599])
  }
  const zoneless = xlsxInThread({ header: ['n'], sheet: 'S', timeZone: 'Mars/Olympus' })
  await t.rejects(bytesOf(zoneless, numbers(0)), RangeError)
  t.same(
    read(await bytesOf(xlsxInThread({ header: HEADER, sheet: 'T' }), ROWS)).SheetNames,
    ['T'],
    'the thread goes on',
  )
})

t.test('an empty table has its header', async (t) => {
  t.equal((await bytesOf(csvWriter({ header: ['a', 'b'] }))).toString(), 'a,b\r\n')
  const book = read(await bytesOf(xlsxWriter({ header: ['a', 'b'], sheet: '' })))
  t.same(utils.sheet_to_json(book.Sheets.Sheet, { header: 1 }), [['a', 'b']])
})

t.test('json, GeoJSON and GPX', (t) => {
  const all = <Row>(writer: { start(): string; rows(rows: Row[]): string; end(): string }, ...pages: Row[][]): string =>
    writer.start() + pages.map((rows) => writer.rows(rows)).join('') + writer.end()
  t.same(JSON.parse(all(jsonWriter(), [{ a: 1 }], [{ a: 2 }])), [{ a: 1 }, { a: 2 }])
  t.same(JSON.parse(all(jsonWriter())), [])
  const row = { id: 'i', name: 'A & <B>', time: '2026-01-01T00:00:00Z', lat: 1.5, lng: 2, properties: { a: 1 } }
  t.same(JSON.parse(all(geojsonWriter(), [row])).features[0].geometry.coordinates, [2, 1.5])
  t.match(
    all(gpxWriter(), [row]),
    '<wpt lat="1.5" lon="2"><time>2026-01-01T00:00:00Z</time><name>A &amp; &lt;B&gt;</name>',
  )
  t.end()
})

t.test('a list is read as it was written: a comma within one of several divides nothing', (t) => {
  for (const list of [['x', 'y, z'], ['one'], ['a|b', 'c'], ['ä', '1', '2']]) t.same(listed(String(cellOf(list))), list)
  t.same(listed('a, b'), ['a', 'b'])
  t.same(listed(' a |b|'), ['a', 'b'])
  t.end()
})

t.test('cells of values', (t) => {
  t.equal(cellOf({ lat: 1, lng: 2 }), '1, 2')
  t.equal(cellOf({ lat: -1e-7, lng: 12.5e-8 }), '-0.0000001, 0.000000125', 'no exponent')
  t.equal(cellOf({ lat: 0, lng: -0 }), '0, 0')
  const near = { id: 'x', lat: 1e-7, lng: -179.9999999, properties: {} }
  t.match(gpxWriter().rows([near]), '<wpt lat="0.0000001" lon="-179.9999999">')
  t.equal(cellOf(['a', 'b']), 'a; b')
  t.equal(cellOf({ from: 1 }), '{"from":1}')
  t.equal(cellOf(undefined), null)
  t.equal(columnName(0) + columnName(25) + columnName(26) + columnName(16_383), 'AZAAXFD')
  t.end()
})

t.test('time zones: offsets, gaps and hours that come twice', (t) => {
  const zone = new ZonedTime('Europe/Berlin')
  t.equal(zone.text(Date.UTC(2026, 0, 1)), '2026-01-01T01:00:00.000+01:00')
  t.equal(new ZonedTime('UTC').text(0), '1970-01-01T00:00:00.000Z')
  const moment = (local: string): string => new Date(zone.momentOf(Date.parse(`${local}Z`))).toISOString()
  t.equal(moment('2026-07-01T12:00:00'), '2026-07-01T10:00:00.000Z')
  t.equal(moment('2026-03-29T02:30:00'), '2026-03-29T01:00:00.000Z')
  t.equal(moment('2026-10-25T02:30:00'), '2026-10-25T00:30:00.000Z')
  // Its clocks were set back a minute after midnight.
  t.equal(new ZonedTime('America/St_Johns').text(Date.UTC(2010, 10, 7, 2, 32)), '2010-11-06T23:02:00.000-03:30')
  t.end()
})
