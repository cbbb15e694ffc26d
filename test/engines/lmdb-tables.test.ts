import { monitorEventLoopDelay } from 'node:perf_hooks'
import { Worker } from 'node:worker_threads'
import { test } from 'tap'
import type { StoredRow, TableStore } from '../../src/engines/table-store.ts'
import type { Job, JobResult } from '../../src/engines/lmdb-tables/jobs.ts'
import { openTableEnvironment } from '../../src/engines/lmdb-tables/layout.ts'
import { openLmdbTableStore } from '../../src/engines/lmdb-tables/lmdb-tables.ts'
import { packParts } from '../../src/engines/lmdb-tables/pack.ts'
import type { Row } from '../../src/kernel/table.ts'
import { storeCheckpoint } from '../support/store-checkpoint.ts'
import { HeldClock, realClock } from '../contracts/clocks.ts'
import { put, randomThing, THINGS, thingId } from '../contracts/table-store-rows.ts'
import { folderOf } from '../support/folder-of.ts'
import { until } from '../support/service.ts'
import { seeded } from '../support/random.ts'

const open = (path: string): Promise<TableStore> => openLmdbTableStore({ path, clock: realClock })

const scanned = async (store: TableStore): Promise<Map<string, Row>> => {
  const rows: StoredRow[] = []
  for await (const row of store.scan('things', 's')) rows.push(row)
  return new Map(rows.map(({ id, row }) => [id, row]))
}

test('a commit of 20,000 rows leaves the event loop free', { timeout: 900_000 }, async (t) => {
  const store = await open(folderOf(t))
  t.teardown(() => store.close())
  await store.declare(THINGS)
  const random = seeded(11)
  const changes = Array.from({ length: 20_000 }, (_, index) => put('s', thingId(index), randomThing(random)))
  await new Promise((resolve) => setImmediate(resolve))
  const delay = monitorEventLoopDelay({ resolution: 1 })
  delay.enable()
  await store.commit(changes)
  delay.disable()
  t.equal((await store.find('things', 's', { limit: 1, total: true })).total, 20_000)
  // The machine that runs the tests may be busy: the percentile tells the work apart from a stall of the whole machine.
  t.ok(
    delay.percentile(90) / 1e6 < 60,
    `event loop delay p90 ${delay.percentile(90) / 1e6} ms, max ${delay.max / 1e6} ms`,
  )
})

test('tables, checkpoint and what is cleared survive closing', async (t) => {
  const folder = folderOf(t)
  const first = await open(folder)
  await first.declare(THINGS)
  const random = seeded(12)
  const rows = Array.from({ length: 3_000 }, (_, index) => put('s', thingId(index), randomThing(random)))
  await storeCheckpoint(first, 'c', { all: 1 }, rows)
  await first.reset(['things'], 'other')
  await first.commit([put('s', 'a', { status: 'open' })])
  await first.increment('s', 'logins', 3_600_000)
  await first.close()
  const second = await open(folder)
  t.teardown(() => second.close())
  await second.declare(THINGS)
  t.same([...(await scanned(second)).keys()], ['a'])
  t.same(await second.checkpoint('c'), { all: 1 })
  t.equal((await second.increment('s', 'logins', 3_600_000)).count, 2)
  await t.rejects(open(folder), /in use/)
})

test('what was asked for before closing is done', async (t) => {
  const folder = folderOf(t)
  const first = await open(folder)
  await first.declare(THINGS)
  const commits = [0, 1, 2].map((no) =>
    first.commit(Array.from({ length: 1_500 }, (_, index) => put('s', `${no}-${index}`, { status: 'open' }))),
  )
  await Promise.all([...commits, first.close()])
  const second = await open(folder)
  t.teardown(() => second.close())
  await second.declare(THINGS)
  t.equal((await scanned(second)).size, 4_500)
})

test('other indexes under the same version are refused', async (t) => {
  const store = await open(folderOf(t))
  t.teardown(() => store.close())
  await store.declare(THINGS)
  await t.rejects(store.declare({ ...THINGS, equality: ['status'] }), /raise the version/)
})

test('rows that ended are swept in steps, and their numbers and words with them', async (t) => {
  const clock = new HeldClock()
  const store = await openLmdbTableStore({ path: folderOf(t), clock, mapBytesMax: 3_000_000 })
  t.teardown(() => store.close())
  await store.declare(THINGS)
  for (let round = 0; round < 12; round += 1) {
    const rows = Array.from({ length: 100 }, (_, index) =>
      put('s', `${round}-${index}`, { status: 'open', notes: 'x'.repeat(10_000) }, clock.now() + 1_000),
    )
    // Only when the rows of earlier rounds were really deleted there is room for these.
    for (let attempt = 0; ; attempt += 1) {
      try {
        await store.commit(rows)
        break
      } catch (error) {
        if (attempt === 50) throw error
      }
    }
    t.equal((await store.find('things', 's', { where: { status: 'open' }, limit: 1, total: true })).total, 100)
    clock.pass(1_001)
    t.equal((await store.find('things', 's', { where: { status: 'open' }, limit: 1, total: true })).total, 0)
  }
})

test('tables that may hold no more bytes refuse rows whole', async (t) => {
  const store = await openLmdbTableStore({ path: folderOf(t), clock: realClock, mapBytesMax: 200_000 })
  t.teardown(() => store.close())
  await store.declare(THINGS)
  const rows = (from: number) =>
    Array.from({ length: 10 }, (_, index) =>
      put('s', thingId(from + index), { status: 'open', notes: 'x'.repeat(9_000) }),
    )
  await storeCheckpoint(store, 'c', { all: 1 }, rows(0))
  await store.commit(rows(10))
  await t.rejects(storeCheckpoint(store, 'c', { all: 2 }, rows(20)), { name: 'Failure', code: 'engine_down' })
  t.equal((await store.find('things', 's', { where: { status: 'open' }, limit: 1, total: true })).total, 20)
  t.same(await store.checkpoint('c'), { all: 1 })
  await store.commit(rows(0).map(({ id }) => ({ table: 'things', scope: 's', id, row: null })))
  await storeCheckpoint(store, 'c', { all: 2 }, rows(20))
  t.same(await store.checkpoint('c'), { all: 2 })
})

const openWatched = async (path: string): Promise<{ store: TableStore; threads: Worker[] }> => {
  const threads: Worker[] = []
  const started = (thread: Worker): unknown => threads.push(thread)
  process.on('worker', started)
  return { store: await open(path), threads }
}

test('a writer thread that dies is replaced: what it had is rejected, the next commits work', {
  timeout: 900_000,
}, async (t) => {
  const { store, threads } = await openWatched(folderOf(t))
  t.teardown(() => store.close())
  await store.declare(THINGS)
  await storeCheckpoint(store, 'c', { all: 0 }, [put('s', thingId(0), { status: 'open' })])
  const deaths: ((thread: Worker) => unknown)[] = [
    (thread) => thread.postMessage({ no: 'a message that it cannot read' }),
    (thread) => thread.terminate(),
  ]
  for (const [index, kill] of [...deaths, ...deaths].entries()) {
    const thread = threads.at(-1) as Worker
    const exited = new Promise((resolve) => thread.once('exit', resolve))
    kill(thread)
    // It is sent in this turn of the event loop, so to the thread that will not answer.
    const sent = store.increment('s', 'asked of a dying thread', 60_000)
    const lost = t.rejects(sent, { name: 'Failure', code: 'engine_down' }, 'what it had not answered is rejected')
    const queued = await Promise.allSettled(
      Array.from({ length: 20 }, (_, no) =>
        store.commit(Array.from({ length: 200 }, (_, row) => put('s', thingId(row), { status: `q${no}` }))),
      ),
    )
    for (const result of queued)
      if (result.status === 'rejected') t.match(result.reason, { name: 'Failure', code: 'engine_down' })
    await lost
    await exited
    await storeCheckpoint(store, 'c', { all: 1_000 + index }, [put('s', thingId(0), { status: `after ${index}` })])
    t.same(await store.checkpoint('c'), { all: 1_000 + index })
    t.match(await store.get('things', 's', thingId(0)), { status: `after ${index}` })
    t.equal(threads.length, index + 2)
    await store.ping()
  }
  t.equal((await store.increment('s', 'x', 60_000)).count, 1)
  await store.reset(['things'], 'c')
  t.equal((await scanned(store)).size, 0)
})

test('questions for most values of a field, asked at once, do not disturb one another', async (t) => {
  const store = await openLmdbTableStore({ path: folderOf(t), clock: realClock })
  t.teardown(() => store.close())
  await store.declare({ name: 'many', version: 1, equality: ['code'] })
  const codes = Array.from({ length: 30_000 }, (_, i) => `code-${i}`)
  for (let from = 0; from < codes.length; from += 2_000)
    await store.commit(
      codes.slice(from, from + 2_000).map((code) => ({ table: 'many', scope: 's', id: code, row: { code } })),
    )
  const asked = Array.from({ length: 6 }, (_, k) => codes.filter((_, i) => (i + k) % 3 !== 0))
  const found = await Promise.all(
    asked.map((code) => store.find('many', 's', { where: { code }, limit: 1, total: true })),
  )
  t.same(
    found.map(({ total }) => total),
    asked.map(({ length }) => length),
  )
})

test('a table that was replaced is cleared once the store has said that it reads its successor, not that of another one', async (t) => {
  const path = folderOf(t)
  const file = new URL('../../src/engines/lmdb-tables/worker.js', import.meta.url)
  const worker = new Worker(file, { workerData: { path, bytesMax: Number.POSITIVE_INFINITY } })
  const answers = new Map<number, (result: JobResult) => void>()
  worker.on('message', ({ no, result }: { no: number; result: JobResult }) => answers.get(no)?.(result))
  let last = 0
  const ask = (job: Job): Promise<JobResult> =>
    new Promise((resolve) => {
      answers.set(++last, resolve)
      worker.postMessage({ no: last, now: 0, job })
    })
  const declare = (name: string, version: number): Promise<JobResult> =>
    ask({ kind: 'declare', table: { name, version } })
  const env = openTableEnvironment(path)
  t.teardown(async () => {
    await ask({ kind: 'close' })
    await env.root.close()
  })
  const rows = (): number => {
    env.root.resetReadTxn()
    return env.rows.getCount()
  }
  for (const table of ['a', 'b']) {
    await declare(table, 1)
    await ask({ kind: 'clear' })
    await ask({ kind: 'commit', parts: await packParts([{ ...put('s', 'x', {}), table }]) })
  }
  await declare('a', 2)
  const replaced = declare('b', 2)
  await ask({ kind: 'clear' }) // of a
  await replaced
  for (let turns = 0; turns < 5; turns++) await ask({ kind: 'ping' })
  t.equal(rows(), 2, 'somebody may read what b was')
  await ask({ kind: 'clear' })
  await until('both to be cleared', () => rows() === 0)
})
