import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { openChdbHistoryStore } from '../../src/engines/chdb/chdb-history.ts'
import { openSchema, SCHEMA } from '../../src/engines/clickhouse-sql/history-schema.ts'
import { DEFINITIONS, RUNS, transitionVersionOf } from '../../src/engines/clickhouse-sql/history-tables.ts'
import { runsBlock } from '../../src/engines/clickhouse-sql/runs.ts'
import type { HistoryStore } from '../../src/engines/history-store.ts'
import { Failure } from '../../src/kernel/errors.ts'
import { folderOf } from '../support/folder-of.ts'
import { PREVIOUS } from '../support/previous.ts'

const RETENTION = { days: 36_500, runDays: 36_500 }
const AT = Date.parse('2026-01-01T00:00:00Z')

const open = async (t: Test) => {
  const folder = folderOf(t)
  const history = await openChdbHistoryStore({ path: join(folder, 'data'), scratchPath: join(folder, 'scratch') })
  t.teardown(() => history.close())
  return history
}

test('a history is made once, and again where a crash came before its number', async (t) => {
  const history = await open(t)
  await openSchema(history, RETENTION)
  await openSchema(history, RETENTION)
  const numbers = 'SELECT number, count() AS times FROM schema_versions GROUP BY number'
  t.same(await history.rows(numbers), [{ number: SCHEMA, times: 1 }])
  const owed = {
    ...{ automationId: 'a', subjectId: 't', partition: 0, sequence: 1 },
    trigger: '{"event":"onStartTrip"}',
  }
  const run = { ...{ organizationId: 'o', _id: 'r', createdAt: AT }, at: { epoch: 0, revision: 1, ordinal: 0 } }
  await history.insert(RUNS, runsBlock([{ ...run, status: 'pending', owed }]), 'one')
  await history.command('TRUNCATE TABLE schema_versions')
  await openSchema(history, RETENTION)
  t.same(await history.rows(numbers), [{ number: SCHEMA, times: 1 }])
  t.same(await history.rows(`SELECT _id, event FROM ${RUNS} FINAL`), [{ _id: 'r', event: 'onStartTrip' }])
})

test('the tables have the columns and settings of those that the version before has, once this one has opened them', async (t) => {
  const tablesOf = async (store: HistoryStore) => {
    const columns = await store.rows<{ table: string }>(
      'SELECT table, name, type, default_kind, default_expression, compression_codec, position FROM system.columns WHERE database = currentDatabase() AND table IN {tables:Array(String)} ORDER BY table, position',
      { tables: Object.keys(DEFINITIONS) },
    )
    const engines = await store.rows<{ name: string; engine: string }>(
      "SELECT name, replaceRegexpAll(engine_full, 'toIntervalDay.[0-9]+.', '') AS engine FROM system.tables WHERE database = currentDatabase() AND name IN {tables:Array(String)} ORDER BY name",
      { tables: Object.keys(DEFINITIONS) },
    )
    return { columns, engines }
  }
  const folder = folderOf(t)
  execFileSync('tar', ['-xzf', PREVIOUS, '-C', folder, 'data/history'])
  // One after the other: a process has one chDB.
  const before = await openChdbHistoryStore({ path: join(folder, 'data/history'), scratchPath: join(folder, 'old') })
  await openSchema(before, RETENTION)
  const wanted = await tablesOf(before)
  await before.close()
  const history = await open(t)
  await openSchema(history, RETENTION)
  t.ok(wanted.columns.length > 50 && wanted.engines.length === Object.keys(DEFINITIONS).length)
  t.same(await tablesOf(history), wanted)
  t.ok(wanted.engines.every(({ engine }) => engine.includes('merge_selector_base = 12')))
})

test('the history of another version is refused; retention is what is asked for now', async (t) => {
  const history = await open(t)
  await openSchema(history, RETENTION)
  await openSchema(history, { days: 7, runDays: 3 })
  const tables = await history.rows<{ name: string; sql: string }>(
    'SELECT name, create_table_query AS sql FROM system.tables WHERE database = currentDatabase() ORDER BY name',
  )
  t.same(
    tables.flatMap(({ name, sql }) => {
      const days = /toIntervalDay\((\d+)\)/.exec(sql)
      return days === null ? [] : [[name, days[1]]]
    }),
    [
      ['automation_runs', '3'],
      ['point_steps', '7'],
      ['point_steps_late', '7'],
      ['points', '7'],
      ['trace_cells', '7'],
      ['transitions', '7'],
      ['trips', '7'],
    ],
  )
  const number = (number: number) =>
    history.command('INSERT INTO schema_versions SELECT {number:UInt32}, now64(3)', { number })
  await number(1_000)
  await t.rejects(
    openSchema(history, RETENTION),
    /schema 1000, of a later version; this one knows 9: start that version/,
  )
  await history.command('TRUNCATE TABLE schema_versions')
  await number(SCHEMA - 1)
  await t.rejects(
    openSchema(history, RETENTION),
    /schema 8, of an earlier version; this one knows 9: start the version before this one first, which upgrades it/,
  )
})

test('a start on a history that is as it should be asks a few questions and changes nothing', async (t) => {
  const history = await open(t)
  await openSchema(history, RETENTION)
  const asked: string[] = []
  const rows: HistoryStore['rows'] = (sql, parameters) => {
    asked.push(sql)
    return history.rows(sql, parameters)
  }
  const command: HistoryStore['command'] = async (sql) => void t.fail(sql)
  await openSchema(Object.create(history, { rows: { value: rows }, command: { value: command } }), RETENTION)
  t.equal(asked.length, 6, asked.join('\n'))
})

test('a server that refuses the schema is quoted', async (t) => {
  const history = await open(t)
  const words =
    'Code: 497. waymark: Not enough privileges. To execute this query, it is necessary to have the grant CREATE'
  const command: HistoryStore['command'] = async (sql, parameters) => {
    if (sql.startsWith('CREATE DATABASE')) throw new Failure('internal', { cause: new Error(`${words}\nand more`) })
    await history.command(sql, parameters)
  }
  const bounded: HistoryStore = Object.create(history, { command: { value: command } })
  await t.rejects(openSchema(bounded, RETENTION), {
    message: `The history refuses its schema: ${words}`,
  })
  const down = async (): Promise<void> => Promise.reject(new Failure('engine_down'))
  await t.rejects(openSchema(Object.create(history, { command: { value: down } }), RETENTION), {
    code: 'engine_down',
  })
})

test('of two rows of a transition the first logged counts, also from a log before this one', (t) => {
  const versions = [transitionVersionOf(0, 5), transitionVersionOf(0, 6), transitionVersionOf(1, 0)]
  t.same(
    [...versions].sort((a, b) => (a < b ? 1 : -1)),
    versions,
  )
  t.ok(versions.every((version) => version < 1n << 63n))
  t.end()
})
