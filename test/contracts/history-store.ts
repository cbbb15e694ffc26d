import type { Test } from 'tap'
import { openSchema } from '../../src/engines/clickhouse-sql/history-schema.ts'
import { encodeNativeBlock } from '../../src/engines/clickhouse-sql/native-block.ts'
import type { HistoryStore } from '../../src/engines/history-store.ts'
import type { Failure } from '../../src/kernel/errors.ts'
import { until } from '../support/service.ts'

/** What an engine's test hands to the suite. Each call of `open` answers a store over the same, at first empty, database. */
export interface HistoryStoreUnderTest {
  open(options?: { queueMax?: number }): Promise<HistoryStore>
  /** Ends what does the engine's work as a crash would, or undefined where that is another machine's. */
  crash?(store: HistoryStore): void
}

/** Every promise of the port, for any engine. */
export const historyStoreContract = async (t: Test, engine: HistoryStoreUnderTest): Promise<void> => {
  const store = await engine.open()
  const setting = 'non_replicated_deduplication_window = 100, fsync_after_insert = 1'
  await store.command('DROP TABLE IF EXISTS contract_rows')
  await store.command(
    `CREATE TABLE contract_rows (id UInt32, text String) ENGINE = MergeTree ORDER BY id SETTINGS ${setting}`,
  )

  await t.test('an inserted block is there when the insert resolves', async (t) => {
    await store.insert('contract_rows', blockOf([1, 2, 3]), 'first')
    t.same(await idsOf(store), [1, 2, 3])
  })

  await t.test('a token seen before inserts nothing, a new one does', async (t) => {
    await store.insert('contract_rows', blockOf([1, 2, 3]), 'first')
    t.same(await idsOf(store), [1, 2, 3])
    await store.insert('contract_rows', blockOf([4]), 'second')
    t.same(await idsOf(store), [1, 2, 3, 4])
  })

  await t.test('several blocks in one insert', async (t) => {
    const both = Buffer.concat([blockOf([5]), blockOf([6, 7])])
    await store.insert('contract_rows', new Uint8Array(both), 'third')
    t.same(await idsOf(store), [1, 2, 3, 4, 5, 6, 7])
  })

  await t.test('parameters are values, whatever they hold', async (t) => {
    for (const text of HOSTILE) {
      const [row] = await store.rows<{ text: string; list: string[] }>(
        'SELECT {text:String} AS text, {list:Array(String)} AS list',
        { text, list: [text, 'x'] },
      )
      t.equal(row.text, text)
      t.same(row.list, [text, 'x'])
    }
    t.same(await idsOf(store), [1, 2, 3, 4, 5, 6, 7], 'and nothing was dropped')
  })

  await t.test('parameters of numbers, ids and lists', async (t) => {
    const id = '01900000-0000-7000-8000-000000000001'
    const ids = Array.from({ length: 20_000 }, (_, i) => `01900000-0000-7000-8000-${String(i).padStart(12, '0')}`)
    const [row] = await store.rows(
      'SELECT {n:Int64} AS n, {x:Float64} AS x, {id:UUID} AS id, {id:UUID} IN {ids:Array(UUID)} AS found, {yes:Bool} AS yes, {none:Array(UInt32)} AS none',
      { n: -1_700_000_000_123, x: 0.25, id, ids, yes: true, none: [] },
    )
    t.same(row, { n: -1_700_000_000_123, x: 0.25, id, found: 1, yes: true, none: [] })
    await t.rejects(store.rows('SELECT {n:Int64} AS n', {}), 'a parameter without a value')
    await t.rejects(store.rows('SELECT {n:Int64} AS n', { n: '1 OR 1' }), 'a text where a number belongs')
  })

  await t.test('queries run beside each other and beside inserts', async (t) => {
    const slow = store.rows<{ n: number }>(
      'SELECT count() AS n FROM numbers(300000000) WHERE cityHash64(number) % 7 = 8',
    )
    let slowIsDone = false
    void slow.finally(() => (slowIsDone = true))
    await store.insert('contract_rows', blockOf([8]), 'beside')
    const answers = await Promise.all(
      [1, 2, 3, 4].map((n) => store.rows<{ n: number }>('SELECT {n:UInt32} AS n', { n })),
    )
    t.same(
      answers.flat().map(({ n }) => n),
      [1, 2, 3, 4],
    )
    t.notOk(slowIsDone, 'they did not wait for the long query')
    t.same(await slow, [{ n: 0 }])
  })

  await t.test('a large answer comes in parts', async (t) => {
    let parts = 0
    let bytes = 0
    for await (const chunk of store.query('SELECT number FROM numbers(1000000)', undefined, 'RowBinary')) {
      parts++
      bytes += chunk.byteLength
    }
    t.equal(bytes, 8_000_000)
    t.ok(parts > 5)
  })

  await t.test('every format is one document, however many parts it has', async (t) => {
    const csv = await textOf(store.query('SELECT number AS n FROM numbers(200000)', undefined, 'CSVWithNames'))
    t.equal(csv.split('\n').length, 200_002)
    t.equal(csv.split('"n"').length, 2, 'one header')
    const typed = await bytesOf(
      store.query('SELECT number AS n FROM numbers(200000)', undefined, 'RowBinaryWithNamesAndTypes'),
    )
    t.equal(typed.byteLength, 1 + 2 + 7 + 200_000 * 8)
    const compact = await textOf(store.query('SELECT number AS n FROM numbers(3)', undefined, 'JSONCompactEachRow'))
    t.equal(compact, '[0]\n[1]\n[2]\n')
  })

  await t.test('an iteration that ends early ends the query', async (t) => {
    for (let i = 0; i < 20; i++) {
      for await (const chunk of store.query('SELECT number FROM numbers(1000000000)', undefined, 'RowBinary')) {
        t.ok(chunk.byteLength > 0)
        break
      }
    }
    await nothingRuns(store)
  })

  await t.test('an aborted query rejects at once and ends', async (t) => {
    const abort = new AbortController()
    const answer = bytesOf(
      store.query('SELECT sum(cityHash64(number)) FROM numbers(100000000000)', undefined, 'RowBinary', abort.signal),
    )
    setTimeout(() => abort.abort(), 20)
    await t.rejects(answer, { name: 'AbortError' })
    await nothingRuns(store)
  })

  await t.test('small answers only as objects', async (t) => {
    await t.rejects(store.rows('SELECT number FROM numbers(10001)'), { code: 'too_large' })
    t.equal((await store.rows('SELECT number FROM numbers(10000)')).length, 10_000)
  })

  await t.test('wrong SQL rejects and harms nothing', async (t) => {
    await t.rejects(store.rows('SELECT no_such_column'))
    await t.rejects(store.command('CREATE TABLE broken'))
    await t.rejects(store.insert('no_such_table', blockOf([1]), 'x'))
    await store.ping()
  })

  await t.test('what is erased is gone from every table', (t) => erases(t, store))

  if (engine.crash !== undefined) {
    await t.test('a crash of the engine fails what runs with engine_down, and it comes back by itself', async (t) => {
      const { crash } = engine
      const running = store.rows('SELECT sleep(1)')
      const refused = t.rejects(running, { code: 'engine_down' })
      crash!(store)
      await refused
      await t.rejects(store.ping(), { code: 'engine_down' })
      for (let tries = 0; ; tries++) {
        try {
          await store.ping()
          break
        } catch (error) {
          if (tries > 200) throw error
          await new Promise((resume) => setTimeout(resume, 50))
        }
      }
      t.same(await idsOf(store), [1, 2, 3, 4, 5, 6, 7, 8])
      await store.insert('contract_rows', blockOf([9]), 'after the crash')
      t.same(await idsOf(store), [1, 2, 3, 4, 5, 6, 7, 8, 9])
    })
  }

  await store.command('DROP TABLE contract_rows')
  await store.close()
  await t.rejects(store.ping(), { code: 'engine_down' }, 'a closed store says so')

  await t.test('more than the bound are refused', async (t) => {
    const bounded = await engine.open({ queueMax: 4 })
    const queries = Array.from({ length: 8 }, () => bounded.rows('SELECT sleep(0.2)'))
    const outcomes = await Promise.allSettled(queries)
    const refused = outcomes.filter(
      (outcome) => outcome.status === 'rejected' && (outcome.reason as Failure).code === 'overloaded',
    )
    t.equal(refused.length, 4)
    await bounded.ping()
    await bounded.close()
  })
}

const MINUTE_MS = 60_000
const BOUND_MS = Date.UTC(2026, 0, 15, 12)
const uuid = (no: number): string => `01900000-0000-7000-8000-${String(no).padStart(12, '0')}`

/** Of two organizations with a tracker each and one that both have, rows before and after the bound in every table. */
const erases = async (t: Test, store: HistoryStore): Promise<void> => {
  await openSchema(store, { days: 36_500, runDays: 36_500 })
  await fillTables(store)
  /** What is left of an organization's tracker, and how many rows. */
  const left = async (table: string): Promise<string[]> => {
    const rows = await store.rows<{ o: string; t: string; n: number }>(
      `SELECT toString(organizationId) AS o, toString(trackerId) AS t, count() AS n FROM ${table} GROUP BY ALL ORDER BY o, t`,
    )
    return rows.map(({ o, t, n }) => `${o.slice(-1)} ${t.slice(-2)} ${n}`)
  }
  const runs = async (): Promise<string[]> =>
    (
      await store.rows<{ text: string }>("SELECT concat(_id, ' ', state) AS text FROM automation_runs ORDER BY text")
    ).map(({ text }) => text)
  const both = (...ids: string[]): string[] => ids.flatMap((id) => [`${id} attempted`, `${id} owed`])

  await store.erase([])
  await store.erase([{ organizationId: uuid(1), trackerId: uuid(12), through: BOUND_MS }])
  t.same(
    await left('points'),
    ['1 11 4', '1 12 1', '2 12 4', '2 21 4'],
    'what was ahead of its clock goes with the rest',
  )
  for (const table of ['transitions', 'trips']) t.same(await left(table), ['1 11 2', '1 12 1', '2 12 2', '2 21 2'])
  t.same(
    await runs(),
    both('1.11.-1', '1.11.1', '1.12.1', '2.12.-1', '2.12.1', '2.21.-1', '2.21.1'),
    'with its attempts, by the time of its event',
  )
  const further = [{ organizationId: uuid(1), trackerId: uuid(11) }, { organizationId: "';--" }]
  await store.erase([{ organizationId: uuid(2) }, ...further])
  await store.erase([{ organizationId: uuid(2) }])
  t.same(await left('points'), ['1 12 1'])
  for (const table of ['transitions', 'trips']) t.same(await left(table), ['1 12 1'])
  t.same(await runs(), both('1.12.1'))
  const audited = await store.rows<{ o: string }>('SELECT organizationId AS o FROM audit_log')
  t.same(
    audited.map(({ o }) => o.slice(-1)),
    ['1'],
    'what was done in an organization goes with all of it',
  )
  for (const table of ['points', 'transitions', 'trips', 'automation_runs', 'audit_log']) {
    const stored = async (): Promise<number> =>
      (await store.rows<{ n: number }>(`SELECT count() AS n FROM ${table} SETTINGS apply_deleted_mask = 0`))[0].n
    await until(`what was erased to leave the disk of ${table}`, async () => (await stored()) <= 2)
    await store.command(`DROP TABLE ${table} SYNC`)
  }
  await store.command('DROP TABLE schema_versions SYNC')
}

/** A point right and one ahead of its clock, a transition, a trip, and a run with an attempt, owed a day after its event. */
const fillTables = async (store: HistoryStore): Promise<void> => {
  const things = [
    [1, 11],
    [1, 12],
    [2, 12],
    [2, 21],
  ].flatMap(([organization, tracker]) =>
    [-1, 1].map((side) => ({
      ids: `'${uuid(organization)}', '${uuid(tracker)}'`,
      organization: `'${uuid(organization)}'`,
      id: `'${organization}.${tracker}.${side}'`,
      atMs: BOUND_MS + side * MINUTE_MS,
    })),
  )
  const insert = (table: string, columns: string, rows: readonly string[]): Promise<void> =>
    store.command(`INSERT INTO ${table} (${columns}) SELECT ${rows.join(' UNION ALL SELECT ')}`)
  const time = (ms: number): string => `fromUnixTimestamp64Milli(${ms}, 'UTC')`
  await insert(
    'points',
    'organizationId, trackerId, recordedAt, version',
    things.flatMap(({ ids, atMs }) => [
      `${ids}, ${time(atMs)}, ${2n ** 63n}`,
      `${ids}, ${time(atMs + 23 * 60 * MINUTE_MS)}, 1`,
    ]),
  )
  for (const [table, column] of [
    ['transitions', 'at'],
    ['trips', 'startedAt'],
  ])
    await insert(
      table,
      `organizationId, trackerId, _id, ${column}, version`,
      things.map(({ ids, id, atMs }) => `${ids}, ${id}, ${time(atMs)}, 1`),
    )
  await insert('audit_log', 'organizationId, at, _id', [
    `'${uuid(1)}', ${time(BOUND_MS)}, 'a'`,
    `'${uuid(2)}', ${time(BOUND_MS)}, 'b'`,
  ])
  const run = 'organizationId, createdAt, _id, state'
  const key = ({ organization, atMs, id }: (typeof things)[number]): string =>
    `${organization}, ${time(atMs + 24 * 60 * MINUTE_MS)}, ${id}`
  await insert(
    'automation_runs',
    `${run}, automationId, subjectId, trigger`,
    things.map((thing) => `${key(thing)}, 'owed', 'a', ${thing.ids.split(', ')[1]}, '{"at":${thing.atMs}}'`),
  )
  await insert(
    'automation_runs',
    run,
    things.map((thing) => `${key(thing)}, 'attempted'`),
  )
}

/** Rows of the contract's table as a block. */
export const blockOf = (ids: readonly number[]): Uint8Array =>
  encodeNativeBlock(
    [
      { name: 'id', type: 'UInt32', values: Uint32Array.from(ids) },
      { name: 'text', type: 'String', values: ids.map((id) => `row ${id}`) },
    ],
    ids.length,
  )

const HOSTILE = [
  "'; DROP TABLE contract_rows; --",
  "\\'; DROP TABLE contract_rows; --",
  "\\\\'",
  'a\\',
  "'",
  "''",
  '{text:String}',
  '{other:String}',
  'line\nbreak\ttab\0nul',
  '😀 ünïcode',
  '$$',
  '*/ SELECT 1 /*',
  '-- ',
  '',
  '\\N',
  'NULL',
  '`',
  '"',
  '\u2019',
  '%_',
]

const idsOf = async (store: HistoryStore): Promise<number[]> =>
  (await store.rows<{ id: number }>('SELECT id FROM contract_rows ORDER BY id')).map(({ id }) => id)

const bytesOf = async (chunks: AsyncIterable<Uint8Array>): Promise<Buffer> => {
  const all: Uint8Array[] = []
  for await (const chunk of chunks) all.push(chunk)
  return Buffer.concat(all)
}

const textOf = async (chunks: AsyncIterable<Uint8Array>): Promise<string> => (await bytesOf(chunks)).toString()

/** Waits until no query over the table of numbers runs any more. */
const nothingRuns = async (store: HistoryStore): Promise<void> => {
  for (let tries = 0; ; tries++) {
    const left = await store.rows<{ query: string }>(
      "SELECT query, elapsed, is_cancelled FROM system.processes WHERE query LIKE '%numbers(%' AND query NOT LIKE '%system.processes%'",
    )
    if (left.length === 0) return
    if (tries > 100) throw new Error(`still running: ${JSON.stringify(left)}`)
    await new Promise((resume) => setTimeout(resume, 50))
  }
}
