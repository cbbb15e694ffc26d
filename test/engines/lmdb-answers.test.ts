import { test, type Test } from 'tap'
import { orderBytes } from '../../src/engines/lmdb-tables/layout.ts'
import { openLmdbTableStore } from '../../src/engines/lmdb-tables/lmdb-tables.ts'
import { inOrder, inOrderWith, type Match } from '../../src/engines/lmdb-tables/order.ts'
import type { Find, TableStore } from '../../src/engines/table-store.ts'
import type { Row } from '../../src/kernel/table.ts'
import { HeldClock, realClock } from '../contracts/clocks.ts'
import { bruteForce, drop, put, THINGS, thingId } from '../contracts/table-store-rows.ts'
import { folderOf } from '../support/folder-of.ts'

/* What the embedded tables remember of their answers, and that nothing of it is answered when it no longer holds. */

const OPEN: Find = { where: { status: 'open' }, sort: { field: 'size', order: 'asc' }, limit: 5, total: true }

const opened = async (t: Test, rows: number): Promise<TableStore> => {
  const store = await openLmdbTableStore({ path: folderOf(t), clock: realClock })
  t.teardown(() => store.close())
  await store.declare(THINGS)
  await store.commit(
    Array.from({ length: rows }, (_, i) => put('s', thingId(i), { status: i % 2 === 0 ? 'open' : 'done', size: i })),
  )
  return store
}

const sizesOf = async (store: TableStore, question: Find): Promise<unknown[]> =>
  (await store.find('things', 's', question)).rows.map(({ row }) => row.size)

test('an answer is the same one until something of it changes', async (t) => {
  const store = await opened(t, 40)
  const first = await store.find('things', 's', OPEN)
  t.equal(await store.find('things', 's', { ...OPEN }), first)
  await store.commit([put('s', thingId(1), { status: 'done', size: 1, name: 'not in it' })])
  t.equal(await store.find('things', 's', OPEN), first, 'a row elsewhere changed in what the question does not ask')
  await store.commit([
    put('s', thingId(1), { status: 'late', size: 1 }),
    put('s', thingId(99), { status: 'late', size: -9 }),
    drop('s', thingId(3)),
  ])
  t.equal(await store.find('things', 's', OPEN), first, 'rows elsewhere changed in what it asks')
  await store.commit([put('elsewhere', thingId(0), { status: 'open', size: -1 })])
  t.equal(await store.find('things', 's', OPEN), first, 'another scope')
  await store.commit([put('s', thingId(2), { status: 'open', size: 2, notes: 'new' })])
  const changed = await store.find('things', 's', OPEN)
  t.strictSame(
    changed.rows.map(({ row }) => row.notes),
    [undefined, 'new', undefined, undefined, undefined],
  )
  t.equal(changed.rows[0], first.rows[0], 'rows that did not change are the same ones')
  t.equal(first.rows[1].row.notes, undefined, 'what was answered stays as it was')
})

test('nobody can change what others are answered', async (t) => {
  const store = await opened(t, 4)
  const { rows } = await store.find('things', 's', OPEN)
  t.throws(() => rows.pop(), TypeError)
  t.throws(() => Object.assign(rows[0].row, { status: 'x' }), TypeError)
  t.throws(() => Object.assign(rows[0], { id: 'x' }), TypeError)
  const row = { status: 'open', size: -1, extra: { deep: [{ of: 1 }] } }
  await store.commit([put('s', thingId(9), row)])
  const [found] = (await store.find('things', 's', OPEN)).rows
  t.throws(() => Object.assign((found.row.extra as typeof row.extra).deep[0], { of: 2 }), TypeError)
})

test('rows that hold bytes are answered anew each time', async (t) => {
  const store = await opened(t, 0)
  await store.commit([put('s', 'a', { status: 'open', extra: new Uint8Array([1, 2]) })])
  const question: Find = { where: { status: 'open' }, limit: 1 }
  const bytes = async () => (await store.find('things', 's', question)).rows[0].row.extra as Uint8Array
  ;(await bytes()).fill(9)
  t.strictSame([...(await bytes())], [1, 2])
})

test('an answer that was begun before a commit is not taken for one after it', async (t) => {
  const store = await opened(t, 3_000)
  for (let round = 0; round < 30; round += 1) {
    const size = -1 - round
    const begun = [store.find('things', 's', OPEN), store.find('things', 's', { ...OPEN, offset: 1 })]
    const committed = store.commit([put('s', thingId(0), { status: 'open', size })])
    begun.push(store.find('things', 's', OPEN))
    await Promise.all([...begun, committed])
    t.strictSame(await sizesOf(store, OPEN), [size, 2, 4, 6, 8])
    t.strictSame(await sizesOf(store, { ...OPEN, offset: 1 }), [2, 4, 6, 8, 10])
  }
})

test('a commit that is refused changes no answer, and the next one that is done does', async (t) => {
  const store = await opened(t, 40)
  await store.find('things', 's', OPEN)
  const { fence } = await store.take('consumer')
  const change = put('s', thingId(0), { status: 'open', size: 100 })
  await t.rejects(store.commit([change], { consumer: 'consumer', from: { all: 7 }, at: { all: 8 }, fence }))
  t.strictSame(await sizesOf(store, OPEN), [0, 2, 4, 6, 8])
  await store.commit([change], { consumer: 'consumer', from: undefined, at: { all: 8 }, fence })
  t.strictSame(await sizesOf(store, OPEN), [2, 4, 6, 8, 10])
})

test('pages and totals of many and of few rows follow what is left of them', async (t) => {
  const store = await opened(t, 4_000)
  const many: Find = {
    where: { status: ['open', 'done'] },
    sort: { field: 'size', order: 'desc' },
    limit: 3,
    total: true,
  }
  const all: Find = { limit: 3, total: true }
  const bounded: Find = {
    range: { field: 'size', from: 10, to: 3_990 },
    sort: { field: 'size', order: 'asc' },
    limit: 2,
  }
  for (let left = 4_000; left > 3_980; left -= 1) {
    const found = await store.find('things', 's', many)
    t.strictSame([found.total, found.rows[0].row.size], [left, left - 1])
    t.equal((await store.find('things', 's', all)).total, left)
    t.equal((await store.find('things', 's', { ...all, offset: 1 })).total, left)
    // Without the total bounds are left to the walk, with it they are counted: neither is taken for the other.
    t.equal((await store.find('things', 's', { ...bounded, where: many.where })).total, undefined)
    const counted = await store.find('things', 's', { ...bounded, where: many.where, total: true })
    t.equal(counted.total, Math.min(left - 1, 3_990) - 9)
    t.strictSame(await sizesOf(store, bounded), [10, 11])
    await store.commit([drop('s', thingId(left - 1))])
  }
})

test('numbers that JSON cannot say are bounds of their own', async (t) => {
  const store = await opened(t, 10)
  const { POSITIVE_INFINITY: more, NEGATIVE_INFINITY: less } = Number
  const ask = (from: number): Promise<unknown[]> =>
    sizesOf(store, { range: { field: 'size', from }, sort: { field: 'size', order: 'asc' }, limit: 20 })
  t.equal((await ask(less)).length, 10)
  t.equal((await ask(more)).length, 0)
})

test('each scope and each table has answers of its own', async (t) => {
  const store = await opened(t, 0)
  await store.declare({ ...THINGS, name: 'others' })
  const places: [string, string][] = [
    ['things', 'a'],
    ['things', 'b'],
    ['others', 'a'],
  ]
  // The same changes in each, so that nothing but the place tells them apart.
  await store.commit(
    places.map(([table, scope], size) => ({
      table,
      scope,
      id: 'one',
      row: { status: 'open', size, of: table + scope },
    })),
  )
  for (let round = 0; round < 2; round += 1)
    for (const [table, scope] of places) {
      const found = await store.find(table, scope, OPEN)
      t.strictSame(
        found.rows.map((one) => [one.scope, one.row.of]),
        [[scope, table + scope]],
      )
    }
})

test('words that come and go are found and found no more', async (t) => {
  const store = await opened(t, 20)
  const question: Find = { text: 'depot', limit: 5, total: true }
  for (const notes of ['Depot', 'Garage', 'The depot']) {
    await store.commit([put('s', thingId(3), { status: 'open', size: 3, notes })])
    t.equal((await store.find('things', 's', question)).total, notes === 'Garage' ? 0 : 1)
  }
})

test('a row that ends is in no answer from then on, although nothing was written', async (t) => {
  const clock = new HeldClock()
  const store = await openLmdbTableStore({ path: folderOf(t), clock })
  t.teardown(() => store.close())
  await store.declare(THINGS)
  const endsAt = clock.now() + 1_000
  await store.commit([put('s', 'a', { status: 'open', size: 1 }, endsAt), put('s', 'b', { status: 'open', size: 2 })])
  t.strictSame(await sizesOf(store, OPEN), [1, 2])
  t.strictSame(await sizesOf(store, OPEN), [1, 2])
  clock.pass(1_000)
  t.strictSame(await sizesOf(store, OPEN), [2])
  t.equal((await store.find('things', 's', OPEN)).total, 1)
  t.strictSame(await sizesOf(store, { ...OPEN, once: true }), [2])
  t.strictSame(await sizesOf(store, { ...OPEN, once: true, where: { size: 1 } }), [])
})

test('what is asked once follows every change, and nothing of it is remembered', async (t) => {
  const store = await opened(t, 0)
  const asked: Find = { where: { size: 1 }, limit: 2, once: true }
  t.strictSame(await sizesOf(store, asked), [])
  await store.commit([put('s', 'a', { status: 'open', size: 1 })])
  const found = await store.find('things', 's', asked)
  t.strictSame(
    found.rows.map(({ id }) => id),
    ['a'],
  )
  t.not(await store.find('things', 's', asked), found)
  await store.commit([put('s', 'a', { status: 'open', size: 2 })])
  t.strictSame(await sizesOf(store, asked), [])
})

test('an answer follows what was changed since, however much or little that was', async (t) => {
  const store = await opened(t, 400)
  const rows = new Map(
    Array.from({ length: 400 }, (_, i): [string, Row] => [
      thingId(i),
      { status: i % 2 === 0 ? 'open' : 'done', size: i },
    ]),
  )
  const asked = [
    OPEN,
    { ...OPEN, sort: { field: 'size', order: 'desc' }, offset: 3 },
    { ...OPEN, where: { hubId: LONG }, limit: 50 },
    { every: { teamIds: ['b', 'a'] }, ranges: [{ field: 'size', from: -20, to: 9_000 }], limit: 50, total: true },
    { words: [['dep', 'gar'], ['nor']], sort: { field: 'name', order: 'asc' }, limit: 50, total: true },
  ] as const satisfies Find[]
  const compare = async (what: string): Promise<void> => {
    for (const question of asked) {
      const { offset = 0, limit } = question as Find
      const found = await store.find('things', 's', question)
      const expected = bruteForce(rows, question)
      t.strictSame(
        found.rows.map(({ id, row }) => [id, row]),
        expected.slice(offset, offset + limit).map((id) => [id, rows.get(id)]),
        what,
      )
      t.equal(found.total, expected.length, what)
    }
  }
  const write = async (changes: readonly [number, Row | null][]): Promise<void> => {
    for (const [i, row] of changes) row === null ? rows.delete(thingId(i)) : rows.set(thingId(i), row)
    await store.commit(changes.map(([i, row]) => (row === null ? drop('s', thingId(i)) : put('s', thingId(i), row))))
  }
  const thing = (i: number): Row => ({
    status: 'open',
    size: -i,
    hubId: i % 3 === 0 ? LONG : `${LONG}!`,
    teamIds: i % 5 === 0 ? ['a', 'b', 'c'] : ['a'],
    name: i % 7 === 0 ? 'Garage nord 😀' : `Depot ${i} Nörd`,
    notes: 'x',
  })
  const many = { status: 'done', hubId: LONG, teamIds: ['b', 'a'], name: 'Garage nord' }
  await write(Array.from({ length: 100 }, (_, i) => [100 + i, { ...many, size: i }]))
  await compare('at first')
  await write([
    [5, thing(5)],
    [6, null],
    [7, thing(6)],
    [7, thing(7)],
  ])
  await compare('some came, one went')
  await write([
    [6, thing(6)],
    [5, null],
  ])
  await write([
    [5, thing(35)],
    [500, thing(30)],
  ])
  await compare('what went came again')
  await write([
    [5, { ...thing(35), name: 'garage Nord' }],
    [1, { status: 'done', size: 1, notes: 'nothing asks for this' }],
  ])
  await compare('in one field')
  for (let i = 0; i < 140; i += 1) await write([[i % 9, thing(i)]])
  await compare('more commits than are noted')
  await write(Array.from({ length: 700 }, (_, i) => [600 + i, thing(i)]))
  await compare('a commit of more rows than are noted')
  await write(Array.from({ length: 300 }, (_, i) => [600 + i, null]))
  await write(Array.from({ length: 300 }, (_, i) => [900 + i, { status: 'done', size: i }]))
  await compare('two of many rows')
})

test('pages within bounds of other fields than the order follows are those that looking at each row finds', async (t) => {
  const store = await opened(t, 0)
  const values = ['ś', 'S', '\ud83d\ude00', 'x'.repeat(450), undefined, 7, -1, 'a']
  const rows = new Map(
    // Bounds that few rows keep are walked, others are held against each row of the set.
    Array.from({ length: 7_000 }, (_, i): [string, Row] => {
      const status = i % 7 < 2 ? 'open' : 'done'
      const name = values[(i * 13) % values.length]
      return [thingId(i), { status, size: (i * 11) % 900, createdAt: i % 3, ...(name !== undefined && { name }) }]
    }),
  )
  await store.commit([...rows].map(([id, row]) => put('s', id, row)))
  for (const order of ['asc', 'desc'] as const)
    for (const [field, from] of [
      ['name', 20],
      ['createdAt', 20],
      ['name', 890],
      ['size', 890],
      ['size', 20],
      ['createdAt', 500],
    ] as const) {
      const question: Find = {
        where: { status: 'open' },
        range: { field: 'size', from },
        ...(from !== 20 && { ranges: [{ field: 'createdAt', to: 1 }] }),
        sort: { field, order },
        limit: 9,
        total: true,
      }
      const expected = bruteForce(rows, question)
      for (const offset of [0, 1, 200, 1_900]) {
        const found = await store.find('things', 's', { ...question, offset })
        t.strictSame(
          found.rows.map(({ id }) => id),
          expected.slice(offset, offset + 9),
          `${field} ${order} from ${from}, ${offset} on`,
        )
        t.equal(found.total, expected.length)
        if (found.next === null) continue
        const next = await store.find('things', 's', { ...question, after: found.next })
        t.strictSame(
          next.rows.map(({ id }) => id),
          expected.slice(offset + 9, offset + 18),
        )
      }
    }
})

test('a total of more rows than are counted at once is that of all of them', async (t) => {
  const store = await opened(t, 20_050)
  const total = async (from: number, to?: number): Promise<unknown> =>
    (
      await store.find('things', 's', {
        range: { field: 'size', from, ...(to !== undefined && { to }) },
        sort: { field: 'size', order: 'asc' },
        limit: 1,
        total: true,
      })
    ).total
  for (const from of [0, 49, 50, 51, 20_049]) t.equal(await total(from), 20_050 - from)
  t.equal(await total(1, 20_001), 20_001)
})

const LONG = 'a hub with a name of more bytes than the index keeps as they are '.repeat(5)

test('what is put into an order stands where sorting puts it', (t) => {
  const names = ['Ａ', '😀', '😀a', 'z', '', '\ud800', 'x'.repeat(500), `${'x'.repeat(500)}y`, 'ß', 'a\0', 'a']
  const values = [...names, ...[0, -0, -1.5, 1e300, Number.NaN], null]
  const matches = values.flatMap((value, i) =>
    names.map((name, j): Match => ({ no: i * 100 + j, id: `${name.slice(0, 400)}${i} ${j}`, value })),
  )
  for (const isDescending of [false, true]) {
    const all = inOrder(matches, isDescending)
    for (const part of [1, 3, 7])
      t.strictSame(
        inOrderWith(
          inOrder(
            matches.filter((_, i) => i % part !== 0),
            isDescending,
          ),
          matches.filter((_, i) => i % part === 0),
          isDescending,
        ).map(({ id, value }) => [id, String(value)]),
        all.map(({ id, value }) => [id, String(value)]),
      )
  }
  t.strictSame(inOrder(matches, false), byBytes(matches))
  t.end()
})

/** By the bytes that the indexes hold. */
const byBytes = (matches: readonly Match[]): Match[] =>
  matches.toSorted(
    (a, b) =>
      Buffer.compare(orderBytes(a.value), orderBytes(b.value)) || Buffer.compare(Buffer.from(a.id), Buffer.from(b.id)),
  )
