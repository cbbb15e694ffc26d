import { test, type Test } from 'tap'
import type { RedisConnection } from '../../src/engines/redis-tables/connection.ts'
import { withoutRedis as skip } from '../support/redis-server.ts'
import { redisBehindProxy } from '../support/redis-behind-proxy.ts'

const ROWS = 1_000

const opened = async (t: Test, deadlineMs?: number) => {
  const { tables, admin, proxy } = await redisBehindProxy(t, deadlineMs)
  await tables.declare({ name: 'things', version: 1 })
  const id = (no: number): string => `thing-${no}`
  await tables.commit(
    Array.from({ length: ROWS }, (_, no) => ({ table: 'things', scope: 's', id: id(no), row: { no } })),
  )
  const calls = async (): Promise<number> =>
    Number(/cmdstat_fcall:calls=(\d+)/.exec(await admin.info('commandstats'))?.[1] ?? 0)
  return { tables, admin, proxy, id, calls }
}

test('rows that are asked for at the same time go together, each to who asked', { skip }, async (t) => {
  const { tables, id, calls } = await opened(t)
  const before = await calls()
  const asked = Array.from({ length: 2 * ROWS }, (_, i) => (i * 7) % (ROWS + 100))
  const rows = await Promise.all(asked.map((no) => tables.get('things', 's', id(no))))
  t.strictSame(
    rows,
    asked.map((no) => (no < ROWS ? { no } : undefined)),
  )
  t.ok((await calls()) - before <= 20, `${(await calls()) - before} calls for ${asked.length} rows`)
  const several = await Promise.all([tables.getMany('things', 's', ['none', id(1)]), tables.getMany('things', 's', [])])
  t.strictSame(several, [[undefined, { no: 1 }], []])
})

test('a commit that was made is seen by whoever asks behind others', { skip }, async (t) => {
  const { tables, id } = await opened(t)
  const seen = await Promise.all(
    Array.from({ length: 50 }, async (_, no) => {
      await Promise.all([tables.get('things', 's', id(no)), tables.get('things', 's', id(no + 1))])
      await tables.commit([{ table: 'things', scope: 's', id: id(no), row: { no: -no } }])
      return (await tables.get('things', 's', id(no)))?.no
    }),
  )
  t.strictSame(
    seen,
    Array.from({ length: 50 }, (_, no) => -no),
  )
})

test('rows that are read in several calls are seen as one, whatever another process writes between', {
  skip,
}, async (t) => {
  const { tables, id } = await opened(t)
  const { connection } = tables as unknown as { connection: RedisConnection }
  const fcall = connection.fcall.bind(connection)
  let writes = 0
  connection.fcall = async (...call) => {
    const answer = await fcall(...call)
    if (call[0] === 'rows' && writes < 3) {
      writes++
      await tables.commit([0, 500, 999].map((no) => ({ table: 'things', scope: 's', id: id(no), row: { writes } })))
    }
    return answer
  }
  const rows = await tables.getMany(
    'things',
    's',
    Array.from({ length: ROWS }, (_, no) => id(no)),
  )
  t.same(
    [0, 500, 999].map((no) => rows[no]?.writes),
    [3, 3, 3],
  )
})

test('whoever waits behind a silent server is refused with those before', { skip }, async (t) => {
  const { tables, proxy, id } = await opened(t, 2_000)
  proxy.silence()
  const asked: Promise<unknown>[] = []
  for (let no = 0; no < 5_000; no++) {
    const code = tables.get('things', 's', id(no % ROWS)).then(
      () => 'answered',
      (error: { code?: string }) => error.code,
    )
    asked.push(code)
    if (no % 500 === 0) await new Promise(setImmediate)
  }
  t.strictSame([...new Set(await Promise.all(asked))], ['engine_down'])
})

test('whoever asks for a page behind a silent server is refused with those before', { skip }, async (t) => {
  const { tables, proxy } = await opened(t, 2_000)
  proxy.silence()
  const refused = (): Promise<unknown> =>
    tables.find('things', 's', { limit: 5 }).then(
      () => 'answered',
      (error: { code?: string }) => error.code,
    )
  const first = refused()
  await new Promise(setImmediate)
  let isOver = false
  const second = refused().finally(() => (isOver = true))
  t.equal(await first, 'engine_down')
  await new Promise(setImmediate)
  t.ok(isOver, 'not after a deadline of its own')
  t.equal(await second, 'engine_down')
})
