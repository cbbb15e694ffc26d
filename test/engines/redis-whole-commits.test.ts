import { test, type Test } from 'tap'
import type { RedisConnection } from '../../src/engines/redis-tables/connection.ts'
import { StaleCommit } from '../../src/engines/table-store.ts'
import type { RowChange } from '../../src/kernel/table.ts'
import { redisBehindProxy } from '../support/redis-behind-proxy.ts'
import { withoutRedis as skip } from '../support/redis-server.ts'

const SCOPES = ['one', 'two', 'three']

const opened = async (t: Test) => {
  const { tables } = await redisBehindProxy(t)
  await tables.declare({ name: 'things', version: 1, equality: ['kind'] })
  await tables.declare({ name: 'own', version: 1, lives: 'partition' })
  const { connection } = tables as unknown as { connection: RedisConnection }
  const fcall = connection.fcall.bind(connection)
  const calls: string[] = []
  connection.fcall = (name, ...rest) => {
    calls.push(name)
    return fcall(name, ...rest)
  }
  const kinds = async (): Promise<unknown[]> =>
    Promise.all(SCOPES.map(async (scope) => (await tables.get('things', scope, 'a'))?.kind))
  return { tables, calls, kinds }
}

const rowsOf = (kind: string): RowChange[] => [
  ...SCOPES.map((scope) => ({ table: 'things', scope, id: 'a', row: { kind } })),
  { table: 'own', scope: 'writer', id: 'a', row: { kind } },
]

test('a small commit of several places is one call, with its checkpoint', { skip }, async (t) => {
  const { tables, calls, kinds } = await opened(t)
  const { fence } = await tables.take('writer')
  calls.length = 0
  await tables.commit(rowsOf('first'), { consumer: 'writer', from: undefined, at: { all: 1 }, fence })
  await tables.commit(rowsOf('second').slice(0, 2), { consumer: 'writer', from: { all: 1 }, at: { all: 2 }, fence })
  t.strictSame(calls, ['commit_whole', 'commit_whole'])
  t.strictSame(await kinds(), ['second', 'second', 'first'])
  t.strictSame(await tables.get('own', 'writer', 'a'), { kind: 'first' })
  t.strictSame(await tables.checkpoint('writer'), { all: 2 })
  const found = await tables.find('things', 'one', { where: { kind: 'second' }, limit: 5, total: true })
  t.equal(found.total, 1)
})

test('a small commit that does not follow the checkpoint, or has lost its fence, stores nothing', {
  skip,
}, async (t) => {
  const { tables, kinds } = await opened(t)
  const { fence } = await tables.take('writer')
  await tables.commit(rowsOf('first'), { consumer: 'writer', from: undefined, at: { all: 1 }, fence })
  const late = { consumer: 'writer', from: undefined, at: { all: 3 }, fence }
  await t.rejects(tables.commit(rowsOf('late'), late), StaleCommit)
  await tables.commit(rowsOf('again'), { consumer: 'writer', from: undefined, at: { all: 1 }, fence })
  const { fence: next } = await tables.take('writer')
  const earlier = { consumer: 'writer', from: { all: 1 }, at: { all: 2 }, fence }
  await t.rejects(tables.commit(rowsOf('lost'), earlier), StaleCommit)
  t.strictSame(await kinds(), ['first', 'first', 'first'])
  await tables.commit(rowsOf('next'), { ...earlier, fence: next })
  t.strictSame(await kinds(), ['next', 'next', 'next'])
})

test('a commit of many rows takes several calls', { skip }, async (t) => {
  const { tables, calls } = await opened(t)
  const { fence } = await tables.take('writer')
  calls.length = 0
  const many = Array.from({ length: 100 }, (_, no) => ({
    table: 'things',
    scope: 'one',
    id: `${no}`,
    row: { kind: 'k' },
  }))
  await tables.commit(many, { consumer: 'writer', from: undefined, at: { all: 1 }, fence })
  t.strictSame(calls, ['check', 'commit', 'commit'])
  t.strictSame(await tables.checkpoint('writer'), { all: 1 })
})
