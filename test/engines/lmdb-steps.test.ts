import { test, type Test } from 'tap'
import { openLmdbTableStore } from '../../src/engines/lmdb-tables/lmdb-tables.ts'
import type { Find, TableStore } from '../../src/engines/table-store.ts'
import type { Row, RowChange } from '../../src/kernel/table.ts'
import { realClock } from '../contracts/clocks.ts'
import { bruteForce } from '../contracts/table-store-rows.ts'
import { folderOf } from '../support/folder-of.ts'
import { seeded } from '../support/random.ts'

/* Pages of many rows in the order of a field with few values: only the stretches of values that they have are walked. */

const ROWS = 6_000

/** Priorities of a team's tasks: numbers, some of them missing, and for one field a text among them. */
const rowOf = (i: number, random: () => number): Row => {
  const team = i % 3 === 0 ? 'large' : i % 12 === 1 ? 'small' : 'others'
  const most = team === 'others' ? 10 : 3
  const priority = Math.floor(random() * most) - 1 + (team === 'others' ? 0 : 6)
  return {
    team,
    ...(random() < 0.9 && { priority }),
    ...(team === 'large' && i < 9 ? {} : { sure: priority }),
    mixed: i === 300 ? 'text' : priority,
    list: i % 100 === 0 ? [priority, 20] : priority,
  }
}

const storeOf = async (t: Test): Promise<{ store: TableStore; rows: Map<string, Row> }> => {
  const store = await openLmdbTableStore({ path: folderOf(t), clock: realClock })
  t.teardown(() => store.close())
  const fields = ['priority', 'sure', 'mixed', 'list']
  await store.declare({ name: 'tasks', version: 1, equality: ['team', ...fields], range: fields })
  const random = seeded(3)
  const rows = new Map(
    Array.from({ length: ROWS }, (_, i) => [`t${String((i * 7919) % 100_000).padStart(6, '0')}`, rowOf(i, random)]),
  )
  await store.commit([...rows].map(([id, row]): RowChange => ({ table: 'tasks', scope: 's', id, row })))
  return { store, rows }
}

test('pages in the order of few values are those that looking at each row finds', async (t) => {
  const { store, rows } = await storeOf(t)
  // Lists have no place in an order.
  const sorted = new Map(
    [...rows].map(([id, row]) => [id, Array.isArray(row.list) ? { ...row, list: undefined } : row]),
  )
  for (const team of ['large', 'small'])
    for (const field of ['priority', 'sure', 'mixed', 'list'])
      for (const order of ['asc', 'desc'] as const) {
        const question: Find = { where: { team }, sort: { field, order }, limit: 20, total: true, once: true }
        const wanted = bruteForce(sorted, question)
        t.ok(wanted.length >= 400)
        const found: string[] = []
        let after: string | undefined
        for (let page = 0; page < 60; page += 1) {
          const { rows: some, next, total } = await store.find('tasks', 's', { ...question, ...(after && { after }) })
          found.push(...some.map(({ id }) => id))
          if (page === 0) t.equal(total, wanted.length)
          if (next === null) break
          after = next
        }
        t.strictSame(found, wanted.slice(0, found.length), `${team} by ${field}, ${order}`)
        const { rows: skipped } = await store.find('tasks', 's', { ...question, offset: 213 })
        t.strictSame(
          skipped.map(({ id }) => id),
          wanted.slice(213, 233),
        )
      }
})
