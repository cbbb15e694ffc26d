import { test } from 'tap'
import { openTableEnvironment, type TableRecord } from '../../src/engines/lmdb-tables/layout.ts'
import { openLmdbTableStore } from '../../src/engines/lmdb-tables/lmdb-tables.ts'
import { RowReader } from '../../src/engines/lmdb-tables/reads.ts'
import type { Row } from '../../src/kernel/table.ts'
import type { StartWriter, WriterEnd } from '../../src/engines/lmdb-tables/thread.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { folderOf } from '../support/folder-of.ts'
import { writeHere } from '../support/write-here.ts'

test('a shared row is read from the disk once between two commits, and gone when its time is', async (t) => {
  const path = folderOf(t)
  const clock = new FakeClock()
  const store = await openLmdbTableStore({ path, clock })
  await store.declare({ name: 'hubs', version: 1, isShared: true })
  await store.commit([
    { table: 'hubs', scope: 's', id: 'a', row: { name: 'West' }, expiresAt: clock.now() + 1_000 },
    { table: 'hubs', scope: 's', id: 'b', row: { name: 'East' } },
  ])
  await store.close()
  const env = openTableEnvironment(path)
  t.teardown(() => env.root.close())
  let reads = 0
  const getBinary = env.rows.getBinaryFast.bind(env.rows)
  env.rows.getBinaryFast = (...args: Parameters<typeof getBinary>) => {
    reads += 1
    return getBinary(...args)
  }
  const reader = new RowReader(env, clock)
  const record = { number: 1 } as TableRecord
  const nameOf = (id: string): unknown => reader.read<Row>(record, 's', id, true)?.name
  t.same(['a', 'b', 'a', 'a', 'b'].map(nameOf), ['West', 'East', 'West', 'West', 'East'])
  t.equal(reads, 2)
  reader.committed()
  t.same([nameOf('b'), reads], ['East', 3], 'a commit may have changed it')
  clock.advance(1_000)
  t.equal(nameOf('a'), undefined)
  t.equal(reader.read<Row>(record, 's', 'b')?.name, 'East')
  t.equal(reads, 5, 'rows that are not shared are read each time')
})

test('whoever reads a checkpoint reads the rows of its commit, also before the writer has answered it', async (t) => {
  let holds = false
  const held: (() => void)[] = []
  const startWriter: StartWriter = (settings) => {
    const end = writeHere(settings)
    const on = end.on.bind(end) as (event: string, listener: (value: never) => void) => unknown
    const holding = (event: string, listener: (value: never) => void) =>
      on(event, (value) => {
        if (holds && event === 'message') held.push(() => listener(value))
        else listener(value)
      })
    return Object.assign(end, { on: holding as WriterEnd['on'] })
  }
  const store = await openLmdbTableStore({ path: folderOf(t), clock: new FakeClock(), startWriter })
  t.teardown(() => store.close())
  await store.declare({ name: 'rights', version: 1, isShared: true })
  const row = (name: string) => [{ table: 'rights', scope: 's', id: 'ada', row: { name } }]
  await store.commit(row('all hubs'))
  const { fence } = await store.take('access')
  t.match(await store.get('rights', 's', 'ada'), { name: 'all hubs' })
  holds = true
  const committed = store.commit(row('no hubs'), { consumer: 'access', from: undefined, at: { all: 7 }, fence })
  while ((await store.checkpoint('access')) === undefined) await new Promise((resolve) => setImmediate(resolve))
  t.match(await store.get('rights', 's', 'ada'), { name: 'no hubs' })
  holds = false
  for (const answer of held) answer()
  await committed
})
