import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import tap, { test, type Test } from 'tap'
import { openRedisTables } from '../../src/engines/redis-tables/redis-tables.ts'
import type { TableStore } from '../../src/engines/table-store.ts'
import { slotOf } from '../../src/engines/redis-tables/slots.ts'
import { openRedisCluster, type RedisCluster } from '../support/redis-cluster.ts'
import { hasRedis, type RedisServer } from '../support/redis-server.ts'
import { until } from '../support/service.ts'
import { storeCheckpoint } from '../support/store-checkpoint.ts'
import { whenUp } from '../support/when-up.ts'

const THINGS = { name: 'things', version: 1, equality: ['color'], range: ['no'] }
const PAGES = { name: 'pages', version: 1, lives: 'partition' as const }
const KEYS = { name: 'keys', version: 1, lives: 'row' as const }
const DOWN = { code: 'engine_down' }

const BALLAST_BYTES = 24_000_000

let clusters = 0

const open = async (t: Test, cluster: RedisCluster, deadlineMs = 2_000) => {
  const prefix = `c${++clusters}`
  const tables = await openRedisTables({ url: `${cluster.url}?prefix=${prefix}`, deadlineMs })
  t.teardown(() => tables.close())
  for (const table of [THINGS, PAGES, KEYS]) await whenUp(() => tables.declare(table))
  const placeOf = (scope: string): string => `${prefix}:{o:${scope}}`
  return { tables, placeOf, prefix }
}

const thing = (scope: string, no: number) => ({
  table: 'things',
  scope,
  id: `thing-${no}`,
  row: { color: no % 2 ? 'red' : 'blue', no },
})

/** A scope whose rows live on that master. */
const scopeOn = async (
  cluster: RedisCluster,
  master: RedisServer,
  placeOf: (scope: string) => string,
  name = 'org',
): Promise<string> => {
  for (let i = 0; ; i++) if ((await cluster.masterOf(placeOf(`${name}-${i}`))) === master) return `${name}-${i}`
}

/** A consumer that keeps its checkpoint on that master. */
const consumerOn = async (cluster: RedisCluster, master: RedisServer, prefix: string) => {
  for (let i = 0; ; i++) if ((await cluster.masterOf(`${prefix}:{p:worker-${i}}`)) === master) return `worker-${i}`
}

/** Moves a slot with all its keys, one by one, as a resharding does; `between` is called after each. */
const moveSlot = async (
  { ask, servers }: RedisCluster,
  slot: number,
  [from, to]: readonly [RedisServer, RedisServer],
  between: () => Promise<void>,
): Promise<number> => {
  const ids = await Promise.all([from, to].map(async (server) => String(await ask(server, 'CLUSTER', 'MYID'))))
  await ask(to, 'CLUSTER', 'SETSLOT', String(slot), 'IMPORTING', ids[0])
  await ask(from, 'CLUSTER', 'SETSLOT', String(slot), 'MIGRATING', ids[1])
  let moved = 0
  for (;;) {
    const [key] = (await ask(from, 'CLUSTER', 'GETKEYSINSLOT', String(slot), '1')) as string[]
    if (key === undefined) break
    await ask(from, 'MIGRATE', '127.0.0.1', String(to.port), key, '0', '60000')
    moved++
    await between()
  }
  for (const server of [to, from, ...servers.slice(0, 3)])
    await ask(server, 'CLUSTER', 'SETSLOT', String(slot), 'NODE', ids[1])
  return moved
}

const checkMoving = (cluster: RedisCluster) => async (t: Test) => {
  const { tables, placeOf } = await open(t, cluster, 60_000)
  const [from, to] = cluster.servers
  const scope = await scopeOn(cluster, from, placeOf)
  await tables.commit(Array.from({ length: 100 }, (_, no) => thing(scope, no)))
  const question = { where: { color: 'red' }, sort: { field: 'no', order: 'asc' as const }, limit: 200, total: true }
  const asked: Promise<unknown>[] = []
  const wrong: unknown[] = []
  let no = 100
  const moved = await moveSlot(cluster, slotOf(placeOf(scope)), [from, to], async () => {
    // Answered when the slot has arrived; what matters is that no answer is of one half.
    asked.push(
      tables.find('things', scope, question).then(({ total, rows }) => {
        if (total !== rows.length || total < 50) wrong.push([total, rows.length])
      }),
      tables.commit([thing(scope, no++)]),
      tables.get('things', scope, 'thing-7').then((row) => row ?? wrong.push('no row')),
    )
  })
  t.ok(moved >= 6, `${moved} keys of a place moved`)
  await Promise.all(asked)
  t.same(wrong, [])
  t.equal(await cluster.masterOf(placeOf(scope)), to)
  const { total } = await tables.find('things', scope, { ...question, where: undefined, limit: 1 })
  t.equal(total, no, 'every row that was written meanwhile is there')
  const ids = new Set<string>()
  for await (const { id } of tables.scan('things', scope)) ids.add(id)
  t.equal(ids.size, no)
}

const checkFlushedMaster = (cluster: RedisCluster) => async (t: Test) => {
  const { tables, placeOf, prefix } = await open(t, cluster)
  const [lost, left] = cluster.servers
  const [gone, there] = await Promise.all([lost, left].map((server) => scopeOn(cluster, server, placeOf)))
  const consumer = await consumerOn(cluster, left, prefix)
  await storeCheckpoint(tables, consumer, { all: 5 }, [thing(gone, 1), thing(there, 1)])
  await tables.putIfAbsent({ table: 'keys', scope: '-', id: 'k', row: { by: 'x' } })
  const keptBy = await cluster.masterOf([...(await keysOf(cluster, prefix))].find((key) => key.includes('{r:'))!)
  let losses = 0
  tables.onLoss(() => losses++)
  await cluster.ask(lost, 'FLUSHALL')
  await t.rejects(tables.get('things', gone, 'thing-1'), DOWN, 'what one master lost does not read as absent')
  await until('the loss to be told', () => losses > 0)
  t.equal(
    await whenUp(() => tables.checkpoint(consumer)),
    undefined,
    'a checkpoint that another master kept counts no more',
  )
  t.equal(
    await whenUp(() => tables.get('things', there, 'thing-1')),
    undefined,
    'nor do its rows: all begins anew together',
  )
  if (keptBy !== lost)
    t.same(await whenUp(() => tables.get('keys', '-', 'k')), { by: 'x' }, 'rows that no log brings back stay')
  await whenUp(() => storeCheckpoint(tables, consumer, { all: 5 }, [thing(gone, 1), thing(there, 1)]))
  t.equal((await tables.find('things', gone, { limit: 1, total: true })).total, 1)
  const before = 'the rows of before to be deleted'
  await until(
    before,
    async () => [...(await keysOf(cluster, prefix))].filter((key) => key.endsWith(':rows')).length === 2,
  )
}

const keysOf = async ({ ask, servers }: RedisCluster, prefix: string): Promise<Set<string>> => {
  const found = await Promise.all(servers.slice(0, 3).map((server) => ask(server, 'KEYS', `${prefix}:*`)))
  return new Set((found as string[][]).flat())
}

const checkFailover = (cluster: RedisCluster) => async (t: Test) => {
  const { tables, placeOf, prefix } = await open(t, cluster)
  const [, other, master] = cluster.servers
  const replica = cluster.servers[5]
  const scope = await scopeOn(cluster, master, placeOf)
  const [own, elsewhere] = [await consumerOn(cluster, master, prefix), await consumerOn(cluster, other, prefix)]
  const page = (no: number) => ({ table: 'pages', scope: own, id: 'page', row: { no } })
  const [one, two] = [await tables.take(own), await tables.take(elsewhere)]
  await tables.commit([page(7)], { consumer: own, from: undefined, at: { 1: 7 }, fence: one.fence })
  await tables.commit([thing(scope, 7)], { consumer: elsewhere, from: undefined, at: { 2: 7 }, fence: two.fence })
  let losses = 0
  tables.onLoss(() => losses++)

  replica.process.kill('SIGSTOP')
  // More than sockets hold for it: what is written from now on stays in the master.
  await cluster.ask(master, 'SET', `${placeOf(scope)}:ballast`, 'x'.repeat(BALLAST_BYTES))
  await tables.commit([page(8)], { consumer: own, from: { 1: 7 }, at: { 1: 8 }, fence: one.fence })
  t.same(await tables.get('pages', own, 'page'), { no: 8 }, 'rows and checkpoint that one server has need no replica')
  const split = { consumer: elsewhere, from: { 2: 7 }, at: { 2: 8 }, fence: two.fence }
  await tables.commit([thing(scope, 9)], { ...split, at: undefined })
  await t.rejects(tables.commit([], split), DOWN, 'a checkpoint does not come before rows that were stored without one')
  await t.rejects(
    tables.commit([thing(scope, 8)], split),
    DOWN,
    'a checkpoint does not come before its rows have a replica',
  )
  const found = 'nor where the rows were found when the batch was handed over again, and nothing was to be written'
  await t.rejects(tables.commit([], split), DOWN, found)
  const puts = Array.from({ length: 12 }, (_, i) => ({ table: 'keys', scope: '-', id: `key-${i}`, row: {} }))
  const outcomes = await Promise.allSettled(puts.map((put) => tables.putIfAbsent(put)))
  const refused = outcomes.filter(({ status }) => status === 'rejected').length
  t.ok(refused > 0 && refused < puts.length, 'nor is a key promised that this master alone has')
  await master.kill('SIGKILL')
  replica.process.kill('SIGCONT')

  await until('the replica to have its place', () =>
    tables.get('things', scope, 'thing-7').then(
      (row) => row !== undefined,
      () => false,
    ),
  )
  await until('the failover to be told', () => losses > 0)
  t.same(await whenUp(() => tables.checkpoint(own)), { 1: 7 }, 'the checkpoint went backwards')
  t.same(await whenUp(() => tables.get('pages', own, 'page')), { no: 7 }, 'with its rows')
  t.equal(await whenUp(() => tables.get('things', scope, 'thing-8')), undefined)
  t.same(await whenUp(() => tables.checkpoint(elsewhere)), { 2: 7 }, 'the other one was never ahead of them')
  const after = { consumer: own, from: { 1: 8 }, at: { 1: 9 }, fence: one.fence }
  const ahead = whenUp(() => tables.commit([page(9)], after))
  await t.rejects(ahead, { name: 'StaleCommit', stored: { at: { 1: 7 } } })
  await whenUp(() => tables.commit([page(8)], { ...after, from: { 1: 7 }, at: { 1: 8 } }))
  await t.rejects(tables.commit([], split), DOWN, 'what was found on the master that died is to be looked for again')
  await whenUp(() => tables.commit([thing(scope, 8)], split))
  t.same(await whenUp(() => tables.get('things', scope, 'thing-8')), { color: 'blue', no: 8 })
  t.same(await whenUp(() => tables.checkpoint(elsewhere)), { 2: 8 })
}

/** A table that notes its scopes on that master. */
const tableOn = async (cluster: RedisCluster, master: RedisServer, tables: TableStore, prefix: string) => {
  for (let i = 0; ; i++) {
    const name = `things-${i}`
    await tables.declare({ ...THINGS, name })
    const registry = `${prefix}:{tables}`
    const record = JSON.parse(String(await cluster.ask(await cluster.masterOf(registry), 'HGET', registry, name))) as {
      generation: string
    }
    const notes = `${prefix}:{g:${record.generation}}:scopes`
    if ((await cluster.masterOf(notes)) === master) return { name, notes }
  }
}

const checkForgottenScopes = (cluster: RedisCluster) => async (t: Test) => {
  const { tables, placeOf, prefix } = await open(t, cluster)
  const [other, master] = cluster.servers
  const replica = cluster.servers[4]
  const { name, notes } = await tableOn(cluster, master, tables, prefix)
  const [scope, lateScope] = [await scopeOn(cluster, other, placeOf), await scopeOn(cluster, other, placeOf, 'late')]
  const consumer = await consumerOn(cluster, other, prefix)
  const { fence } = await tables.take(consumer)
  await tables.commit([{ ...thing(scope, 1), table: name }], { consumer, from: undefined, at: { all: 1 }, fence })
  await cluster.ask(master, 'SREM', notes, scope) // as a failover before it had a replica would

  replica.process.kill('SIGSTOP')
  // More than sockets hold for it: what is written from now on stays in the master.
  await cluster.ask(master, 'SET', `${notes}:ballast`, 'x'.repeat(BALLAST_BYTES))
  const late = { ...thing(lateScope, 1), table: name }
  const move = { consumer, from: { all: 1 }, at: { all: 2 }, fence }
  await t.rejects(tables.commit([late], move), DOWN, 'no checkpoint comes before the note of a scope has a replica')
  await master.kill('SIGKILL')
  replica.process.kill('SIGCONT')

  const scopes = async (): Promise<string[]> => {
    const found: string[] = []
    for await (const row of tables.scanAll(name)) found.push(row.scope)
    return found
  }
  await until('the scope to be noted again', () =>
    scopes().then(
      (found) => found.includes(scope),
      () => false,
    ),
  )
  await whenUp(() => tables.commit([late], move))
  t.same(await whenUp(scopes), [lateScope, scope])
}

if (hasRedis) {
  const folder = mkdtempSync(join(tmpdir(), 'redis-cluster-'))
  const cluster = await openRedisCluster(folder)
  tap.teardown(async () => {
    await cluster.close()
    rmSync(folder, { recursive: true, force: true })
  })
  test('a slot that moves under reads and writes is never read or written by halves', checkMoving(cluster))
  test('when one master loses all, everything begins anew', checkFlushedMaster(cluster))
  test(
    'a master dies with writes that no replica has: checkpoints go backwards, never ahead of rows',
    checkFailover(cluster),
  )
  test('a master dies that knew which scopes a table has: they are still scanned', checkForgottenScopes(cluster))
} else
  test('redis cluster', { skip: 'redis-server is not installed (apt-get install redis-server)' }, async () => undefined)
