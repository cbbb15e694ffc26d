import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { csvWriter } from '../../src/kit/formats/csv-writer.ts'
import { type WrittenCell, writeTable } from '../../src/kit/formats/table-writer.ts'
import { xlsxWriter } from '../../src/kit/formats/xlsx-writer.ts'
import { ended, sendFile } from '../../test/support/import-calls.ts'
import { ask, call, type Json, type Service, until } from '../../test/support/service.ts'
import { FLEET, generate, onFreshService, option, round } from './fresh-service.ts'
import type { LoadPlan, LoadResult } from './generator.ts'
import { cpuSecondsOf } from './process-figures.ts'
import { ORDER_HEADER, orderOf } from '../support/orders.ts'

/**
 * Imports and exports of the whole service: their cost, the time for which they block the event loop, and their effect on
 * ingest and live views. Usage: node dist/bench/load/run-files.js [--rows 50000] [--seconds 10] [--points 5000] [--rounds 2]
 */
const rowsCount = option('rows', 50_000)
const measureMs = option('seconds', 10) * 1000
const pointsPerSecond = option('points', 5_000)
const rounds = option('rounds', 2)
const TYPE = {
  name: 'Orders',
  primaryKey: 'number',
  fields: [
    { name: 'number', type: 'text' },
    { name: 'name', type: 'text' },
    { name: 'address', type: 'text' },
    { name: 'price', type: 'number' },
    { name: 'paid', type: 'boolean' },
    { name: 'delivered', type: 'datetime' },
  ],
}
const LONG_MS = 10

/** Rows of the imports and exports that come before the measured ones, which would hold the compiler's work. Up to 5,000 are exported without a job. */
const WARMUP_ROWS = 5_500

async function* pages(from: number, rows: number): AsyncGenerator<WrittenCell[][]> {
  for (let at = 0; at < rows; at += 500)
    yield Array.from({ length: Math.min(500, rows - at) }, (_, i) => orderOf(from + at + i))
}

const fileOf = async (format: 'csv' | 'xlsx', from: number, rows = rowsCount): Promise<Buffer> => {
  const writer =
    format === 'csv'
      ? csvWriter({ header: ORDER_HEADER })
      : xlsxWriter({ header: ORDER_HEADER, sheet: 'Orders', timeZone: 'UTC' })
  const pieces: Buffer[] = []
  for await (const piece of writeTable(writer, pages(from, rows))) pieces.push(Buffer.from(piece as Uint8Array))
  return Buffer.concat(pieces)
}

interface Office {
  service: Service
  token: string
  dataTypeId: string
}

/** Answers the number of rows, as `exportOne` does. */
const importOne = async ({ service, token, dataTypeId }: Office, file: Buffer, rows = rowsCount): Promise<number> => {
  const form = { type: 'datasource', dataTypeId, mode: 'upsert' }
  const { status, text, json } = await sendFile(service, token, file, form)
  if (status !== 202) throw new Error(`${status} ${text}`)
  const { succeeded, errors } = await ended(service, token, json.data._id)
  if (succeeded !== rows) throw new Error(`${succeeded} rows were imported: ${JSON.stringify(errors.slice(0, 3))}`)
  return rows
}

const exportOne = async ({ service, token, dataTypeId }: Office, format: string): Promise<number> => {
  const { status, json, text } = await call(service, 'POST', '/data/export', { token, body: { dataTypeId, format } })
  if (status !== 202) throw new Error(`${status} ${text.slice(0, 300)}`)
  let ended: Json
  await until('the end of the export', async () => {
    ended = (await ask(service, 'GET', `/tasks/export-log/${json.data._id}`, { token })).data
    if (ended.status === 'failed') throw new Error('the export failed')
    return ended.downloadPath !== undefined
  })
  await call(service, 'GET', ended.downloadPath.replace('/api/v3', ''))
  return ended.rows
}

const warmUp = async (office: Office): Promise<void> => {
  await importOne(office, await fileOf('csv', 2 * rowsCount, WARMUP_ROWS), WARMUP_ROWS)
  await importOne(office, await fileOf('xlsx', 2 * rowsCount, WARMUP_ROWS), WARMUP_ROWS)
  for (const format of ['csv', 'xlsx', 'json', 'csv', 'json']) await exportOne(office, format)
}

/** Long turns of the event loop between two moments. */
const turnsOf = (file: string, from: number, to: number): number[] =>
  existsSync(file)
    ? readFileSync(file, 'utf8')
        .split('\n')
        .map((line) => line.split(' ').map(Number))
        .filter(([at, ms]) => at >= from && at <= to && ms >= LONG_MS)
        .map(([, ms]) => ms)
    : []

const TOLD_AFTER_MS = 500

/** Cost of a piece of work for the service, in processor time, and the time for which it blocked the event loop. */
const measured = async (office: Office, turnsFile: string, work: () => Promise<number>): Promise<object> => {
  const pid = office.service.process.pid as number
  const before = cpuSecondsOf(pid)
  const from = Date.now()
  const rows = await work()
  const to = Date.now()
  const after = cpuSecondsOf(pid)
  await new Promise((resume) => setTimeout(resume, TOLD_AFTER_MS))
  const turns = turnsOf(turnsFile, from, to)
  const main = (after.get('main') as number) - (before.get('main') as number)
  return {
    rows,
    'passed, s': round((to - from) / 1000),
    'rows a second of the main thread': Math.round(rows / main),
    [`turns over ${LONG_MS} ms`]: turns.length,
    'longest turn, ms': round(Math.max(0, ...turns)),
  }
}

const planOf = ({ service, token }: Office, key: string): LoadPlan => ({
  port: service.port,
  bearers: [key],
  connections: 20,
  window: 64,
  framePoints: 10,
  fleet: FLEET,
  named: true,
  warmupMs: 3_000,
  measureMs,
  pointsPerSecond,
  viewers: { count: 50, intervalMs: 100, token, viewportShare: 0.01 },
})

const p99Of = ({ ackMs, liveMs }: LoadResult) => ({
  'acknowledged, p99 ms': round(ackMs.p99),
  'seen, p99 ms': round(liveMs?.p99 as number),
})

/** The same load without and with consecutive imports and exports during all of it. */
const beside = async (office: Office, key: string, file: Buffer): Promise<object> => {
  const alone = p99Of(await generate(planOf(office, key)))
  let isOver = false
  const keep = async (work: () => Promise<number>): Promise<void> => {
    while (!isOver) await work()
  }
  const files = Promise.all([keep(() => importOne(office, file)), keep(() => exportOne(office, 'xlsx'))])
  const shared = p99Of(await generate(planOf(office, key)))
  isOver = true
  await files
  return { alone, 'beside an import and an export': shared }
}

const folder = mkdtempSync(join(tmpdir(), 'waymark-files-'))
const turnsPath = join(folder, 'turns')
process.env.LOOP_TURNS = turnsPath
process.env.NODE_OPTIONS = `--import ${fileURLToPath(new URL('../support/loop-turns.js', import.meta.url))}`
try {
  const rows: { [name: string]: unknown } = {}
  await onFreshService(rows, option('fences', 1_000), async ({ service, token, key }) => {
    const dataTypeId = (await ask(service, 'POST', '/data-type', { token, body: TYPE })).data._id
    const office = { service, token, dataTypeId }
    const turnsFile = `${turnsPath}.${service.process.pid}`
    const show = (name: string, found: object): void => console.log(name, JSON.stringify(found))
    const csv = await fileOf('csv', 0)
    const xlsx = await fileOf('xlsx', rowsCount)
    await warmUp(office)
    show('import of csv', await measured(office, turnsFile, () => importOne(office, csv)))
    show('import of csv, all there', await measured(office, turnsFile, () => importOne(office, csv)))
    show('import of xlsx', await measured(office, turnsFile, () => importOne(office, xlsx)))
    for (const format of ['csv', 'xlsx', 'json'])
      show(`export of ${format}`, await measured(office, turnsFile, () => exportOne(office, format)))
    for (let i = 0; i < rounds; i++) show('load', await beside(office, key, csv))
  })
} finally {
  rmSync(folder, { recursive: true, force: true })
}
