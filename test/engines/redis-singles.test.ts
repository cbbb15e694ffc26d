import { test, type Test } from 'tap'
import type { RedisConnection } from '../../src/engines/redis-tables/connection.ts'
import { down } from '../../src/engines/redis-tables/failures.ts'
import { openRedisTables } from '../../src/engines/redis-tables/redis-tables.ts'
import type { TableStore } from '../../src/engines/table-store.ts'
import { folderOf } from '../support/folder-of.ts'
import { openClient, openRedisServer, withoutRedis as skip } from '../support/redis-server.ts'

const DOWN = { code: 'engine_down' }
/** As of a code that serves once: whoever puts it puts the same. */
const USED = { table: 'used', scope: '-', id: 'code', row: { used: true } }

const opened = async (t: Test) => {
  const server = await openRedisServer(folderOf(t))
  const admin = await openClient(server.url)
  const [one, other] = await Promise.all([0, 1].map(() => openRedisTables({ url: server.url })))
  t.teardown(async () => {
    await Promise.all([one!.close(), other!.close()])
    admin.destroy()
    await server.kill('SIGKILL')
  })
  for (const store of [one!, other!]) await store.declare({ name: 'used', version: 1, lives: 'row' })
  /** What happens while this process waits for a replica, which does not come. */
  const noReplica = (store: TableStore, meanwhile: () => Promise<unknown>): void => {
    const { connection } = store as unknown as { connection: RedisConnection }
    connection.replicated = async () => {
      await meanwhile()
      throw down(new Error('no replica'))
    }
  }
  /** The next master has not heard of the row. */
  const forget = async (): Promise<void> => {
    for (const key of await admin.keys('*{r:used*')) await admin.del(key)
  }
  const put = (store: TableStore) => store.putIfAbsent(USED)
  return { admin, one: one!, other: other!, noReplica, forget, put }
}

test('a row without a replica is taken back, and can be put again', { skip }, async (t) => {
  const { one, other, noReplica, put } = await opened(t)
  noReplica(one, async () => undefined)
  await t.rejects(put(one), DOWN)
  t.equal(await other.get('used', '-', 'code'), undefined)
  t.equal(await put(other), undefined)
})

test('the row that another process put after a failover stays, though it is the same', { skip }, async (t) => {
  const { one, other, noReplica, forget, put } = await opened(t)
  noReplica(one, async () => {
    await forget()
    t.equal(await put(other), undefined)
  })
  await t.rejects(put(one), DOWN)
  t.same(await put(one), { used: true }, 'the other one has it')
})

test('a row that was changed since it was put stays', { skip }, async (t) => {
  const { one, other, noReplica, put } = await opened(t)
  noReplica(one, () => other.commit([{ ...USED, row: { used: 'by another' } }]))
  await t.rejects(put(one), DOWN)
  t.same(await other.get('used', '-', 'code'), { used: 'by another' })
})

test('a row is not promised where its server gave its place to another one meanwhile', { skip }, async (t) => {
  const { one, other, put } = await opened(t)
  const { connection } = one as unknown as { connection: RedisConnection }
  let server = 'before'
  connection.serverOf = () => server
  connection.replicated = async () => void (server = 'after')
  await t.rejects(put(one), DOWN)
  t.equal(await other.get('used', '-', 'code'), undefined)
})

test('a put that is made twice, as its answer was lost, is one; made after the row was deleted, none', {
  skip,
}, async (t) => {
  const { one, other, put } = await opened(t)
  const { connection } = one as unknown as { connection: RedisConnection }
  const fcall = connection.fcall.bind(connection)
  const calls: Parameters<RedisConnection['fcall']>[] = []
  connection.fcall = async (...call) => {
    if (call[0] === 'put_single') {
      calls.push(call)
      await fcall(...call)
    }
    return fcall(...call)
  }
  t.equal(await put(one), undefined, 'nobody else has put it')
  await other.commit([{ ...USED, row: null }])
  t.equal(await fcall(...calls[0]!), null)
  t.equal(await other.get('used', '-', 'code'), undefined)
})
