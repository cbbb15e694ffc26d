import { isDeepStrictEqual } from 'node:util'
import { type Test, test } from 'tap'
import type { Conditions, Find, Grouping, StoredRow, TableStore } from '../../src/engines/table-store.ts'
import { storeCheckpoint } from '../support/store-checkpoint.ts'
import { Failure } from '../../src/kernel/errors.ts'
import { type Row, rowChangesOf, type TableDeclaration } from '../../src/kernel/table.ts'
import { bruteForce, drop, put, questions, randomThing, THINGS, type ThingRow, thingId } from './table-store-rows.ts'
import { until } from '../support/service.ts'
import { seeded } from '../support/random.ts'

/** Fewer than an engine goes back to the beginning for. */
const COMMITS_OF_A_QUESTION = 8
const ALL = ['0', '1', '2', '3', '4', '5', '6']

/** An open store and how time passes for it. */
export interface OpenedTables {
  store: TableStore
  now(): number
  /** Lets so much time pass: moves a clock, or waits where the engine has a clock of its own. */
  pass(ms: number): Promise<void>
}

export interface TableStoreEngine {
  /** Opens a store without rows; the suite closes it. */
  open(t: Test): Promise<OpenedTables>
  /** Promises that this engine cannot keep, each with the reason. */
  skip?: { promise: string; reason: string }[]
}

/** One field at a time, so that nothing else tells that a row has changed. */
const CHANGES: readonly Partial<ThingRow>[] = [
  { status: 'late' },
  { extra: 'nothing looks at this' },
  { notes: 'Depot nord' },
  { size: -4 },
  { name: 'Zürich' },
  { teamIds: ['team-1', 'team-2'] },
  { hubId: 'hub-3' },
  { createdAt: 1_000 },
  { rank: 'b2' },
  { isDone: true },
]

type Check = (t: Test, opened: OpenedTables) => Promise<void>

/** Proves the promises of `TableStore` against one engine. Orders: `desc` is `asc` reversed, ids of ties too. */
export const tableStoreContract = (name: string, engine: TableStoreEngine): void => {
  for (const [promise, check] of Object.entries(PROMISES)) {
    const skipped = engine.skip?.find((entry) => entry.promise === promise)
    test(`${name}: ${promise}`, { skip: skipped?.reason ?? false, timeout: 900_000 }, async (t) => {
      const opened = await engine.open(t)
      t.teardown(() => opened.store.close())
      await opened.store.declare(THINGS)
      await check(t, opened)
    })
  }
}

const idsOf = (rows: readonly { id: string }[]): string[] => rows.map(({ id }) => id)

const scanned = async (store: TableStore, table: string, scope?: string): Promise<StoredRow[]> => {
  const rows: StoredRow[] = []
  const scan = scope === undefined ? store.scanAll(table) : store.scan(table, scope)
  for await (const row of scan) rows.push(row)
  return rows
}

/** All pages of a question, by cursor. */
const walk = async (
  store: TableStore,
  scope: string,
  question: Find,
  between?: (page: number) => Promise<void>,
): Promise<string[]> => {
  const ids: string[] = []
  let after: string | undefined
  for (let page = 0; ; page += 1) {
    const found = await store.find('things', scope, { ...question, ...(after !== undefined && { after }) })
    ids.push(...idsOf(found.rows))
    if (found.next === null) return ids
    after = found.next
    await between?.(page)
  }
}

/**
 * Judges what was seen of something that lives for so long, in a scope of its own. An engine with a clock of its own waits
 * for nobody: a try that was not over in time says nothing, and is made again with a longer life. Answers that life.
 */
const inTime = async (
  now: () => number,
  look: (lifeMs: number, scope: string) => Promise<() => void>,
): Promise<number> => {
  for (let lifeMs = 500; ; lifeMs *= 3) {
    const began = now()
    const judge = await look(lifeMs, `alive ${lifeMs}`)
    if (now() - began >= lifeMs) continue
    judge()
    return lifeMs
  }
}

const fill = async (store: TableStore, scope: string, count: number, seed: number): Promise<Map<string, ThingRow>> => {
  const random = seeded(seed)
  const rows = new Map(Array.from({ length: count }, (_, index) => [thingId(index), randomThing(random)]))
  await store.commit([...rows].map(([id, row]) => put(scope, id, row)))
  return rows
}

/** Compares some of the questions with what every row says. */
const compare = async (
  t: Test,
  store: TableStore,
  scope: string,
  rows: ReadonlyMap<string, Row>,
  every: number,
): Promise<void> => {
  const wrong: unknown[] = []
  for (const [index, question] of questions().entries()) {
    if (index % every !== 0) continue
    const expected = bruteForce(rows, question)
    const asked = {
      ...question,
      limit: 7,
      offset: index % 5,
      total: true,
      ...(index % 2 === 1 && { once: true as const }),
    }
    const found = await store.find('things', scope, asked)
    const page = expected.slice(index % 5, (index % 5) + 7)
    const isRight =
      found.total === expected.length &&
      idsOf(found.rows).join() === page.join() &&
      (found.next === null) === expected.length <= (index % 5) + 7
    if (!isRight)
      wrong.push({ question, found: { ...found, rows: idsOf(found.rows) }, expected: page, total: expected.length })
  }
  t.same(wrong.slice(0, 3), [], `${wrong.length} questions answered wrong`)
}

/** Groups of what each question means, by looking at every row. */
const groupsOf = (
  rows: ReadonlyMap<string, Row>,
  asked: readonly Conditions[],
  { field, stepOf }: Grouping,
): object => {
  const groups: { [key: string]: number[] } = {}
  for (const [i, question] of asked.entries())
    for (const id of bruteForce(rows, question))
      for (const value of new Set([rows.get(id)?.[field] ?? []].flat())) {
        const key = stepOf === undefined ? String(value) : String(value)[0]
        groups[key] ??= asked.map(() => 0)
        groups[key][i] += 1
      }
  return groups
}

/** By the first letter, `a` or `b`. */
const byLetter = (value: string): { last: string; next: string } =>
  value < 'b' ? { last: 'a\uffff', next: 'b' } : { last: 'b\uffff', next: 'c' }

const PROMISES: { [promise: string]: Check } = {
  'rows hold what JSON can hold, and bytes': async (t, { store }) => {
    const row = {
      text: 'Zürich 🚚 \u0000 end',
      nothing: null,
      numbers: [0, -1, 1.5, 1e300, 2 ** 53 - 1, 4294967296],
      deep: { list: [{ a: [] }, {}], on: true },
      status: 'open',
      bytes: new Uint8Array([0, 255, 7]),
    }
    await store.commit([put('s', 'one', row)])
    const read = await store.get<typeof row>('things', 's', 'one')
    t.strictSame({ ...read, bytes: undefined }, { ...row, bytes: undefined })
    t.ok(read?.bytes instanceof Uint8Array)
    t.same([...(read?.bytes ?? [])], [0, 255, 7])
    const bytes = read?.bytes as Uint8Array
    t.not(bytes.slice().buffer, bytes.buffer, 'bytes are a Uint8Array, whose slices are copies')
    t.equal(bytes.slice().buffer.byteLength, row.bytes.byteLength)
    const { rows } = await store.find<typeof row>('things', 's', { limit: 1 })
    t.equal(rows[0]?.scope, 's')
    t.same([...(rows[0]?.row.bytes ?? [])], [0, 255, 7])
  },

  'rows of numbers are rows as others': async (t, { store }) => {
    const random = seeded(29)
    const numbers = [0, 1, 31, 127, 128, 255, 256, 65_535, 65_536, 2 ** 31, 2 ** 32 - 1, 2 ** 32, 1_767_225_600_123]
    const all = [...numbers, ...numbers.map((number) => -number), 0.5, -1e-9, 1e300, 2 ** 53]
    const ids = ['a', 'ü'.repeat(20), 'x'.repeat(300), '🚚'.repeat(8)]
    const scopes = ['s1', 's1', 's2', 'organization '.repeat(5)]
    const fields = Array.from({ length: 20 }, (_, i) => `number ${i}`)
    const values = Float64Array.from(
      { length: ids.length * fields.length },
      () => all[Math.floor(random() * all.length)],
    )
    const rows = { table: 'numbers', ids, scopes, idField: 'id', scopeField: 'of', fields, values }
    await store.declare({ name: 'numbers', version: 1 })
    const { fence } = await store.take('c')
    await store.commit(
      [put('s1', 'beside', { status: 'open' })],
      { consumer: 'c', from: undefined, at: { all: 1 }, fence },
      rows,
    )
    const stored = async (i: number): Promise<unknown> => store.get('numbers', scopes[i], ids[i])
    for (const [i, { row }] of rowChangesOf(rows).entries()) t.same(await stored(i), row, `row ${i}`)
    t.same(await store.get('things', 's1', 'beside'), { status: 'open' })
    t.same(await store.checkpoint('c'), { all: 1 })
    const again = { ...rows, ids: ids.slice(0, 1), scopes: scopes.slice(0, 1), values: new Float64Array(fields.length) }
    await store.commit([], undefined, again)
    t.same(
      Object.values((await stored(0)) as object).filter((value) => value !== 0),
      ['a', 's1'],
    )
    t.same((await store.find('numbers', 's1', { limit: 9, total: true })).total, 2)
    const stale = { consumer: 'c', from: undefined, at: { all: 2 }, fence }
    await t.rejects(store.commit([], stale, rows), { name: 'StaleCommit' })
    t.same(
      Object.values((await stored(0)) as object).filter((value) => value !== 0),
      ['a', 's1'],
      'nothing of it counts',
    )
  },

  'rows are counted by groups, whatever is asked of them': async (t, { store }) => {
    const rows = await fill(store, 's', 400, 11)
    await fill(store, 'other', 50, 12)
    const all = questions().map(({ sort: _sort, ...question }) => question)
    const groupings = ['status', 'teamIds', 'isDone', 'size', 'hubId'].map((field): Grouping => ({ field }))
    groupings.push({ field: 'rank', stepOf: byLetter })
    for (const [i, question] of all.entries()) {
      if (i % 7 !== 0) continue
      const grouping = groupings[(i / 7) % groupings.length] as Grouping
      const asked = [question, all[(i * 5) % all.length] as Conditions]
      const found = await store.countBy('things', 's', asked, grouping)
      const counted = Object.fromEntries(
        found.map(({ value, counts }) => [grouping.stepOf === undefined ? value : String(value)[0], counts]),
      )
      t.same(counted, groupsOf(rows, asked, grouping), JSON.stringify([asked, grouping.field]))
    }
    const circle: Grouping = { field: 'rank', stepOf: (value) => ({ last: value, next: value }) }
    await t.rejects(store.countBy('things', 's', [{}], circle), /behind it/, 'a group that never ends')
    t.same(await store.countBy('things', 'nobody', [{}], { field: 'status' }), [])
    await store.commit([...rows.keys()].map((id) => drop('s', id)))
    t.same(await store.countBy('things', 's', [{}], { field: 'status' }), [], 'deleted rows are not counted')
  },

  'a commit stores, replaces and deletes, in the order of its changes': async (t, { store }) => {
    await store.commit([
      put('s', 'a', { status: 'open' }),
      put('s', 'b', { status: 'open' }),
      put('s', 'a', { status: 'done' }),
    ])
    t.same(await store.get('things', 's', 'a'), { status: 'done' })
    await store.commit([drop('s', 'a'), put('s', 'a', { status: 'late' }), drop('s', 'b'), drop('s', 'never there')])
    t.same(await store.getMany('things', 's', ['b', 'a', 'never there', 'a']), [
      undefined,
      { status: 'late' },
      undefined,
      { status: 'late' },
    ])
    t.same((await store.find('things', 's', { limit: 9, where: { status: ['open', 'done'] }, total: true })).total, 0)
    await store.commit([put('s', 'a', { status: 'late' })])
    t.same((await store.find('things', 's', { limit: 9, where: { status: 'late' }, total: true })).total, 1)
  },

  'a shared row is told as it is now, and nobody who has it can change it for others': async (t, { store }) => {
    await store.declare({ name: 'rights', version: 1, isShared: true })
    const seen = async (...ids: string[]) =>
      Promise.all(ids.map(async (id) => (await store.get<{ may: string[] }>('rights', 's', id))?.may.join()))
    const right = (table: string, id: string, ...may: string[]) => ({ table, scope: 's', id, row: { may } })
    await store.commit([right('rights', 'a', 'view'), right('rights', 'b', 'edit')])
    t.same(await seen('a', 'b', 'a', 'c'), ['view', 'edit', 'view', undefined])
    try {
      ;(await store.get<{ may: string[] }>('rights', 's', 'a'))?.may.push('edit')
    } catch (error) {
      t.type(error, TypeError)
    }
    t.same(await seen('a'), ['view'])
    await store.commit([right('rights', 'a', 'edit'), { table: 'rights', scope: 's', id: 'b', row: null }])
    t.same(await seen('a', 'b'), ['edit', undefined])
    await store.commit([right('rights', 'b', 'view')])
    t.same(await seen('a', 'b'), ['edit', 'view'])
    await store.reset(['rights'], 'p')
    t.same(await seen('a', 'b'), [undefined, undefined])
  },

  'scopes and tables are apart': async (t, { store }) => {
    await store.declare({ ...THINGS, name: 'others' })
    await store.commit([
      put('s1', 'a', { status: 'open' }),
      put('s2', 'a', { status: 'done' }),
      { table: 'others', scope: 's1', id: 'a', row: { status: 'late' } },
    ])
    t.same(await store.get('things', 's1', 'a'), { status: 'open' })
    t.same(await store.get('things', 's2', 'a'), { status: 'done' })
    t.same(await store.get('others', 's1', 'a'), { status: 'late' })
    t.equal(await store.get('things', 's', 'a'), undefined)
    t.equal(await store.get('things', 's1', 'b'), undefined)
    t.equal(await store.get('things', 's1', 'b'.repeat(501)), undefined, 'an id that no row can have')
    t.equal(await store.get('things', 's1', ''), undefined, 'nor this one')
    t.same((await store.find('things', 's1', { limit: 9, total: true })).total, 1)
    t.same(await store.find('things', 'unknown', { limit: 9, total: true }), { rows: [], total: 0, next: null })
  },

  'find answers every combination as a look at every row would': async (t, { store }) => {
    const rows = await fill(store, 's', 300, 1)
    await fill(store, 'other', 50, 2)
    await compare(t, store, 's', rows, 1)
  },

  'indexes follow changes and deletions': async (t, { store }) => {
    const rows = await fill(store, 's', 200, 3)
    const random = seeded(4)
    for (let round = 0; round < 30; round += 1) {
      const changes = Array.from({ length: 20 }, () => {
        const id = thingId(Math.floor(random() * 250))
        if (random() < 0.3) {
          rows.delete(id)
          return drop('s', id)
        }
        const row = randomThing(random)
        rows.set(id, row)
        return put('s', id, row)
      })
      await store.commit(changes)
    }
    await compare(t, store, 's', rows, 3)
    await store.commit([...rows.keys()].map((id) => drop('s', id)))
    await compare(t, store, 's', new Map(), 40)
  },

  'questions that are asked again and again follow every change': async (t, { store }) => {
    const rows = await fill(store, 's', 300, 31)
    await fill(store, 'other', 300, 31)
    const random = seeded(32)
    const wrong: unknown[] = []
    const asked = questions().filter((_, index) => index % 41 === 0)
    for (let round = 0; round < 20; round += 1) {
      for (const question of asked) {
        const expected = bruteForce(rows, question)
        for (const [offset, limit] of [
          [0, 20],
          [20, 400],
        ]) {
          const found = await store.find<ThingRow>('things', 's', { ...question, offset, limit, total: true })
          const isRight =
            found.total === expected.length &&
            isDeepStrictEqual(idsOf(found.rows), expected.slice(offset, offset + limit)) &&
            found.rows.every(({ id, row }) => isDeepStrictEqual(row, rows.get(id)))
          if (!isRight) wrong.push([round, offset, question])
        }
      }
      // Rows that come, go, or change in one field; and the same ids in a scope that is not asked.
      const id = thingId(round % 4 === 3 ? 1_000 + round : Math.floor(random() * 300))
      const row = { ...(rows.get(id) ?? randomThing(random)), ...CHANGES[round % CHANGES.length] }
      if (round % 6 === 5) rows.delete(id)
      else rows.set(id, row)
      await store.commit([
        round % 6 === 5 ? drop('s', id) : put('s', id, row),
        put('other', id, randomThing(random)),
        drop('other', thingId(round)),
      ])
    }
    t.strictSame(wrong, [])
  },

  'pages by cursor are all rows in order, each once': async (t, { store }) => {
    const rows = await fill(store, 's', 250, 5)
    for (const [index, question] of questions().entries()) {
      if (index % 23 !== 0) continue
      t.strictSame(await walk(store, 's', { ...question, limit: 9 }), bruteForce(rows, question))
    }
  },

  'thousands of rows in one scope': async (t, { store }) => {
    const rows = await fill(store, 's', 6_000, 6)
    await compare(t, store, 's', rows, 17)
    const question: Omit<Find, 'limit'> = { where: { status: 'open' }, sort: { field: 'createdAt', order: 'desc' } }
    t.strictSame(await walk(store, 's', { ...question, limit: 150 }), bruteForce(rows, question))
    t.strictSame(await walk(store, 's', { limit: 500 }), bruteForce(rows, {}))
    for (const limit of [5, 150]) {
      const asked = { members: ['status', 'name'], limit }
      t.strictSame(await walk(store, 's', asked), bruteForce(rows, {}))
      for (const form of [asked, { ...asked, ...question }])
        for (const { id, row } of (await store.find('things', 's', form)).rows)
          t.match(rows.get(id), { status: row.status, name: row.name }, 'has the members that were asked for')
    }
  },

  'a field may be any of hundreds of values': async (t, { store }) => {
    const rows = new Map(
      Array.from({ length: 800 }, (_, i): [string, ThingRow] => [
        thingId(i),
        {
          status: i % 3 === 0 ? 'open' : 'done',
          hubId: i % 50 === 1 ? `${'long '.repeat(50)}${i}` : `hub-${i % 400}`,
          teamIds: [`team-${i % 400}`, `team-${(i * 7) % 400}`],
        },
      ]),
    )
    await store.commit([...rows].map(([id, row]) => put('s', id, row)))
    const every = [...new Set([...rows.values()].map(({ hubId }) => hubId as string))]
    const hubs = ['nowhere', ...every.filter((_, i) => i % 4 !== 0)]
    const teams = Array.from({ length: 300 }, (_, i) => `team-${i}`)
    const wheres: Find['where'][] = [
      { hubId: hubs },
      { hubId: hubs, status: 'open' },
      { teamIds: teams },
      { hubId: hubs, teamIds: teams },
      { hubId: hubs.map((_, i) => `no-${i}`) },
    ]
    for (const where of wheres) {
      const expected = bruteForce(rows, { where })
      t.strictSame(await walk(store, 's', { where, limit: 500 }), expected)
      t.equal((await store.find('things', 's', { where, limit: 1, total: true })).total, expected.length)
    }
  },

  'a cursor stays where it stood while rows come and go': async (t, { store }) => {
    const rows = await fill(store, 's', 400, 7)
    const constant = bruteForce(rows, { sort: { field: 'name', order: 'asc' } }).filter((_, index) => index % 4 !== 0)
    const fleeting = [...rows.keys()].filter((id) => !constant.includes(id))
    const random = seeded(8)
    for (const order of ['asc', 'desc'] as const) {
      const seen = await walk(store, 's', { limit: 10, sort: { field: 'name', order } }, async (page) => {
        const id = fleeting[page % fleeting.length] as string
        await store.commit([
          page % 2 === 0 ? drop('s', id) : put('s', id, randomThing(random)),
          put('s', `new-${order}-${page}`, randomThing(random)),
        ])
      })
      const expected = order === 'asc' ? constant : [...constant].reverse()
      t.strictSame(
        seen.filter((id) => constant.includes(id)),
        expected,
      )
      t.equal(
        new Set(seen.filter((id) => !fleeting.includes(id))).size,
        seen.filter((id) => !fleeting.includes(id)).length,
        'no row twice',
      )
    }
  },

  'a question without its index is a fault of the program': async (t, { store }) => {
    const wrong: Find[] = [
      { limit: 1, where: { notes: 'x' } },
      { limit: 1, range: { field: 'status', from: 'x' } },
      { limit: 1, sort: { field: 'hubId', order: 'asc' } },
    ]
    for (const question of wrong) await t.rejects(store.find('things', 's', question), Error)
    await store.declare({ name: 'plain', version: 1 })
    for (const call of [
      () => store.find('plain', 's', { limit: 1, text: 'x' }),
      () => store.find('unknown', 's', { limit: 1 }),
    ]) {
      const error = await call().then(
        () => undefined,
        (reason: unknown) => reason,
      )
      t.ok(error instanceof Error && !(error instanceof Failure))
    }
    await t.rejects(store.commit([{ table: 'unknown', scope: 's', id: 'a', row: {} }]), Error)
    await t.rejects(store.get('unknown', 's', 'a'), Error)
    await store.ping()
  },

  'rows of a table without indexes come and go on pages that were asked for before': async (t, { store }) => {
    await store.declare({ name: 'plain', version: 1 })
    const plain = (id: string, row: Row | null) => ({ table: 'plain', scope: 's', id, row })
    const ids = async () => idsOf((await store.find('plain', 's', { limit: 20 })).rows)
    await store.commit([plain('b', {})])
    t.same(await ids(), ['b'])
    await store.commit([plain('c', {})])
    t.same(await ids(), ['b', 'c'])
    await store.commit([plain('a', {}), plain('b', null)])
    t.same(await ids(), ['a', 'c'])
  },

  'a commit is seen by every read after it, with its checkpoint': async (t, { store }) => {
    t.equal(await store.checkpoint('reader'), undefined)
    for (let at = 0; at < 20; at += 1) {
      await storeCheckpoint(store, 'reader', { all: at, 3: at * 2 }, [put('s', 'a', { status: 'open', at })])
      t.same(await store.get('things', 's', 'a'), { status: 'open', at })
      t.same(await store.checkpoint('reader'), { all: at, 3: at * 2 })
    }
    await storeCheckpoint(store, 'reader', { all: 99 }, [])
    t.same(await store.checkpoint('reader'), { all: 99 })
    t.equal(await store.checkpoint('other'), undefined)
    await store.commit([])
  },

  'commits count in the order in which they were asked for': async (t, { store }) => {
    const { fence } = await store.take('c')
    await Promise.all(
      Array.from({ length: 60 }, (_, at) => {
        const move = { consumer: 'c', from: at === 0 ? undefined : { all: at - 1 }, at: { all: at }, fence }
        return store.commit([put('s', 'a', { status: 'open', at })], move)
      }),
    )
    t.same(await store.get('things', 's', 'a'), { status: 'open', at: 59 })
    t.same(await store.checkpoint('c'), { all: 59 })
    const large = store.commit(
      Array.from({ length: 2_000 }, (_, index) => put('s', thingId(index), { status: 'first' })),
    )
    const small = store.commit([put('s', thingId(1_999), { status: 'second' })])
    await Promise.all([large, small])
    t.same(await store.get('things', 's', thingId(1_999)), { status: 'second' })
  },

  'a commit that does not begin where the last one ended is stale': async (t, { store }) => {
    const { at: none, fence } = await store.take('c')
    t.equal(none, undefined)
    const move = (from: number | undefined, at?: number) => ({
      consumer: 'c',
      from: from === undefined ? undefined : { all: from, version: 3 },
      at: at === undefined ? undefined : { all: at, version: 3 },
      fence,
    })
    const open = (status: string) => [put('s', 'a', { status })]
    await store.commit(open('first'), move(undefined, 7))
    const stored = { at: { all: 7, version: 3 }, fence }
    const stale = { name: 'StaleCommit', consumer: 'c', stored }
    await t.rejects(store.commit(open('never'), move(6, 9)), stale)
    await t.rejects(store.commit(open('never'), move(undefined, 9)), stale, 'nothing is no place')
    await t.rejects(store.commit(open('never'), { ...move(7, 9), from: { all: 7 } }), stale, 'every source counts')
    await t.rejects(store.commit(open('never'), move(6)), stale, 'rows alone too')
    t.same([await store.get('things', 's', 'a'), await store.checkpoint('c')], [{ status: 'first' }, stored.at])
    await store.commit(open('rows alone'), move(7))
    t.same([await store.get('things', 's', 'a'), await store.checkpoint('c')], [{ status: 'rows alone' }, stored.at])
    await store.commit(open('second'), move(7, 9))
    await store.commit(open('second'), move(7, 9)) // its answer was lost
    t.same(
      [await store.get('things', 's', 'a'), await store.checkpoint('c')],
      [{ status: 'second' }, { all: 9, version: 3 }],
    )
  },

  'a commit under a fence that is not the last one taken is stale': async (t, { store }) => {
    const before = await store.take('c')
    const move = { consumer: 'c', from: undefined, at: { all: 1 } }
    await store.commit([put('s', 'a', { status: 'old' })], { ...move, fence: before.fence })
    const now = await store.take('c')
    t.same(now.at, { all: 1 })
    t.ok(now.fence > before.fence)
    const next = { consumer: 'c', from: { all: 1 }, at: { all: 2 } }
    const late = [put('s', 'a', { status: 'never' }), put('s2', 'b', { status: 'never' })]
    for (const stale of [next, { ...next, at: undefined }, { ...next, from: undefined, at: { all: 1 } }])
      await t.rejects(store.commit(late, { ...stale, fence: before.fence }), { name: 'StaleCommit', stored: now })
    t.same(await store.get('things', 's', 'a'), { status: 'old' })
    t.equal(await store.get('things', 's2', 'b'), undefined)
    await store.commit([put('s', 'a', { status: 'new' })], { ...next, fence: now.fence })
    t.same([await store.get('things', 's', 'a'), await store.checkpoint('c')], [{ status: 'new' }, { all: 2 }])
    t.ok((await store.take('other')).fence > 0, 'each consumer has fences of its own')
    await store.commit([], { ...next, from: { all: 2 }, at: { all: 3 }, fence: now.fence })
    await store.reset(['things'], 'c')
    t.ok((await store.take('c')).fence > now.fence, 'fences rise over a reset')
  },

  'of many that take a consumer the last one owns it': async (t, { store }) => {
    const taken = await Promise.all(Array.from({ length: 20 }, () => store.take('c')))
    t.equal(new Set(taken.map(({ fence }) => fence)).size, 20)
    const outcomes = await Promise.allSettled(
      taken.map(({ fence }) =>
        store.commit([put('s', 'a', { status: `${fence}` })], {
          consumer: 'c',
          from: undefined,
          at: { all: fence },
          fence,
        }),
      ),
    )
    const last = Math.max(...taken.map(({ fence }) => fence))
    t.same(
      outcomes.flatMap(({ status }, i) => (status === 'fulfilled' ? [taken[i]?.fence] : [])),
      [last],
    )
    t.same(await store.get('things', 's', 'a'), { status: `${last}` })
  },

  "rows that live by partition are their consumer's, rows that live by row are asked for by id": async (
    t,
    { store, pass },
  ) => {
    await store.declare({ name: 'pages', version: 1, lives: 'partition', range: ['no'] })
    const page = (scope: string, id: string, no: number) => ({ table: 'pages', scope, id, row: { no } })
    await storeCheckpoint(store, 'worker-3', { 3: 1 }, [page('worker-3', 'a', 1), page('worker-3', 'b', 2)])
    const question = { range: { field: 'no', from: 2 }, limit: 9 }
    t.same(idsOf((await store.find('pages', 'worker-3', question)).rows), ['b'])
    await t.rejects(storeCheckpoint(store, 'worker-4', { 4: 1 }, [page('worker-3', 'a', 1)]), Error)
    t.equal(await store.checkpoint('worker-4'), undefined)

    await store.declare({ name: 'tickets', version: 1, lives: 'row' })
    const ticket = { table: 'tickets', scope: '-', id: 'a', row: { by: 'x' } }
    await store.commit([ticket, { ...ticket, id: 'b', expiresAt: 1 }])
    t.same(await store.getMany('tickets', '-', ['a', 'b', 'c']), [{ by: 'x' }, undefined, undefined])
    t.same(await store.putIfAbsent(ticket), { by: 'x' })
    await pass(1)
    await t.rejects(store.find('tickets', '-', { limit: 1 }), Error)
    await t.rejects(scanned(store, 'tickets', '-'), Error)
    t.same(idsOf(await scanned(store, 'tickets')), ['a'])
  },

  'a commit is seen whole or not at all': async (t, { store }) => {
    const generation = (status: string) =>
      Array.from({ length: 800 }, (_, index) => put('s', thingId(index), { status, name: 'x' }))
    await store.commit(generation('0'))
    let isOver = false
    let reads = 0
    // A question that commits cut into all the time is answered as it can be in the end: here some do.
    let commits = 0
    const asked = <Answer>(answer: Promise<Answer>): Promise<Answer> => {
      commits = 0
      return answer
    }
    const writing = (async () => {
      for (let round = 1; round <= 6 || reads < 3; round += 1) {
        await until('the next question', () => commits++ < COMMITS_OF_A_QUESTION)
        await store.commit(generation(String(round % 7)))
      }
      isOver = true
    })()
    const ids = Array.from({ length: 800 }, (_, index) => thingId(index))
    const mixed: unknown[] = []
    while (!isOver) {
      const { rows } = await asked(store.find<ThingRow>('things', 's', { limit: 800 }))
      const all = new Set(rows.map(({ row }) => row.status))
      const { rows: first } = await asked(
        store.find<ThingRow>('things', 's', { limit: 1, where: { status: ALL }, total: true }),
      )
      if (all.size !== 1 || rows.length !== 800 || first.length !== 1) mixed.push([...all])
      const byId = await asked(store.getMany<ThingRow>('things', 's', ids))
      const named = new Set(byId.map((row) => row?.status))
      if (named.size !== 1) mixed.push(['by id', ...named])
      reads += 1
      await new Promise((resolve) => setImmediate(resolve))
    }
    await writing
    t.same(mixed, [])
  },

  'a row that has ended is not answered': async (t, { store, now, pass }) => {
    const lifeMs = await inTime(now, async (life, scope) => {
      const until = now() + life
      await store.commit([put(scope, 'ends', { status: 'open' }, until)])
      const { rows } = await store.find('things', scope, { limit: 9 })
      return () => t.equal(rows.length, 1, 'it is answered while it lives')
    })
    const until = now() + lifeMs
    await store.commit([
      put('s', 'ends', { status: 'open', name: 'ends', createdAt: 1 }, until),
      put('s', 'later', { status: 'open', name: 'later', createdAt: 2 }, until + 1_000_000),
      put('s', 'stays', { status: 'open', name: 'stays', createdAt: 3 }),
      put('s', 'prolonged', { status: 'open', name: 'prolonged', createdAt: 4 }, until),
      put('s', 'set free', { status: 'open', name: 'set free', createdAt: 5 }, until),
    ])
    await store.commit([
      put('s', 'prolonged', { status: 'open', name: 'prolonged', createdAt: 4 }, until + 1_000_000),
      put('s', 'set free', { status: 'open', name: 'set free', createdAt: 5 }),
    ])
    await pass(lifeMs + 100)
    const left = ['later', 'prolonged', 'set free', 'stays']
    const check = async () => {
      t.equal(await store.get('things', 's', 'ends'), undefined)
      t.same(
        (await store.getMany('things', 's', ['ends', 'stays'])).map((row) => row !== undefined),
        [false, true],
      )
      const asked: Find[] = [
        { limit: 9, total: true },
        { limit: 9, total: true, where: { status: 'open' } },
        { limit: 9, total: true, sort: { field: 'name', order: 'asc' } },
        { limit: 9, total: true, range: { field: 'createdAt', from: 1 }, sort: { field: 'name', order: 'asc' } },
      ]
      for (const question of asked) {
        const found = await store.find('things', 's', question)
        t.same(idsOf(found.rows), left)
        t.equal(found.total, 4)
      }
      t.equal((await store.find('things', 's', { limit: 9, text: 'ends', total: true })).total, 0)
      t.same(idsOf(await scanned(store, 'things', 's')), left)
    }
    await check()
    // Whatever sweeps has had its chance after further commits.
    for (let round = 0; round < 3; round += 1) await store.commit([put('other', 'x', { status: 'open' })])
    await check()
    await store.commit([put('s', 'ends', { status: 'done', name: 'again' })])
    t.same(await store.get('things', 's', 'ends'), { status: 'done', name: 'again' })
  },

  'words that differ where half a character counts no more are all found': async (t, { store }) => {
    const start = 'a'.repeat(99)
    const words = ['\u{10400}', '\u{20000}', '\u{16800}'].map((last) => `${start}${last}`)
    await store.commit(words.map((name, i) => put('s', `${i}`, { status: 'open', name })))
    for (const text of [start, ...words])
      t.same(idsOf((await store.find('things', 's', { limit: 9, text })).rows), ['0', '1', '2'])
    await store.commit(words.map((name, i) => put('s', `${i}`, { status: 'open', ...(i > 0 && { name }) })))
    t.same(idsOf((await store.find('things', 's', { limit: 9, text: start })).rows), ['1', '2'])
  },

  'texts of 600 bytes are sorted, bounded and walked by all of them': async (t, { store }) => {
    const start = '字'.repeat(199)
    const names = ['一', '丁', '丂', '七'].map((last) => start + last)
    const inOrder = names.map((_, i) => `${9 - i}`)
    await store.commit(names.map((name, i) => put('s', inOrder[i], { status: 'open', name })))
    for (const where of [undefined, { status: 'open' }])
      for (const order of ['asc', 'desc'] as const) {
        const walked: string[] = []
        for (let after: string | null | undefined; after !== null; ) {
          const page = await store.find('things', 's', { limit: 1, where, sort: { field: 'name', order }, after })
          walked.push(...idsOf(page.rows))
          after = page.next
        }
        t.same(walked, order === 'asc' ? inOrder : inOrder.toReversed())
        const range = { field: 'name', from: names[1], to: names[2] }
        t.same(
          idsOf((await store.find('things', 's', { limit: 9, where, range })).rows).sort(),
          inOrder.slice(1, 3).sort(),
        )
      }
    await store.commit(inOrder.map((id) => ({ ...put('s', id, { status: 'open' }), row: null })))
    t.same((await store.find('things', 's', { limit: 9, sort: { field: 'name', order: 'asc' } })).rows, [])
  },

  'of rows put where none is, one is stored': async (t, { store, now, pass }) => {
    let last = ''
    const lifeMs = await inTime(now, async (life, scope) => {
      last = scope
      const until = now() + life
      const rivals = Array.from({ length: 40 }, (_, rival) => ({
        ...put(scope, 'a', { status: 'open', rival }, until),
        row: { status: 'open', rival },
      }))
      const answers = await Promise.all(rivals.map((change) => store.putIfAbsent(change)))
      const stored = await store.get('things', scope, 'a')
      const found = await store.find('things', scope, { limit: 9, where: { status: 'open' }, total: true })
      return () => {
        t.equal(answers.filter((row) => row === undefined).length, 1)
        for (const row of answers) if (row !== undefined) t.same(row, stored)
        t.equal(found.total, 1)
      }
    })
    await pass(lifeMs + 100)
    const next = { ...put(last, 'a', { status: 'late' }), row: { status: 'late' } }
    t.equal(await store.putIfAbsent(next), undefined, 'the one that was there has ended')
    t.same(await store.putIfAbsent({ ...next, row: { status: 'never' } }), { status: 'late' })
    t.equal((await store.find('things', last, { limit: 9, where: { status: 'open' }, total: true })).total, 0)
  },

  'several bounds on the field that the order follows all count, on a further page too': async (t, { store }) => {
    const rows = Array.from({ length: 400 }, (_, createdAt) => put('s', thingId(createdAt), { createdAt }))
    await store.commit(rows)
    const ranges = [
      { field: 'createdAt', from: 0 },
      { field: 'createdAt', from: 150, to: 390 },
    ]
    for (const sort of [
      { field: 'createdAt', order: 'asc' } as const,
      { field: 'createdAt', order: 'desc' } as const,
    ]) {
      const { rows, total } = await store.find('things', 's', { ranges, sort, offset: 20, limit: 2, total: true })
      const first = sort.order === 'asc' ? 170 : 370
      t.same(
        [total, ...rows.map(({ row }) => row.createdAt)],
        [241, first, sort.order === 'asc' ? first + 1 : first - 1],
      )
    }
  },

  'a counter counts every call and begins anew when its window has ended': async (t, { store, now, pass }) => {
    let last = ''
    const lifeMs = await inTime(now, async (life, scope) => {
      last = scope
      const before = now()
      const answers = await Promise.all(Array.from({ length: 150 }, () => store.increment(scope, 'logins', life)))
      const other = await store.increment(scope, 'other', life)
      const elsewhere = await store.increment(`${scope}b`, 'logins', life)
      const after = now()
      return () => {
        t.same(
          answers.map(({ count }) => count).sort((a, b) => a - b),
          answers.map((_, index) => index + 1),
        )
        t.equal(new Set(answers.map(({ expiresAt }) => expiresAt)).size, 1)
        const { expiresAt } = answers[0]!
        t.ok(expiresAt >= before + life - 1 && expiresAt <= after + life + 1, `${expiresAt - before} of ${life} ms`)
        t.same([other.count, elsewhere.count], [1, 1])
      }
    })
    await pass(lifeMs + 100)
    t.equal((await store.increment(last, 'logins', 60_000)).count, 1)
    t.equal((await store.increment(last, 'logins', 60_000)).count, 2)
  },

  'scan answers every row of a scope, scanAll of every scope': async (t, { store }) => {
    const expected: string[] = []
    for (const scope of ['-', 'b', 'a']) {
      await store.commit(Array.from({ length: 700 }, (_, index) => put(scope, thingId(index), { status: scope })))
      for (let index = 0; index < 700; index += 1) expected.push(`${scope} ${thingId(index)}`)
    }
    const rows = await scanned(store, 'things')
    t.strictSame(rows.map(({ scope, id }) => `${scope} ${id}`).sort(), expected.sort())
    t.ok(rows.every(({ scope, row }) => row.status === scope))
    t.equal((await scanned(store, 'things', 'b')).length, 700)
    t.same(await scanned(store, 'things', 'unknown'), [])
    for await (const _ of store.scanAll('things')) break
    await store.commit([drop('b', thingId(0))])
    t.equal((await scanned(store, 'things', 'b')).length, 699)
  },

  'promote puts what was built in the place of what lives, at once': async (t, { store }) => {
    const next: TableDeclaration = { name: 'things@next', version: 2, equality: ['color'], range: ['rank'] }
    await storeCheckpoint(store, 'p', { all: 10 }, [put('s', 'old', { status: 'open' })])
    for (const round of [1, 2]) {
      await store.declare(next)
      t.equal((await store.find('things@next', 's', { limit: 9, total: true })).total, 0, 'a build begins empty')
      const built = Array.from({ length: 300 }, (_, index) => ({
        table: 'things@next',
        scope: 's',
        id: thingId(index),
        row: { color: 'red', rank: index, round },
      }))
      await storeCheckpoint(store, 'p@next', { all: 20 + round }, built)
      t.ok(await store.get('things', 's', round === 1 ? 'old' : thingId(0)), 'the live table is as before')
      t.same(await store.checkpoint('p'), { all: round === 1 ? 10 : 21 })
      const sizes: number[] = []
      const promoting = store.promote(['things'], 'p')
      const reading = (async () => {
        for (let read = 0; read < 5; read += 1)
          sizes.push((await store.find('things', 's', { limit: 500 })).rows.length)
      })()
      await Promise.all([promoting, reading])
      t.ok(
        sizes.every((size) => size === 300 || (round === 1 && size === 1)),
        `never between: ${sizes}`,
      )
      t.same(await store.checkpoint('p'), { all: 20 + round })
      t.equal(await store.checkpoint('p@next'), undefined)
      t.equal(await store.get('things', 's', 'old'), undefined)
      const found = await store.find('things', 's', {
        limit: 1,
        where: { color: 'red' },
        sort: { field: 'rank', order: 'desc' },
        total: true,
      })
      t.same(found.rows[0]?.row, { color: 'red', rank: 299, round })
      t.equal(found.total, 300)
    }
    await store.declare({ ...next, name: 'things' })
    t.equal((await store.find('things', 's', { limit: 1, total: true })).total, 300, 'its declaration went along')
    t.equal((await scanned(store, 'things')).length, 300)
  },

  'reset empties tables and forgets the checkpoint': async (t, { store }) => {
    await store.declare({ ...THINGS, name: 'others' })
    const rows = [put('s', 'a', { status: 'open' }), { table: 'others', scope: 's', id: 'a', row: { status: 'open' } }]
    await storeCheckpoint(store, 'p', { all: 5 }, rows)
    await store.reset(['things'], 'p')
    t.equal(await store.get('things', 's', 'a'), undefined)
    t.equal((await store.find('things', 's', { limit: 1, where: { status: 'open' }, total: true })).total, 0)
    t.same(await scanned(store, 'things'), [])
    t.equal(await store.checkpoint('p'), undefined)
    t.ok(await store.get('others', 's', 'a'))
    await compare(t, store, 's', await fill(store, 's', 100, 9), 50)
  },

  'declaring again changes nothing, a new version is a new, empty table': async (t, { store }) => {
    await store.commit([put('s', 'a', { status: 'open', color: 'red' })])
    await store.declare(THINGS)
    t.ok(await store.get('things', 's', 'a'))
    await store.declare({ ...THINGS, version: 2, equality: ['color'] })
    t.equal(await store.get('things', 's', 'a'), undefined)
    t.equal((await store.find('things', 's', { limit: 1, total: true })).total, 0)
    await store.commit([put('s', 'b', { status: 'open', color: 'red' })])
    t.same(idsOf((await store.find('things', 's', { limit: 9, where: { color: 'red' } })).rows), ['b'])
  },

  'ping answers, and a closed store is down': async (t, { store }) => {
    await store.ping()
    await store.close()
    const calls: (() => Promise<unknown>)[] = [
      () => store.ping(),
      () => store.get('things', 's', 'a'),
      () => store.find('things', 's', { limit: 1 }),
      () => store.commit([put('s', 'a', { status: 'open' })]),
      () => store.increment('s', 'a', 1),
      () => store.checkpoint('p'),
      () => store.take('p'),
    ]
    for (const call of calls) await t.rejects(call, { name: 'Failure', code: 'engine_down' })
    await store.close()
  },
}
