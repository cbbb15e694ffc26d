import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { PointBlock } from '../projections/location-history-block.ts'
import { POINTS } from '../src/engines/clickhouse-sql/history-tables.ts'
import { openSchema } from '../src/engines/clickhouse-sql/history-schema.ts'
import { selectPoints } from '../src/engines/clickhouse-sql/points.ts'
import type { EventLog } from '../src/engines/event-log.ts'
import type { HistoryStore } from '../src/engines/history-store.ts'
import type { Find, TableStore } from '../src/engines/table-store.ts'
import { HAS_SPEED, type PointBatch, POINTS_RECORDED } from '../src/features/locations/events.ts'
import { decodePointBatch, encodePointBatch } from '../src/features/locations/point-batch-codec.ts'
import { systemClock } from '../src/kernel/system-clock.ts'
import type { RowChange } from '../src/kernel/table.ts'
import { openHistory, openOwnLog, openTables } from '../src/open-engines.ts'
import { batchOf, uuidOf } from '../test/support/trace-batches.ts'
import { openServers } from './support/stand-ins.ts'
import { seeded } from '../test/support/random.ts'

/**
 * Each port on its embedded engine and on its server, by the same work in the same run, and the ratio of both: `node
 * dist/bench/engines.bench.js [--seconds 2] [--log esdb://… --tables redis://… --history http://…]`. Without URLs, the
 * stand-ins of the tests replace the servers (bench/support/stand-ins.ts). On real servers, give it databases of its own.
 */
const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '2' },
    log: { type: 'string' },
    tables: { type: 'string' },
    history: { type: 'string' },
  },
})
const MEASURE_MS = Number(values.seconds) * 1_000
const PARTITIONS = 16
const BATCH_POINTS = 500
const BLOCK_ROWS = 50_000
const COMMIT_ROWS = 1_000
const ORGANIZATION = uuidOf(`organization ${randomUUID()}`)
const START = Date.parse('2026-05-01T00:00:00Z')

type Figures = Map<string, { value: number; unit: string }>

/** Work units a second, repeated until the time is over, after one round that does not count. */
const rate = async (work: () => Promise<number>): Promise<number> => {
  await work()
  const begun = performance.now()
  let count = 0
  while (performance.now() - begun < MEASURE_MS) count += await work()
  return (count / (performance.now() - begun)) * 1_000
}

const random = seeded(7)
const makeBatch = (first: number): PointBatch =>
  batchOf(
    Array.from({ length: BATCH_POINTS }, (_, i) => ({
      organizationId: ORGANIZATION,
      trackerId: uuidOf(`tracker ${(first + i) % 2_000}`),
      recordedAt: START + Math.floor((first + i) / 2_000) * 1_000,
      latE7: 520_000_000 + Math.floor(random() * 1e6),
      lngE7: 210_000_000 + Math.floor(random() * 1e6),
      flags: HAS_SPEED,
      speedCms: Math.floor(random() * 3_000),
    })),
  )

const measureLog = async (log: EventLog): Promise<Figures> => {
  const prefix = `bench-${randomUUID()}`
  const data = encodePointBatch(makeBatch(0))
  const append = (partition: number, bytes: Uint8Array) =>
    log.append(
      `${prefix}-${partition}`,
      [{ id: randomUUID(), type: POINTS_RECORDED, data: bytes, isJson: false, metadata: {} }],
      'any',
    )
  const all = async (bytes: Uint8Array): Promise<number> => {
    const partitions = Array.from({ length: PARTITIONS }, (_, partition) => partition)
    await Promise.all(partitions.map((partition) => append(partition, bytes)))
    return PARTITIONS
  }
  const small = await rate(() => all(new Uint8Array(1_000)))
  const large = await rate(() => all(data))
  const lone = await rate(async () => {
    await append(PARTITIONS, data)
    return 1
  })
  // Enough to follow for a while, whatever the appends gave.
  for (let i = 0; i < 100; i++) await all(data)
  const begun = performance.now()
  let points = 0
  const follow = async (partition: number): Promise<void> => {
    const ended = new AbortController()
    for await (const { events, caughtUp } of log.follow(
      { stream: `${prefix}-${partition}` },
      undefined,
      ended.signal,
    )) {
      for (const event of events) if (event.data.byteLength !== 1_000) points += decodePointBatch(event.data).count
      if (caughtUp) ended.abort()
    }
  }
  await Promise.all(Array.from({ length: PARTITIONS }, (_, partition) => follow(partition)))
  const caughtUp = (points / (performance.now() - begun)) * 1_000
  for (let partition = 0; partition <= PARTITIONS; partition++) await log.erase(`${prefix}-${partition}`)
  return new Map([
    ['append of 1 kB, 16 streams', { value: small, unit: 'appends/s' }],
    [`append of ${BATCH_POINTS} points, 16 streams`, { value: large * BATCH_POINTS, unit: 'points/s' }],
    [`append of ${BATCH_POINTS} points, alone`, { value: lone, unit: 'appends/s' }],
    ['catch-up of 16 location streams, decoded', { value: caughtUp, unit: 'points/s' }],
  ])
}

const QUESTION: Find = {
  where: { status: 'open', hubId: 'hub-3' },
  sort: { field: 'createdAt', order: 'desc' },
  limit: 20,
  total: true,
}

const measureTables = async (tables: TableStore): Promise<Figures> => {
  await tables.declare({
    name: 'bench',
    version: 1,
    equality: ['hubId', 'status'],
    range: ['createdAt'],
    text: ['name'],
  })
  const scope = ORGANIZATION
  let no = 0
  const ids: string[] = []
  const row = (): RowChange => {
    const id = uuidOf(`row ${no++}`)
    ids.push(id)
    const status = ['open', 'done', 'late'][Math.floor(random() * 3)]
    const hubId = `hub-${Math.floor(random() * 20)}`
    const name = `Task ${Math.floor(random() * 10_000)} in zone ${Math.floor(random() * 300)}`
    return { table: 'bench', scope, id, row: { hubId, status, name, createdAt: Math.floor(random() * 1e9) } }
  }
  const writes = await rate(async () => {
    await tables.commit(Array.from({ length: COMMIT_ROWS }, row))
    return COMMIT_ROWS
  })
  const gets = await rate(async () => {
    const some = Array.from({ length: 32 }, () => ids[Math.floor(random() * ids.length)])
    await Promise.all(some.map((id) => tables.get('bench', scope, id)))
    return some.length
  })
  const pages = await rate(async () => {
    await Promise.all(Array.from({ length: 8 }, () => tables.find('bench', scope, QUESTION)))
    return 8
  })
  return new Map([
    [`writes, commits of ${COMMIT_ROWS.toLocaleString('en')} rows`, { value: writes, unit: 'rows/s' }],
    ['reads by id, 32 at once', { value: gets, unit: 'rows/s' }],
    ['pages of 20 with total, 8 at once', { value: pages, unit: 'pages/s' }],
  ])
}

const measureHistory = async (history: HistoryStore): Promise<Figures> => {
  await openSchema(history, { days: 36_500, runDays: 36_500 })
  const batches = Array.from({ length: BLOCK_ROWS / BATCH_POINTS }, (_, i) => makeBatch(i * BATCH_POINTS))
  const block = new PointBlock(BLOCK_ROWS)
  let revision = 0
  const inserts = await rate(async () => {
    block.clear()
    revision++
    for (const batch of batches) {
      // Each block is of the next hour: rows are new ones.
      const recordedAt = batch.recordedAt.map((at) => at + revision * 3_600_000) as Float64Array
      block.add({ ...batch, recordedAt }, 0, revision)
    }
    await history.insert(POINTS, block.encode(), `bench ${ORGANIZATION} ${revision}`)
    return BLOCK_ROWS
  })
  const { sql, parameters } = selectPoints(
    { organizationId: ORGANIZATION, trackerIds: [uuidOf('tracker 7')], from: START, to: START + 86_400_000 },
    { order: 'asc', limit: 500 },
  )
  const pages = await rate(async () => {
    await Promise.all([1, 2, 3, 4].map(() => history.rows(sql, parameters)))
    return 4
  })
  await history.erase([{ organizationId: ORGANIZATION }])
  return new Map([
    [`inserts, blocks of ${BLOCK_ROWS.toLocaleString('en')} points`, { value: inserts, unit: 'points/s' }],
    ["a tracker's day, 4 at once", { value: pages, unit: 'answers/s' }],
  ])
}

const folder = mkdtempSync(join(tmpdir(), 'engines-bench-'))
const servers = await openServers(folder, values)
const embedded = {
  dataPath: join(folder, 'embedded'),
  logUrl: 'lmdb:',
  tablesUrl: 'lmdb:',
  historyUrl: 'chdb:',
  filesUrl: 'file:',
}
const { log, tables, history } = servers.urls
const served = { ...embedded, logUrl: log, tablesUrl: tables, historyUrl: history }

const PORTS = {
  log: async (urls: typeof embedded) => {
    const opened = await openOwnLog(urls, systemClock, randomUUID)
    return { measured: await measureLog(opened), opened }
  },
  tables: async (urls: typeof embedded) => {
    const opened = await openTables(urls, systemClock)
    return { measured: await measureTables(opened), opened }
  },
  history: async (urls: typeof embedded) => {
    const opened = await openHistory(urls)
    return { measured: await measureHistory(opened), opened }
  },
}

try {
  for (const [name, measure] of Object.entries(PORTS)) {
    const own = await measure(embedded)
    await own.opened.close()
    const other = await measure(served)
    await other.opened.close()
    const url = servers.urls[name as keyof typeof servers.urls]
    console.log(`${name}: embedded, ${values[name as 'log'] === undefined ? 'stand-in' : new URL(url).host}, ratio`)
    for (const [what, { value, unit }] of own.measured) {
      const { value: there } = other.measured.get(what)!
      const cells = [value, there].map((figure) => Math.round(figure).toLocaleString('en').padStart(12))
      console.log(`  ${what.padEnd(44)} ${cells.join(' ')} ${unit.padEnd(10)} ${(there / value).toFixed(2)}`)
    }
  }
} finally {
  await servers.close()
  rmSync(folder, { recursive: true, force: true })
}
