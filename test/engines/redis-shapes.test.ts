import { isDeepStrictEqual } from 'node:util'
import { test } from 'tap'
import { openRedisTables } from '../../src/engines/redis-tables/redis-tables.ts'
import type { Find } from '../../src/engines/table-store.ts'
import type { Row, RowChange, TableDeclaration } from '../../src/kernel/table.ts'
import { bruteForce, randomThing, thingId } from '../contracts/table-store-rows.ts'
import { folderOf } from '../support/folder-of.ts'
import { openRedisServer, withoutRedis } from '../support/redis-server.ts'
import { seeded } from '../support/random.ts'

const CONSUMER = 'worker-1'
const ROWS = 60
const ROUNDS = 40

/** Tables that have only some kinds of indexes, each with questions that it can be asked. */
const SHAPES: { table: TableDeclaration; asked: Omit<Find, 'limit'>[] }[] = [
  { table: { name: 'bare', version: 1 }, asked: [{}] },
  {
    table: { name: 'equal', version: 1, equality: ['status', 'teamIds'] },
    asked: [{}, { where: { status: ['open', 'late'] } }, { every: { teamIds: ['team-1', 'team-2'] } }],
  },
  {
    table: { name: 'ranged', version: 1, range: ['size'] },
    asked: [{}, { sort: { field: 'size', order: 'desc' } }, { range: { field: 'size', from: 0 } }],
  },
  {
    table: { name: 'sparse', version: 1, range: ['rank'], sparse: ['rank'] },
    asked: [{}, { range: { field: 'rank', to: 'a9' }, sort: { field: 'rank', order: 'asc' } }],
  },
  { table: { name: 'worded', version: 1, text: ['name', 'notes'] }, asked: [{}, { text: 'nor' }] },
  { table: { name: 'owned', version: 1, lives: 'partition' }, asked: [{}] },
  {
    table: { name: 'ownedRanged', version: 1, lives: 'partition', range: ['name'] },
    asked: [{}, { sort: { field: 'name', order: 'asc' } }],
  },
]
const PAGES = [
  { limit: 10, total: true },
  { limit: 10, offset: 10 },
  { limit: 100, total: true },
]
const scopeOf = ({ lives }: TableDeclaration): string => (lives === 'partition' ? CONSUMER : 's')

test('pages of tables with any kinds of indexes, or none, follow what another process writes', {
  skip: withoutRedis,
  timeout: 900_000,
}, async (t) => {
  const server = await openRedisServer(folderOf(t))
  t.teardown(() => server.kill('SIGKILL'))
  const [writer, reader] = await Promise.all([0, 1].map(() => openRedisTables({ url: server.url })))
  t.teardown(() => Promise.all([writer!.close(), reader!.close()]))
  for (const { table } of SHAPES) for (const store of [writer!, reader!]) await store.declare(table)
  const { fence } = await writer!.take(CONSUMER)
  const random = seeded(11)
  const stored = SHAPES.map(() => new Map<string, Row>())
  const wrong: unknown[] = []
  for (let round = 0; round < ROUNDS; round++) {
    for (const [i, { table, asked }] of SHAPES.entries())
      for (const question of asked)
        for (const page of PAGES) {
          const { limit, offset = 0 } = page
          const expected = bruteForce(stored[i]!, question)
          const found = await reader!.find(table.name, scopeOf(table), { ...question, ...page })
          const isRight =
            isDeepStrictEqual(
              found.rows.map(({ id, row }) => [id, row]),
              expected.slice(offset, offset + limit).map((id) => [id, stored[i]!.get(id)]),
            ) &&
            (found.next === null) === expected.length <= offset + limit &&
            (page.total === undefined || found.total === expected.length)
          if (!isRight) wrong.push([round, table.name, question, page])
        }
    // More at once than is told of one by one, now and then.
    const count = round % 9 === 0 ? 25 : 1 + Math.floor(random() * 3)
    const changes = stored.flatMap((rows, i) => changesOf(SHAPES[i]!.table, rows, count, random))
    const isOwned = ({ scope }: RowChange): boolean => scope === CONSUMER
    await writer!.commit(changes.filter((change) => !isOwned(change)))
    await writer!.commit(changes.filter(isOwned), { consumer: CONSUMER, from: undefined, fence })
  }
  t.same(wrong.slice(0, 3), [], `${wrong.length} pages answered wrong`)
})

/** Rows that come, go, change in one field or in nothing; kept in `rows` too. */
const changesOf = (
  table: TableDeclaration,
  rows: Map<string, Row>,
  count: number,
  random: () => number,
): RowChange[] => {
  const changes = new Map<string, Row | null>()
  for (let n = 0; n < count; n++) {
    const id = thingId(Math.floor(random() * ROWS))
    const before = rows.get(id)
    const fresh = randomThing(random)
    const fields = Object.keys(fresh)
    const field = fields[Math.floor(random() * fields.length)] as string
    const kind = random()
    const row = before === undefined || kind < 0.1 ? fresh : kind < 0.6 ? { ...before, [field]: fresh[field] } : before
    changes.set(id, before !== undefined && kind > 0.75 ? null : row)
  }
  for (const [id, row] of changes)
    if (row === null) rows.delete(id)
    else rows.set(id, row)
  return [...changes].map(([id, row]) => ({ table: table.name, scope: scopeOf(table), id, row }))
}
