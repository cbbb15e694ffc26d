import { type Test, test } from 'tap'
import { HistoryComparison } from '../../projections/history-comparison.ts'
import { openClickhouseHistory } from '../../src/engines/clickhouse-history/clickhouse-history.ts'
import { assertLayout } from '../../src/engines/clickhouse-sql/cluster.ts'
import { openSchema, SCHEMA, schemaOf } from '../../src/engines/clickhouse-sql/history-schema.ts'
import { selectTransitions } from '../../src/engines/clickhouse-sql/decisions.ts'
import { selectForBacktest, selectNewest, selectPoints } from '../../src/engines/clickhouse-sql/points.ts'
import { eraseRows } from '../../src/engines/clickhouse-sql/erase.ts'
import { insertBeside } from '../../src/engines/clickhouse-sql/rebuild.ts'
import type { HistoryStore } from '../../src/engines/history-store.ts'
import type { Transition } from '../../src/features/transitions/events.ts'
import { decisionBuffer } from '../../projections/decisions-history.ts'
import { Erased } from '../../projections/erasures.ts'
import { insertDecided } from '../support/history-writers.ts'
import { openClusterFront } from '../support/engine-servers.ts'

const RETENTION = { days: 36_500, runDays: 36_500 }
const ORGANIZATION = '01900000-0000-7000-8000-0000000000a1'
const TRACKERS = ['01900000-0000-7000-8000-0000000000b1', '01900000-0000-7000-8000-0000000000b2']
const AT = Date.parse('2026-03-02T08:00:00Z')

/** The server of WAYMARK_TEST_CLICKHOUSE_CLUSTER (a URL with `?cluster=`), or the front over the engine in process. */
const openCluster = async (t: Test): Promise<{ store: HistoryStore; url: string }> => {
  let url = process.env.WAYMARK_TEST_CLICKHOUSE_CLUSTER
  if (url === undefined) {
    url = await openClusterFront(t)
    t.comment('on one node without a keeper: ON CLUSTER and Replicated are taken off the statements on their way')
  }
  const store = await openClickhouseHistory({ url })
  t.teardown(() => store.close())
  return { store, url }
}

/** The store, and every statement that it is given. */
const recorded = (store: HistoryStore, statements: string[]): HistoryStore => ({
  cluster: store.cluster,
  command: (sql, parameters) => {
    statements.push(sql)
    return store.command(sql, parameters)
  },
  insert: (table, block, token) => store.insert(table, block, token),
  erase(erasures) {
    return eraseRows(this, erasures)
  },
  query: (sql, parameters, format, signal) => store.query(sql, parameters, format, signal),
  rows: (sql, parameters) => {
    statements.push(sql)
    return store.rows(sql, parameters)
  },
  ping: () => store.ping(),
  close: () => store.close(),
})

const transition = (tracker: string, no: number): Transition => ({
  kind: 'transition',
  _id: `${no}`,
  organizationId: ORGANIZATION,
  trackerId: tracker,
  geofenceId: 'g',
  geofenceGroupId: 'gg',
  type: 'entry',
  at: AT + no,
  cause: 'point',
  point: { recordedAt: AT, lat: 1, lng: 2 },
})

const decisionsOf = (count: number) => ({
  revision: 3,
  decided: {
    sourceRevision: 0,
    ordinal: 0,
    sourceLoggedAt: AT,
    decisions: Array.from({ length: count }, (_, no) => transition(TRACKERS[no % 2], no)),
  },
})

const countOf = async (store: HistoryStore, table: string): Promise<number> =>
  (await store.rows<{ n: number }>(`SELECT count() AS n FROM ${table} FINAL`))[0].n

test('a history spread over a cluster: schema, inserts, questions, comparing, erasing', {
  timeout: 900_000,
}, async (t) => {
  const { store, url } = await openCluster(t)
  await openSchema(store, RETENTION)
  t.equal(await schemaOf(store), SCHEMA)
  await openSchema(store, { days: 30, runDays: 3 })
  const tables = await store.rows<{ name: string; engine: string; sql: string }>(
    "SELECT name, engine, create_table_query AS sql FROM system.tables WHERE database = currentDatabase() AND name LIKE 'points%' ORDER BY name",
  )
  t.match(tables[0], { name: 'points', engine: 'Distributed', sql: /cityHash64\(toString\(trackerId\)\)/ })
  t.match(tables[1], { name: 'points_local', engine: /ReplacingMergeTree$/, sql: /toIntervalDay\(30\)/ })
  await openSchema(store, RETENTION)

  await insertDecided(store, decisionsOf(6), 'once')
  await insertDecided(store, decisionsOf(6), 'once')
  t.equal(await countOf(store, 'transitions_local'), 6, 'a token inserts once, through the table of the cluster')
  const asked = selectTransitions({ organizationId: ORGANIZATION, trackerIds: [TRACKERS[0]] }, { order: 'asc' })
  t.same(
    (await store.rows<{ _id: string }>(asked.sql, asked.parameters)).map(({ _id }) => _id),
    ['0', '2', '4'],
  )

  const time = (ms: number): string => `fromUnixTimestamp64Milli(${ms}, 'UTC')`
  const rows = [0, 1, 2, 3].map(
    (no) => `'${ORGANIZATION}', '${TRACKERS[no % 2]}', ${time(AT + no * 1_000)}, ${2n ** 63n}`,
  )
  await store.command(
    `INSERT INTO points (organizationId, trackerId, recordedAt, version) SELECT ${rows.join(' UNION ALL SELECT ')}`,
  )
  const filter = { organizationId: ORGANIZATION, trackerIds: 'all', from: AT + 2_000, to: AT + 9_000 } as const
  const counts: number[] = []
  for (const { sql, parameters } of [
    selectPoints(filter, { order: 'desc' }),
    selectForBacktest(filter),
    selectNewest(),
  ])
    counts.push((await store.rows(sql, parameters)).length)
  t.same(counts, [2, 4, 2])
  t.equal((await store.rows('SELECT * FROM default_analysis.latest')).length, 2)

  await store.command(`DELETE FROM transitions_local WHERE _id = '5'`)
  const comparison = new HistoryComparison(store, 'transitions', 0)
  await comparison.begin()
  const buffer = decisionBuffer(0, new Erased())
  buffer.add(decisionsOf(6), 0)
  for (const { block } of await buffer.blocks()) await comparison.take(block, 'compared')
  await comparison.end()
  t.match(comparison.found, { rows: 6, missing: 1, different: 0, differences: [{ live: 'missing' }] })
  t.equal(await countOf(store, 'transitions'), 6, 'what was missing is there again')

  await store.erase([{ organizationId: ORGANIZATION, trackerId: TRACKERS[0] }])
  t.same([await countOf(store, 'transitions'), await countOf(store, 'points')], [3, 2])

  const other = await openClickhouseHistory({ url: url.replace(/\?.*/, '') })
  await t.rejects(openSchema(other, RETENTION), /spread over a cluster: name it in --history with \?cluster=/)
  await other.close()
  const unknown = await openClickhouseHistory({ url: url.replace('cluster=', 'cluster=un') })
  await t.rejects(openSchema(unknown, RETENTION), /the cluster unmain, which the server does not know/)
  await unknown.close()
})

test('every statement that changes something names the cluster, and is SQL that the engine reads', {
  timeout: 900_000,
}, async (t) => {
  const { store } = await openCluster(t)
  const statements: string[] = []
  const seen = recorded(store, statements)
  await openSchema(seen, RETENTION)
  await openSchema(seen, { days: 1, runDays: 1 })
  for (const table of ['points', 'transitions', 'trips', 'automation_runs', 'audit_log'] as const) {
    const comparison = new HistoryComparison(seen, table, 0)
    await comparison.begin()
    await comparison.end()
  }
  await seen.erase([{ organizationId: ORGANIZATION, trackerId: TRACKERS[0] }, { organizationId: ORGANIZATION }])
  const isChange = (sql: string): boolean => /^\s*(CREATE|ALTER|DROP|DELETE|TRUNCATE|RENAME)\b/.test(sql)
  const changes = statements.filter(isChange)
  t.ok(changes.length > 50)
  for (const sql of changes) t.match(sql, / ON CLUSTER 'main'/, sql.slice(0, 80))
  for (const sql of changes.filter((text) => /_local\b[\s\S]*ENGINE = /.test(text.split(' AS ')[0])))
    t.match(sql, /ENGINE = Replicated\w*MergeTree\('\/clickhouse\/tables\/\{uuid\}\/\{shard\}', '\{replica\}'/)
  const copied = changes.find((sql) => sql.includes('schema_versions'))
  t.match(copied, /ENGINE = ReplicatedMergeTree\('\/clickhouse\/tables\/\{uuid\}\/all', '\{shard\}-\{replica\}'\)/)
  const sqls = [...new Set([...statements, insertBeside('points')])]
  const read = await store.rows('SELECT formatQueryOrNull(arrayJoin({sqls:Array(String)})) AS sql', { sqls })
  t.same(
    sqls.filter((_, i) => (read[i] as { sql: string | null }).sql === null),
    [],
    'the engine reads every one',
  )
})

test('nodes that lack tables, or have their own, and one server’s history are refused with the reason', async (t) => {
  const layout = { database: 'waymark', cluster: 'main' }
  const answering = (answers: object[][]): Pick<HistoryStore, 'rows'> => ({
    rows: async <R extends object>() => answers.shift() as R[],
  })
  const even = [[{ known: 2 }], [{ nodes: 2 }], []]
  const uneven = [[{ known: 2 }], [{ nodes: 2 }], [{ name: 'points_local', there: 1, kinds: 1 }]]
  await t.rejects(assertLayout(answering(uneven), layout, 'v'), /Of the 2 nodes .* points_local \(1\).*Adding a node/)
  const single = [...even, [{ name: 'points', engine: 'ReplacingMergeTree' }]]
  await t.rejects(
    assertLayout(answering(single), layout, 'v'),
    /is one server's: the cluster main needs another database/,
  )
  t.equal(await assertLayout(answering([...even, []]), layout, 'v'), false)
  t.equal(await assertLayout(answering([...even, [{ name: 'v', engine: '' }]]), layout, 'v'), true)
})
