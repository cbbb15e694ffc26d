import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { pathToFileURL } from 'node:url'
import { openLmdbEventLog } from '../src/engines/lmdb-log/lmdb-log.ts'
import { openLmdbTableStore } from '../src/engines/lmdb-tables/lmdb-tables.ts'
import type { EventLog, Source } from '../src/engines/event-log.ts'
import type { Find, TableStore } from '../src/engines/table-store.ts'
import type { RowChange } from '../src/kernel/table.ts'
import { systemClock } from '../src/kernel/system-clock.ts'
import { idFrom } from '../src/kit/commands/ids.ts'
import { seeded } from '../test/support/random.ts'

/**
 * The embedded event log with sync, from small events to batches of points, and its followers; the embedded tables,
 * from commits of 50,000 rows to one page of them. Each row has the longest block of the event loop in 99 of 100 turns.
 */
interface Row {
  name: string
  value: number
  unit: string
}

const SECONDS = 2
const PARTITIONS = 16
const ROWS = 50_000

const measured = async (name: string, unit: string, work: () => Promise<number>): Promise<Row[]> => {
  const delay = monitorEventLoopDelay({ resolution: 1 })
  const cpuBefore = process.cpuUsage()
  const begun = performance.now()
  delay.enable()
  const count = await work()
  delay.disable()
  const seconds = (performance.now() - begun) / 1000
  const { user, system } = process.cpuUsage(cpuBefore)
  return [
    { name, value: count / seconds, unit },
    { name: '  CPU of all threads', value: (user + system) / count, unit: 'µs each' },
    { name: '  event loop kept, p99', value: delay.percentile(99) / 1e6, unit: 'ms' },
  ]
}

let idCount = 0

const append = async (log: EventLog, atOnce: number, bytes: number): Promise<number> => {
  const data = new Uint8Array(bytes).fill(7)
  const metadata = { organizationId: idFrom('bench', 'organization'), actor: 'ingest' }
  const end = performance.now() + SECONDS * 1000
  let count = 0
  const writer = async (no: number): Promise<void> => {
    while (performance.now() < end) {
      const event = {
        id: `00000000-0000-7000-8000-${(idCount++).toString(16).padStart(12, '0')}`,
        type: 'pointsRecorded.v1',
        data,
        isJson: false,
        metadata,
      }
      count += 1
      await log.append(`locations-${no % PARTITIONS}`, [event], 'any')
    }
  }
  await Promise.all(Array.from({ length: atOnce }, (_, no) => writer(no)))
  return count
}

const followAll = async (log: EventLog, source: Source): Promise<number> => {
  const ended = new AbortController()
  let count = 0
  for await (const batch of log.follow(source, undefined, ended.signal)) {
    count += batch.events.length
    if (batch.caughtUp) ended.abort()
  }
  return count
}

const benchLog = async (folder: string): Promise<Row[]> => {
  const log = await openLmdbEventLog({ path: join(folder, 'log'), clock: systemClock })
  const rows = [
    ...(await measured('append 100 B, 1 in flight', 'appends/s', () => append(log, 1, 100))),
    ...(await measured('append 100 B, 1000 in flight', 'appends/s', () => append(log, 1000, 100))),
    ...(await measured('append 10 kB, 16 in flight', 'appends/s', () => append(log, 16, 10_000))),
    ...(await measured('append 10 kB, 400 in flight', 'appends/s', () => append(log, 400, 10_000))),
    ...(await measured('follow one stream', 'events/s', () => followAll(log, { stream: 'locations-3' }))),
    ...(await measured('follow a prefix', 'events/s', () => followAll(log, { prefixes: ['locations-1'] }))),
  ]
  await log.close()
  return rows
}

const taskRow = (random: () => number, no: number): RowChange => ({
  table: 'tasks',
  scope: 'o',
  id: idFrom('bench', 'task', no),
  row: {
    hubId: `hub-${Math.floor(random() * 20)}`,
    status: ['open', 'done', 'late'][Math.floor(random() * 3)],
    name: `Task ${Math.floor(random() * 10_000)} in zone ${Math.floor(random() * 300)}`,
    createdAt: Math.floor(random() * 1e9),
  },
})

const QUESTIONS: { [name: string]: Find } = {
  'page of 20 by name, one of three states, total': {
    where: { status: 'open' },
    sort: { field: 'name', order: 'asc' },
    limit: 20,
    total: true,
  },
  'page of 20, state and hub, newest first, total': {
    where: { status: 'open', hubId: 'hub-3' },
    sort: { field: 'createdAt', order: 'desc' },
    limit: 20,
    total: true,
  },
  'page of 20, two words, by name, total': {
    text: 'task 12',
    sort: { field: 'name', order: 'asc' },
    limit: 20,
    total: true,
  },
  'page 1000 by name': { sort: { field: 'name', order: 'asc' }, limit: 20, offset: 20_000 },
}

const askOften = async (store: TableStore, question: Find): Promise<number> => {
  for (let asked = 0; asked < 50; asked += 1) await store.find('tasks', 'o', question)
  return 50
}

const benchTables = async (folder: string): Promise<Row[]> => {
  const store = await openLmdbTableStore({ path: join(folder, 'tables'), clock: systemClock })
  await store.declare({
    name: 'tasks',
    version: 1,
    equality: ['hubId', 'status'],
    range: ['name', 'createdAt'],
    text: ['name'],
  })
  const random = seeded(1)
  const commit = async (no: number): Promise<number> => {
    await store.commit(changes[no] as RowChange[])
    return ROWS
  }
  const changes = [0, ROWS, 0].map((from) => Array.from({ length: ROWS }, (_, no) => taskRow(random, from + no)))
  await new Promise((resolve) => setImmediate(resolve))
  const rows = [
    ...(await measured('commit of 50,000 new rows', 'rows/s', () => commit(0))),
    ...(await measured('commit of 50,000 more', 'rows/s', () => commit(1))),
    ...(await measured('commit of 50,000 rows changed in every field', 'rows/s', () => commit(2))),
  ]
  for (const [name, question] of Object.entries(QUESTIONS))
    rows.push(...(await measured(name, 'pages/s', () => askOften(store, question))))
  await store.close()
  return rows
}

export const run = async (): Promise<{ name: string; rows: Row[] }[]> => {
  const folder = await mkdtemp(join(tmpdir(), 'log-append-'))
  try {
    return [
      { name: 'event log in LMDB, synced', rows: await benchLog(folder) },
      { name: 'tables in LMDB, 100,000 rows in one scope', rows: await benchTables(folder) },
    ]
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] as string).href) {
  for (const { name, rows } of await run()) {
    console.log(name)
    for (const row of rows) console.log(`  ${row.name.padEnd(52)} ${row.value.toFixed(1).padStart(10)} ${row.unit}`)
  }
}
