import { parse } from 'csv-parse'
import { Readable } from 'node:stream'
import { parseArgs } from 'node:util'
import { csvWriter } from '../src/kit/formats/csv-writer.ts'
import { openTable } from '../src/kit/formats/open-table.ts'
import { type TableWriter, type WrittenCell, writeTable } from '../src/kit/formats/table-writer.ts'
import { xlsxWriter } from '../src/kit/formats/xlsx-writer.ts'
import { systemClock } from '../src/kernel/system-clock.ts'
import { cpuMs } from './support/measure.ts'
import { ORDER_HEADER, orderOf } from './support/orders.ts'

/**
 * Files in, files out: `node dist/bench/files.bench.js [--rows 200000]`. Rows of six columns are written as csv and
 * xlsx, and read again as an import does, in a thread, beside the bare reader of csv on the same bytes. Rows are counted
 * by processor time of all threads; memory is the maximum growth of the process, the bytes of the file included.
 */
const { values } = parseArgs({ options: { rows: { type: 'string', default: '200000' } } })
const ROWS = Number(values.rows)
const PAGE_ROWS = 500
const MB = 1024 * 1024
const SAMPLE_MS = 20

async function* pages(): AsyncGenerator<WrittenCell[][]> {
  for (let from = 0; from < ROWS; from += PAGE_ROWS)
    yield Array.from({ length: Math.min(PAGE_ROWS, ROWS - from) }, (_, i) => orderOf(from + i))
}

const measured = async <Result>(name: string, work: () => Promise<Result>): Promise<Result> => {
  const before = process.memoryUsage.rss()
  let most = before
  const look = (): void => void (most = Math.max(most, process.memoryUsage.rss()))
  const timer = setInterval(look, SAMPLE_MS)
  const begun = process.cpuUsage()
  const result = await work()
  const ms = cpuMs(begun)
  clearInterval(timer)
  look()
  const perSecond = Math.round((ROWS / ms) * 1_000).toLocaleString('en')
  console.log(`${name}: ${perSecond} rows a second of processor, ${Math.round((most - before) / MB)} MB`)
  return result
}

const write = (name: string, writer: TableWriter): Promise<Buffer> =>
  measured(name, async () => {
    const pieces: Buffer[] = []
    for await (const piece of writeTable(writer, pages())) pieces.push(Buffer.from(piece as Uint8Array))
    return Buffer.concat(pieces)
  })

async function* piecesOf(bytes: Buffer): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += 64 * 1024) yield bytes.subarray(at, at + 64 * 1024)
}

/** As an import: first all of it is examined, then its rows are taken. */
const read = (name: string, bytes: Buffer): Promise<void> =>
  measured(name, async () => {
    const { signal } = new AbortController()
    const table = await openTable(piecesOf(bytes), {
      clock: systemClock,
      signal,
      expected: ORDER_HEADER,
      deadlineMs: 3_600_000,
    })
    let rows = 0
    await table.examine({ decimal: '.', dateOrder: 'dmy' })
    for await (const page of table.pages()) rows += page.length
    await table.close()
    if (rows !== ROWS) throw new Error(`${rows} rows were read`)
  })

const bare = (bytes: Buffer): Promise<void> =>
  measured('csv-parse alone', async () => {
    let rows = 0
    for await (const _row of Readable.from(piecesOf(bytes)).pipe(parse())) rows++
    if (rows !== ROWS + 1) throw new Error(`${rows} rows were parsed`)
  })

const csv = await write('csv written', csvWriter({ header: ORDER_HEADER }))
const xlsx = await write('xlsx written', xlsxWriter({ header: ORDER_HEADER, sheet: 'Customers', timeZone: 'UTC' }))
console.log(`${ROWS} rows: ${Math.round(csv.length / MB)} MB of csv, ${Math.round(xlsx.length / MB)} MB of xlsx`)
for (let round = 0; round < 2; round++) {
  await bare(csv)
  await read('csv read', csv)
}
await read('xlsx read', xlsx)
