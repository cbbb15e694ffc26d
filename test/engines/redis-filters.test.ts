import { test } from 'tap'
import { openRedisTables } from '../../src/engines/redis-tables/redis-tables.ts'
import type { Find } from '../../src/engines/table-store.ts'
import type { Row } from '../../src/kernel/table.ts'
import { bruteForce, put, thingId, THINGS } from '../contracts/table-store-rows.ts'
import { folderOf } from '../support/folder-of.ts'
import { openClient, openRedisServer, withoutRedis } from '../support/redis-server.ts'

const ROWS = 3_000
const ROW_BYTES = 2_000

/** A twelfth is open; some have no name, or no size, or values that look like the name of an index. */
const thing = (no: number): Row => ({
  status: no % 12 === 0 ? 'open' : 'done',
  hubId: no % 5 === 0 ? 'a hub r:name' : `hub-${no % 5}`,
  teamIds: [`team-${no % 10}`, `team-${(no + 1) % 10}`, ...(no % 4 === 0 ? ['r:size', 'r:name'] : [])],
  ...(no % 7 !== 0 && { name: `Van ${(no * 7919) % 100}` }),
  ...(no % 11 !== 0 && { size: ((no * 31) % 50) - 20 }),
  extra: 'x'.repeat(ROW_BYTES),
})

const ASKED: Omit<Find, 'limit'>[] = [
  { where: { status: 'open' } },
  { where: { status: 'open' }, sort: { field: 'name', order: 'asc' } },
  { where: { status: 'open' }, sort: { field: 'size', order: 'desc' } },
  { where: { teamIds: ['team-1', 'team-2'], hubId: 'hub-1' }, sort: { field: 'name', order: 'desc' } },
  { every: { teamIds: ['team-3', 'team-4'] }, sort: { field: 'size', order: 'asc' } },
]

test('a page of a filter that hundreds match reads the rows of that page alone', {
  skip: withoutRedis,
}, async (t) => {
  const server = await openRedisServer(folderOf(t))
  const admin = await openClient(server.url)
  const [writer, reader] = await Promise.all([0, 1].map(() => openRedisTables({ url: server.url })))
  t.teardown(async () => {
    await Promise.all([writer!.close(), reader!.close()])
    admin.destroy()
    await server.kill('SIGKILL')
  })
  for (const store of [writer!, reader!]) await store.declare(THINGS)
  const rows = new Map(Array.from({ length: ROWS }, (_, no) => [thingId(no), thing(no)]))
  await writer!.commit([...rows].map(([id, row]) => put('s', id, row)))
  const sentBytes = async (): Promise<number> =>
    Number(/total_net_output_bytes:(\d+)/.exec(await admin.info('stats'))?.[1])
  for (const question of ASKED) {
    const expected = bruteForce(rows, question)
    t.ok(expected.length > 200, `${expected.length} rows match`)
    const before = await sentBytes()
    const found = await reader!.find('things', 's', { ...question, limit: 100, total: true })
    const sent = (await sentBytes()) - before
    t.ok(sent < 220 * ROW_BYTES, `${JSON.stringify(question)}: ${sent} bytes`)
    t.strictSame([found.total, found.rows.map(({ id }) => id)], [expected.length, expected.slice(0, 100)])
    for (const { id, row } of found.rows) if (row.hubId !== rows.get(id)?.hubId) t.fail(`${id} is another row`)
    const page = { ...question, limit: 100, ...(found.next !== null && { after: found.next }) }
    const further = await reader!.find('things', 's', { ...page, once: true })
    t.strictSame(
      further.rows.map(({ id }) => id),
      expected.slice(100, 200),
      'the next page, made anew',
    )
  }
})
