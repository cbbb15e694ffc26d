import { join } from 'node:path'
import { type Test, test } from 'tap'
import { openChdbHistoryStore } from '../../src/engines/chdb/chdb-history.ts'
import { exceptionIn } from '../../src/engines/clickhouse-history/checked-body.ts'
import { openClickhouseHistory } from '../../src/engines/clickhouse-history/clickhouse-history.ts'
import type { HistoryStore } from '../../src/engines/history-store.ts'
import { blockOf } from '../contracts/history-store.ts'
import { type ClickhouseFront, type FrontFault, openClickhouseFront } from '../support/clickhouse/front.ts'
import { folderOf } from '../support/folder-of.ts'

const ROWS = 400_000

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

const openBoth = async (t: Test): Promise<{ front: ClickhouseFront; store: HistoryStore }> => {
  const front = await openFront(t)
  const store = await openClickhouseHistory({ url: front.url, deadlineMs: 3_000 })
  t.teardown(() => store.close())
  const setting = 'non_replicated_deduplication_window = 100'
  await store.command(`CREATE TABLE kept (id UInt32, text String) ENGINE = MergeTree ORDER BY id SETTINGS ${setting}`)
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
  const { front, store } = await openBoth(t)
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
    t.equal(await bytesOf(store), ROWS * 8)
    await store.insert('kept', blockOf([1]), 'one')
    t.same(await idsOf(store), [1], 'the same token again inserts once, whatever became of the first try')
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

test('too many parts are overload', async (t) => {
  const { front, store } = await openBoth(t)
  front.fault = 'tooManyParts'
  await t.rejects(store.insert('kept', blockOf([1]), 'one'), { code: 'overloaded' })
})

test('an old server is refused with the reason', async (t) => {
  const front = await openFront(t, '24.8.4.13')
  await t.rejects(openClickhouseHistory({ url: front.url }), /24\.8\.4\.13.*25\.3/)
})

test('data that looks like an exception is data where the server marks its own', (t) => {
  const data = Buffer.from('Code: 241. DB::Exception: said a user (version 25.3)')
  t.equal(exceptionIn(data, 'sometag'), undefined)
  t.match(exceptionIn(data, undefined), { code: 241 })
  t.equal(exceptionIn(Buffer.from('{"text":"Code: 241. DB::Exception: x (version 25.3)"}\n'), undefined), undefined)
  t.end()
})
