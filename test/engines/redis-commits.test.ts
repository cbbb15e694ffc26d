import { RESP_TYPES } from 'redis'
import { test, type Test } from 'tap'
import { Budget } from '../../src/engines/redis-tables/budget.ts'
import { Commits } from '../../src/engines/redis-tables/commits.ts'
import type { RedisConnection } from '../../src/engines/redis-tables/connection.ts'
import { Places } from '../../src/engines/redis-tables/places.ts'
import type { Registry } from '../../src/engines/redis-tables/registry.ts'
import type { RowChange } from '../../src/kernel/table.ts'
import { withoutRedis as skip } from '../support/redis-server.ts'
import { until } from '../support/service.ts'
import { redisBehindProxy } from '../support/redis-behind-proxy.ts'

const ROWS = 2_000

const opened = async (t: Test, deadlineMs?: number) => {
  const { tables, admin, proxy } = await redisBehindProxy(t, deadlineMs)
  await tables.declare({ name: 'things', version: 1, equality: ['kind'], range: ['size'], text: ['name'] })
  const total = async (kind: string): Promise<number | undefined> =>
    (await tables.find('things', 's', { where: { kind }, limit: 1, total: true })).total
  /** Keys of an index that has entries. */
  const indexesOf = async (field: string): Promise<string[]> => {
    const keys: string[] = []
    for await (const some of admin.scanIterator({ MATCH: `*:i:e:${field}` })) keys.push(...some)
    return keys
  }
  return { tables, admin, proxy, total, indexesOf }
}

test('rows and checkpoint of one commit are for the server that was the master when it began', async (t) => {
  const asked: string[] = []
  let master = 'one:1'
  const ask = async (name: string, server?: string): Promise<Buffer[]> => {
    asked.push(name)
    if (server !== master) throw new Error(`${server} is no longer the master`)
    if (name === 'SET') master = 'two:2'
    return [Buffer.from('stored')]
  }
  const connection = {
    isCluster: false,
    serverOf: () => master,
    call: (_key: string, [command]: string[], server?: string) => ask(command, server),
    fcall: (name: string, _keys: string[], _args: string[], server?: string) => ask(name, server),
    replicated: async () => undefined,
  } as unknown as RedisConnection
  const table = { declaration: { name: 'singles', lives: 'row' } }
  const registry = { writable: () => table, tableOf: () => table } as unknown as Registry
  const commits = new Commits(connection, new Places('p'), registry)
  const row = { table: 'singles', scope: 's', id: 'a', row: { a: 1 } }
  const move = { consumer: 'writer', from: undefined, at: { all: 1 }, fence: 1 }
  await t.rejects(commits.commit([row], move), { message: 'one:1 is no longer the master' })
  t.same(asked, ['check', 'SET', 'commit'])
})

const thing = (no: number, kind: string): RowChange => ({
  table: 'things',
  scope: 's',
  id: `thing-${no}`,
  row: { kind, size: no, name: `Thing ${no} of ${kind}` },
})
const things = (kind: string): RowChange[] => Array.from({ length: ROWS }, (_, no) => thing(no, kind))

test('of several changes of a row in one commit the last counts, however far they are apart', { skip }, async (t) => {
  const { tables, admin, total, indexesOf } = await opened(t)
  await tables.commit([thing(0, 'first'), thing(1, 'first'), ...things('middle'), thing(0, 'last')])
  await tables.commit([thing(2, 'first'), ...things('last').slice(3), { ...thing(2, ''), row: null }])
  t.strictSame(await Promise.all(['first', 'middle', 'last'].map(total)), [0, 1, ROWS - 2])
  const [index] = await indexesOf('kind')
  t.equal(await admin.zCard(index), ROWS - 1, 'nothing is left of what was overwritten')
  t.equal(await tables.get('things', 's', 'thing-2'), undefined)
  t.strictSame(await tables.get('things', 's', 'thing-0'), { kind: 'last', size: 0, name: 'Thing 0 of last' })
})

test('a commit whose steps are cut off keeps its checkpoint back, and is whole when it is made again', {
  skip,
}, async (t) => {
  const { tables, admin, proxy, total } = await opened(t)
  const { fence } = await tables.take('writer')
  const commit = (kind: string, from: number | undefined, at: number): Promise<void> =>
    tables.commit(things(kind), {
      consumer: 'writer',
      from: from === undefined ? undefined : { all: from },
      at: { all: at },
      fence,
    })
  await commit('before', undefined, 1)
  const steps = async (): Promise<number> =>
    Number(/cmdstat_fcall:calls=(\d+)/.exec(await admin.info('commandstats'))?.[1] ?? 0)
  const begun = await steps()
  proxy.slow(200)
  const cut = commit('after', 1, 2).then(
    () => 'stored',
    (error: { code?: string }) => error.code,
  )
  await until('some of its steps', async () => (await steps()) >= begun + 3)
  proxy.cut()
  proxy.slow(0)
  t.ok(['stored', 'engine_down'].includes(String(await cut)))
  await until('a connection again', () =>
    tables.checkpoint('writer').then(
      () => true,
      () => false,
    ),
  )
  // A machine that stood still meanwhile may have let the last step through.
  t.ok([1, 2].includes((await tables.checkpoint('writer'))?.all ?? 0))
  await until('the commit made again', () =>
    commit('after', 1, 2).then(
      () => true,
      () => false,
    ),
  )
  t.strictSame(await tables.checkpoint('writer'), { all: 2 })
  t.strictSame(await Promise.all(['before', 'after'].map(total)), [0, ROWS])
})

const isNotUndone = async (t: Test, call: string, rows: number): Promise<void> => {
  const { tables, admin, proxy } = await opened(t, 2_000)
  const { fence } = await tables.take('writer')
  const isStored = (kind: string, from: number | undefined, at: number): Promise<boolean> =>
    tables
      .commit([thing(1, kind), ...things('other').slice(2, rows + 1)], {
        ...{ consumer: 'writer', at: { all: at }, fence },
        from: from === undefined ? undefined : { all: from },
      })
      .then(
        () => true,
        () => false,
      )
  await until('the first', () => isStored('first', undefined, 1))
  const { connection } = tables as unknown as { connection: RedisConnection }
  const fcall = connection.fcall.bind(connection)
  let isHeldUp = false
  connection.fcall = (name, keys, args) => {
    if (name === call) {
      connection.fcall = fcall
      isHeldUp = true
      proxy.silence()
    }
    return fcall(name, keys, args)
  }
  await until('a step to be held up', async () => (await isStored('held up', 1, 2)) || isHeldUp)
  t.ok(isHeldUp)
  proxy.speak()
  await until('it to be stored over another connection', () => isStored('held up', 1, 2))
  await until('one after it', () => isStored('last', 2, 3))
  const calls = async (): Promise<number> =>
    Number(/cmdstat_fcall:calls=(\d+)/.exec(await admin.info('commandstats'))?.[1] ?? 0)
  const before = await calls()
  proxy.heal()
  await until('what was held up to arrive', async () => (await calls()) > before)
  let kind: unknown
  await until('an answer', async () => {
    kind = await tables.get('things', 's', 'thing-1').then((row) => row?.kind, String)
    return kind === 'held up' || kind === 'last'
  })
  t.equal(kind, 'last')
}

test('what was held up in the network does not undo what was stored after it', { skip }, (t) =>
  isNotUndone(t, 'commit_whole', 1),
)

test('nor does it where a commit took several calls', { skip }, (t) => isNotUndone(t, 'commit', 60))

test('a step that fails in the middle of a commit keeps the checkpoint back', { skip }, async (t) => {
  const { tables, admin, indexesOf } = await opened(t)
  for (const name of ['parts', 'others'])
    await tables.declare({ name, version: 1, lives: 'partition', equality: ['kind'] })
  const { fence } = await tables.take('writer')
  const own = (table: string, no: number, kind: string): RowChange => ({
    ...thing(no, kind),
    table,
    scope: 'writer',
  })
  await tables.commit([own('others', 0, 'any')])
  const [index] = await indexesOf('kind')
  await admin.del(index)
  await admin.set(index, 'no index')
  const parts = Array.from({ length: 3 * ROWS }, (_, no) => own('parts', no, 'new'))
  const commit = (): Promise<void> =>
    tables.commit([...parts.slice(0, ROWS), own('others', 0, 'new'), ...parts.slice(ROWS)], {
      consumer: 'writer',
      from: undefined,
      at: { all: 1 },
      fence,
    })
  await t.rejects(commit(), /WRONGTYPE/)
  t.equal(await tables.checkpoint('writer'), undefined)
  await admin.del(index)
  await commit()
  t.strictSame(await tables.checkpoint('writer'), { all: 1 })
  for (const [table, count] of [
    ['parts', 3 * ROWS],
    ['others', 1],
  ] as const)
    t.equal((await tables.find(table, 'writer', { where: { kind: 'new' }, limit: 1, total: true })).total, count)
})

test('index terms that were stored in another order are replaced all the same', { skip }, async (t) => {
  const { tables, admin, total } = await opened(t)
  await tables.commit([thing(1, 'old')])
  const typeMapping = { [RESP_TYPES.BLOB_STRING]: Buffer }
  for await (const keys of admin.scanIterator({ MATCH: '*:terms' }))
    for (const key of keys) {
      const packed = await admin.sendCommand<Buffer>(['HGET', key, 'thing-1'], { typeMapping })
      const turned: Buffer[] = []
      for (let at = 0; at < packed.length; at += 4 + packed.readUInt32BE(at))
        turned.unshift(packed.subarray(at, at + 4 + packed.readUInt32BE(at)))
      t.ok(turned.length > 3)
      await admin.sendCommand(['HSET', key, 'thing-1', Buffer.concat(turned)])
    }
  await tables.commit([thing(1, 'new')])
  t.strictSame(await Promise.all(['old', 'new'].map(total)), [0, 1])
  t.equal((await tables.find('things', 's', { text: 'old', limit: 1, total: true })).total, 0)
})

test('work that waits for a server goes on in order, and all at once where the server does not answer', async (t) => {
  const budget = new Budget(10)
  const gone: string[] = []
  const take = (name: string, cost: number): void => void budget.take(cost).then(() => gone.push(name))
  const settled = (): Promise<unknown> => new Promise(setImmediate)
  for (const [name, cost] of [
    ['a', 6],
    ['b', 6],
    ['c', 1],
  ] as const)
    take(name, cost)
  await settled()
  t.strictSame(gone, ['a'], 'what is small does not overtake')
  budget.giveBack(6)
  await settled()
  t.strictSame(gone, ['a', 'b', 'c'])
  for (const name of ['d', 'e', 'f']) take(name, 100)
  await settled()
  t.strictSame(gone.slice(3), [])
  budget.letAll()
  await settled()
  t.strictSame(gone.slice(3), ['d', 'e', 'f'])
  for (const cost of [6, 1, 100, 100, 100]) budget.giveBack(cost)
  take('g', 10)
  await settled()
  t.equal(gone.at(-1), 'g', 'all of it is there again')
})
