import { join } from 'node:path'
import { test, type Test } from 'tap'
import { openChdbHistoryStore } from '../../src/engines/chdb/chdb-history.ts'
import { DEFINITIONS, RUNS, TRANSITIONS, transitionVersionOf } from '../../src/engines/clickhouse-sql/history-tables.ts'
import { MIGRATIONS } from '../../src/engines/clickhouse-sql/migrations.ts'
import { migrateHistory, versionOfSchema } from '../../src/engines/clickhouse-sql/migrate.ts'
import { HistoryRows } from '../../src/engines/clickhouse-sql/rows.ts'
import { runsBlock } from '../../src/engines/clickhouse-sql/runs.ts'
import { Failure } from '../../src/kernel/errors.ts'
import type { HistoryStore } from '../../src/engines/history-store.ts'
import type { Find } from '../../src/engines/table-store.ts'
import type { Transition } from '../../src/features/transitions/events.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { insertDecided } from '../support/history-writers.ts'
import { folderOf } from '../support/folder-of.ts'

const RETENTION = { days: 36_500, runDays: 36_500 }
const AT = Date.parse('2026-01-01T00:00:00Z')

const open = async (t: Test) => {
  const folder = folderOf(t)
  const history = await openChdbHistoryStore({ path: join(folder, 'data'), scratchPath: join(folder, 'scratch') })
  t.teardown(() => history.close())
  return history
}

/** What a version wrote that had no numbers yet: a transition at a position of the whole log. */
const openOld = async (t: Test) => {
  const history = await open(t)
  for (const sql of MIGRATIONS[0]({ ...RETENTION, database: 'default' })) await history.command(sql)
  await history.command(
    `INSERT INTO ${TRANSITIONS} SELECT 'o', fromUnixTimestamp64Milli({at:Int64}, 'UTC'), 'old', 't', 'g', 'gg', 'entry', 'point', '{}', 777, 0, 4611686018427387127`,
    { at: AT },
  )
  return history
}

const transition = (id: string): Transition => ({
  kind: 'transition',
  _id: id,
  organizationId: 'o',
  trackerId: 't',
  geofenceId: 'g',
  geofenceGroupId: 'gg',
  type: 'leave',
  at: AT,
  cause: 'point',
  point: { recordedAt: AT, lat: 1, lng: 2 },
})

const rowsOf = (history: HistoryStore) =>
  history.rows<object>(`SELECT _id, partition, revision, ordinal FROM ${TRANSITIONS} FINAL ORDER BY _id`)

test('a history without numbers is brought to this schema, with its rows; each change is made once', async (t) => {
  const history = await openOld(t)
  await migrateHistory(history, RETENTION)
  t.equal(await versionOfSchema(history), MIGRATIONS.length)
  const decided = { sourceRevision: 0, ordinal: 3, sourceLoggedAt: AT, decisions: [transition('new')] }
  await insertDecided(history, { partition: 5, revision: 9, decided }, 'a')
  const rows = [
    { _id: 'new', partition: 5, revision: 9, ordinal: 3 },
    { _id: 'old', partition: 0, revision: 777, ordinal: 0 },
  ]
  t.same(await rowsOf(history), rows)
  await migrateHistory(history, RETENTION)
  t.same(await rowsOf(history), rows)
  const applied = await history.rows<{ number: number; times: number }>(
    'SELECT number, count() AS times FROM schema_versions GROUP BY number ORDER BY number',
  )
  t.same(
    applied,
    MIGRATIONS.map((_, i) => ({ number: i + 1, times: 1 })),
  )
})

test('merges of a history from before are forced no sooner than a day after the last insert of a month', async (t) => {
  const history = await openOld(t)
  for (const sql of MIGRATIONS.slice(1, 7).flatMap((change) => change({ ...RETENTION, database: 'default' })))
    await history.command(sql)
  const before = 'min_age_to_force_merge_seconds = 120, min_age_to_force_merge_on_partition_only = 0'
  const tables = Object.keys(DEFINITIONS)
  for (const table of tables) await history.command(`ALTER TABLE ${table} MODIFY SETTING ${before}`)
  await migrateHistory(history, RETENTION)
  const made = await history.rows<{ sql: string }>(
    'SELECT create_table_query AS sql FROM system.tables WHERE database = currentDatabase() AND name IN {tables:Array(String)}',
    { tables },
  )
  t.equal(made.length, tables.length)
  for (const { sql } of made)
    t.match(sql, /min_age_to_force_merge_seconds = 86400, .*min_age_to_force_merge_on_partition_only = (1|true)/)
})

test('runs from before lists asked for their events are found by them', async (t) => {
  const history = await open(t)
  for (const sql of MIGRATIONS.slice(0, 8).flatMap((change) => change({ ...RETENTION, database: 'default' })))
    await history.command(sql)
  const owed = (event: string) => ({
    ...{ automationId: 'a', subjectId: 't', partition: 0, sequence: 1 },
    trigger: JSON.stringify({ event, subject: { type: 'tracker', id: 't' } }),
  })
  const run = (_id: string, revision: number) => ({
    ...{ organizationId: 'o', _id, createdAt: AT },
    at: { epoch: 0, revision, ordinal: 0 },
  })
  await history.insert(RUNS, runsBlock([{ ...run('old', 1), status: 'pending', owed: owed('onStartTrip') }]), 'old')
  await migrateHistory(history, RETENTION)
  const changes = [
    { ...run('new', 2), status: 'pending', owed: owed('onStartTrip') },
    { ...run('other', 3), status: 'pending', owed: owed('onFinishTrip') },
    { ...run('new', 4), status: 'dead', attempt: '{}' },
  ]
  for (const change of changes) await history.insert(RUNS, runsBlock([change]), `${change.at.revision}`)
  const rows = new HistoryRows(history, new FakeClock(AT))
  const found = async (where: Find['where']) =>
    (await rows.find('automationRuns', 'o', { where, limit: 9 })).rows.map(({ id }) => id).sort()
  t.same(await found({ event: 'onStartTrip' }), ['new', 'old'])
  t.same(await found({ event: 'onStartTrip', status: 'dead' }), ['new'])
  t.same(await found({ event: ['onFinishTrip', 'onGeofenceLeave'] }), ['other'])
})

test('a crash between a change and its number does no harm', async (t) => {
  const history = await openOld(t)
  await migrateHistory(history, RETENTION)
  await history.command('TRUNCATE TABLE schema_versions')
  await migrateHistory(history, RETENTION)
  t.same(await rowsOf(history), [{ _id: 'old', partition: 0, revision: 777, ordinal: 0 }])
})

test('the history of a later version is refused; retention is what is asked for now', async (t) => {
  const history = await open(t)
  await migrateHistory(history, RETENTION)
  await migrateHistory(history, { days: 7, runDays: 3 })
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
      ['points', '7'],
      ['transitions', '7'],
      ['trips', '7'],
    ],
  )
  await history.command('INSERT INTO schema_versions SELECT {number:UInt32}, now64(3)', { number: 1_000 })
  await t.rejects(migrateHistory(history, RETENTION), /later version/)
})

test('a server that refuses a change of the schema is quoted', async (t) => {
  const history = await open(t)
  const words =
    'Code: 497. waymark: Not enough privileges. To execute this query, it is necessary to have the grant CREATE'
  const command: HistoryStore['command'] = async (sql, parameters) => {
    if (sql.startsWith('CREATE DATABASE')) throw new Failure('internal', { cause: new Error(`${words}\nand more`) })
    await history.command(sql, parameters)
  }
  const bounded: HistoryStore = Object.create(history, { command: { value: command } })
  await t.rejects(migrateHistory(bounded, RETENTION), {
    message: `The history refuses change 6 of its schema: ${words}`,
  })
  const down = async (): Promise<void> => Promise.reject(new Failure('engine_down'))
  await t.rejects(migrateHistory(Object.create(history, { command: { value: down } }), RETENTION), {
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
