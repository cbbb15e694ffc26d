import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { openChdbHistoryStore } from '../../src/engines/chdb/chdb-history.ts'
import { exceptionIn } from '../../src/engines/clickhouse-history/checked-body.ts'
import { openClickhouseHistory } from '../../src/engines/clickhouse-history/clickhouse-history.ts'
import { isSameMachine } from '../../src/engines/clickhouse-history/insert-body.ts'
import { Liveness } from '../../src/engines/clickhouse-history/liveness.ts'
import type { HistoryStore } from '../../src/engines/history-store.ts'
import { systemClock } from '../../src/kernel/system-clock.ts'
import { openHistory, openLog } from '../../src/open-engines.ts'
import { blockOf } from '../contracts/history-store.ts'
import { type ClickhouseFront, type FrontFault, openClickhouseFront } from '../support/clickhouse/front.ts'
import { folderOf } from '../support/folder-of.ts'
import { until } from '../support/service.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'
import { whenUp } from '../support/when-up.ts'

const ROWS = 400_000
const QUIET_MS = 4_000

const openFront = async (t: Test, version?: string): Promise<ClickhouseFront> => {
  const folder = folderOf(t)
  const engine = await openChdbHistoryStore({ path: join(folder, 'data'), scratchPath: join(folder, 'scratch') })
  const front = await openClickhouseFront({ store: engine, version })
  t.teardown(async () => {
    await front.close()
    await engine.close()
  })
  return front
}

/** It knows what was inserted twice by its token. */
const KEPT = `CREATE TABLE kept (id UInt32, text String) ENGINE = MergeTree ORDER BY id
SETTINGS non_replicated_deduplication_window = 100`

const openBoth = async (t: Test, deadlineMs?: number): Promise<{ front: ClickhouseFront; store: HistoryStore }> => {
  const front = await openFront(t)
  const store = await openClickhouseHistory({ url: front.url, deadlineMs })
  t.teardown(() => store.close())
  await store.command(KEPT)
  return { front, store }
}

const bytesOf = async (store: HistoryStore): Promise<number> => {
  let bytes = 0
  for await (const chunk of store.query(`SELECT number FROM numbers(${ROWS})`, undefined, 'RowBinary'))
    bytes += chunk.byteLength
  return bytes
}

const idsOf = async (store: HistoryStore): Promise<number[]> =>
  (await store.rows<{ id: number }>('SELECT id FROM kept ORDER BY id')).map(({ id }) => id)

test('each fault of the server has its named failure, and all is well when it ends', async (t) => {
  const { front, store } = await openBoth(t, 3_000)
  const faults: [FrontFault, string, string][] = [
    ['hang', 'engine_down', 'engine_down'],
    ['cut', 'engine_down', 'engine_down'],
    ['proxyError', 'engine_down', 'engine_down'],
  ]
  for (const [fault, read, write] of faults) {
    front.fault = fault
    await t.rejects(bytesOf(store), { code: read }, `a read while it does ${fault}`)
    await t.rejects(store.insert('kept', blockOf([1]), 'one'), { code: write }, `a write while it does ${fault}`)
    front.fault = undefined
    t.equal(await whenUp(() => bytesOf(store)), ROWS * 8)
    await whenUp(() => store.insert('kept', blockOf([1]), 'one'))
    t.same(await whenUp(() => idsOf(store)), [1], 'the same token again inserts once, whatever became of the first try')
  }
})

test('a server that is gone is engine_down, and one that comes back is used at once', async (t) => {
  const { front, store } = await openBoth(t)
  await front.refuse()
  await t.rejects(store.ping(), { code: 'engine_down' })
  await t.rejects(store.insert('kept', blockOf([1]), 'one'), { code: 'engine_down' })
  await front.listen()
  await store.ping()
  await store.insert('kept', blockOf([1]), 'one')
  t.same(await idsOf(store), [1])
})

test('an exception in the middle of an answer never passes for its end', async (t) => {
  const { front, store } = await openBoth(t)
  for (const fault of ['taggedException', 'bareException'] as const) {
    front.fault = fault
    await t.rejects(bytesOf(store), { code: 'overloaded' }, fault)
    await t.rejects(store.rows('SELECT number FROM numbers(10)'), { code: 'overloaded' }, fault)
  }
})

test('connections that died unseen are given up at their deadline, and others take their place', async (t) => {
  const front = await openFront(t)
  const proxy = await TcpProxy.open(Number(new URL(front.url).port))
  t.teardown(() => proxy.close())
  // A busy machine may miss so short a deadline.
  const store = await whenUp(() => openClickhouseHistory({ url: `http://127.0.0.1:${proxy.port}`, deadlineMs: 500 }))
  t.teardown(() => store.close())
  const patient = await openClickhouseHistory({ url: front.url })
  t.teardown(() => patient.close())
  await patient.command(KEPT)
  proxy.silence()
  await t.rejects(store.insert('kept', blockOf([1]), 'one'), { code: 'engine_down' })
  await t.rejects(store.rows('SELECT 1 AS one'), { code: 'engine_down' })
  proxy.speak()
  const works = (): Promise<boolean> =>
    store.insert('kept', blockOf([1]), 'one').then(
      () => true,
      () => false,
    )
  await until('an insert', works)
  t.same(await idsOf(patient), [1])
})

test('a question is waited for as long as the server answers pings, and no longer', async (t) => {
  const front = await openFront(t)
  const store = await openClickhouseHistory({ url: front.url, quietMs: QUIET_MS })
  t.teardown(() => store.close())
  front.fault = 'hang'
  const down = { code: 'engine_down' }
  const asks = [() => store.ping(), () => store.rows('SELECT 1 AS one'), () => bytesOf(store)]
  await Promise.all(asks.map((ask) => t.rejects(async () => void (await ask()), down)))
  front.fault = undefined
  t.equal(await bytesOf(store), ROWS * 8)

  const held = Array.from({ length: 64 }, () => store.query('SELECT number FROM numbers(1e7)', undefined, 'RowBinary'))
  const readers = held.map((chunks) => chunks[Symbol.asyncIterator]())
  await readers[0].next()
  const others = readers.slice(1).map((reader) => reader.next().catch(() => undefined))
  await store.ping()
  await Promise.all([...others, ...readers.map((reader) => reader.return?.())])
})

test('slow is not dead: whoever waits goes on waiting while pings are answered, or refused by a server that is full', async (t) => {
  let pings = 0
  const server = createServer((_request, response) => {
    pings++
    if (pings === 2) response.writeHead(500, { 'x-clickhouse-exception-code': '202' })
    response.end(
      pings === 2 ? 'Code: 202. DB::Exception: Too many simultaneous queries. (TOO_MANY_SIMULTANEOUS_QUERIES)' : 'ping',
    )
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const liveness = new Liveness({ url: `http://127.0.0.1:${port}` }, { quietMs: QUIET_MS })
  t.teardown(async () => {
    await liveness.close()
    server.close()
  })
  const answer = until('a third ping', () => pings === 3)
  await liveness.whileAlive(answer, () => t.fail('given up'))
})

test('why a server cannot be used is said in one line, by the flag and without the password', async (t) => {
  const { url } = await openFront(t)
  const { port } = new URL(url)
  const urls = { dataPath: folderOf(t), logUrl: 'lmdb:', tablesUrl: 'lmdb:', filesUrl: 'file:x' }
  const said = (work: Promise<unknown>): Promise<string> =>
    work.then(
      () => 'taken',
      (error: Error) => error.message,
    )
  for (const [address, sentence] of [
    [`https://ada:s3cret@127.0.0.1:${port}/`, /^--history https:\/\/\*\*\*@\S+ does not answer: \S.*[^.:\s]$/],
    [`http://ada:s3cret@127.0.0.1:${port}/?foo=1`, /^--history http:\S+ cannot be used: Unknown URL parameters: foo$/],
  ] as const) {
    const message = await said(openHistory({ ...urls, historyUrl: address }))
    t.match(message, sentence, message)
    t.notMatch(message, /s3cret|\n/, message)
  }
  const logUrl = `esdb://ada:s3cret@127.0.0.1:${port}`
  const message = await said(openLog({ ...urls, historyUrl: 'chdb:', logUrl }, systemClock, randomUUID))
  t.match(message, /^--log esdb:\/\/\*\*\*@\S+ does not answer: \S.*[^.:\s]$/, message)
  t.notMatch(message, /s3cret|\n|Resolution note/, message)
})

test('too many parts are overload', async (t) => {
  const { front, store } = await openBoth(t)
  front.fault = 'tooManyParts'
  await t.rejects(store.insert('kept', blockOf([1]), 'one'), { code: 'overloaded' })
})

test('an old server is refused with the reason', async (t) => {
  for (const version of ['24.8.4.13', '25.2.9.1']) {
    const front = await openFront(t, version)
    await t.rejects(openClickhouseHistory({ url: front.url }), { message: new RegExp(`${version}.*25\\.3`) })
  }
  const front = await openFront(t, '26.1.1.1')
  const store = await openClickhouseHistory({ url: front.url })
  await store.close()
})

test('each request says what the promises depend on, whatever the profile of its user says', async (t) => {
  const { front, store } = await openBoth(t)
  const last = () => front.requests.at(-1)!
  await store.insert('kept', blockOf([1]), 'points.3.17')
  const durable = {
    async_insert: '0',
    max_partitions_per_insert_block: '0',
    wait_end_of_query: '1',
    max_memory_usage: '1073741824',
  }
  const inserts = {
    ...durable,
    insert_deduplicate: '1',
    insert_deduplication_token: 'points.3.17',
    distributed_foreground_insert: '1',
  }
  t.match(last(), { query: 'INSERT INTO kept FORMAT Native', settings: inserts, encoding: undefined })
  t.notOk(last().settings.insert_quorum, 'there is no replica to wait for')

  await store.command('INSERT INTO kept SELECT 2, {text:String}', { text: 'two' })
  t.match(last(), { settings: { ...durable, mutations_sync: '2' } })

  const reads = {
    readonly: '2',
    cancel_http_readonly_queries_on_client_close: '1',
    distributed_product_mode: 'local',
    max_memory_usage: '1073741824',
    max_bytes_before_external_sort: '268435456',
    max_bytes_before_external_group_by: '268435456',
  }
  await store.rows('SELECT {id:UInt32} AS id', { id: 1 })
  t.match(last(), { settings: { ...reads, max_execution_time: '60', max_result_rows: '10001' }, isForm: false })
  await bytesOf(store)
  t.match(last(), { settings: { ...reads, max_execution_time: '3600', max_result_rows: '1000000000' } })
  const ids = Array.from({ length: 2_000 }, (_, id) => id)
  t.same(await store.rows('SELECT id FROM kept WHERE id IN {ids:Array(UInt32)} ORDER BY id', { ids }), [
    { id: 1 },
    { id: 2 },
  ])
  t.ok(last().isForm, 'a long list is a form, not an address')
  const names = Array.from({ length: 6_000 }, (_, no) => `01900000-0000-7000-8000-00000000${no}'\\`.padEnd(40, 'ż'))
  const [{ found }] = await store.rows<{ found: number }>(
    'SELECT countIf(name IN {names:Array(String)}) AS found FROM (SELECT arrayJoin({names:Array(String)}) AS name)',
    { names },
  )
  t.equal(found, names.length, 'a list that is longer than a field of a form may be comes whole')
  t.ok(last().isForm)
  await store.command('DELETE FROM kept WHERE toString(id) IN {names:Array(String)}', { names: [...names, '2'] })
  t.ok(last().isForm, 'so does one of a write')
  t.match(last().settings, { mutations_sync: '2', async_insert: '0' })
  t.same(await idsOf(store), [1])

  const cluster = await openClickhouseHistory({ url: `${front.url}/default?cluster=main` })
  await cluster.insert('kept', blockOf([3]), 'points.3.18')
  t.match(last(), { settings: { ...durable, insert_quorum: 'auto', load_balancing: 'in_order' } })
  await cluster.rows('SELECT 1 AS one')
  t.match(last(), { settings: { ...reads, load_balancing: 'in_order', skip_unavailable_shards: '0' } })
  await cluster.close()
})

test('what is inserted over a network travels compressed', async (t) => {
  const { front, store } = await openBoth(t)
  const far = await openClickhouseHistory({ url: front.url.replace('127.0.0.1', '0.0.0.0') })
  t.teardown(() => far.close())
  const ids = Array.from({ length: 100_000 }, (_, id) => id)
  await far.insert('kept', blockOf(ids), 'one')
  t.match(front.requests.at(-1), { query: 'INSERT INTO kept FORMAT Native', encoding: 'br' })
  t.same(await store.rows('SELECT count() AS count, sum(id) AS sum FROM kept'), [
    { count: 100_000, sum: 4_999_950_000 },
  ])
  t.same(
    ['localhost', '127.0.0.1', '127.1.2.3', '[::1]', '10.0.0.1', '127.example.org', 'localhost.example.org'].map(
      isSameMachine,
    ),
    [true, true, true, true, false, false, false],
  )
})

test('data that looks like an exception is data where the server marks its own', (t) => {
  const data = Buffer.from('Code: 241. DB::Exception: said a user (version 25.3)')
  t.equal(exceptionIn(data, 'sometag'), undefined)
  t.match(exceptionIn(data, undefined), { code: 241 })
  t.equal(exceptionIn(Buffer.from('{"text":"Code: 241. DB::Exception: x (version 25.3)"}\n'), undefined), undefined)
  t.end()
})
