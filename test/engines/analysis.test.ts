import { spawn } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { type Test, test } from 'tap'
import { openChdbHistoryStore } from '../../src/engines/chdb/chdb-history.ts'
import { quoteString } from '../../src/engines/chdb/parameters.ts'
import { openClickhouseHistory } from '../../src/engines/clickhouse-history/clickhouse-history.ts'
import { openSchema } from '../../src/engines/clickhouse-sql/history-schema.ts'
import type { HistoryStore } from '../../src/engines/history-store.ts'
import { folderOf } from '../support/folder-of.ts'

const PAGE = readFileSync('docs/analysis.md', 'utf8')
/** The organization of the page, another one, a tracker of each, and the geofence of the page. */
const OURS = '01900000-0000-7000-8000-0000000000a1'
const THEIRS = '01900000-0000-7000-8000-0000000000a2'
const VAN = '01900000-0000-7000-8000-0000000000b1'
const CAR = '01900000-0000-7000-8000-0000000000b2'
const FENCE = '01900000-0000-7000-8000-00000000000f'
const DAY = Date.parse('2026-03-02T00:00:00Z')
const MINUTE_MS = 60_000
/** Meters of a degree of latitude on the sphere that `geoDistance` of the engine approximates. */
const DEGREE_METERS = 111_195

/** The statement below a heading of the page. */
const statementOf = (heading: string): string => {
  const [, section] = PAGE.split(`### ${heading}\n`)
  return /```sql\n([\s\S]*?)```/.exec(section)![1]
}

const statementsOf = (page: string): string[] =>
  [...page.matchAll(/```sql\n([\s\S]*?)```/g)].flatMap(([, block]) =>
    block
      .split(';')
      .map((statement) => statement.trim())
      .filter(Boolean),
  )

interface Fix {
  atMs: number
  lat: number
  speed?: number
}

/**
 * A day of the van: a minute of driving north at 30 m/s from 08:00, ten minutes at rest with noise, then two minutes north
 * at 20 m/s; and one point on the next day of Berlin.
 */
const vanDay = (): Fix[] => {
  const fixes: Fix[] = []
  let lat = 52.5
  let atMs = DAY + 8 * 60 * MINUTE_MS
  const drive = (seconds: number, speed: number): void => {
    for (let i = 0; i < seconds; i += 5) {
      fixes.push({ atMs, lat, speed })
      atMs += 5_000
      lat += (speed * 5) / DEGREE_METERS
    }
  }
  drive(60, 30)
  for (let i = 0; i < 20; i++, atMs += 30_000) fixes.push({ atMs, lat: lat + (i % 2) * 0.00002, speed: 0 })
  drive(120, 20)
  fixes.push({ atMs: DAY + 23.5 * 60 * MINUTE_MS, lat, speed: 0 })
  return fixes
}

const fill = async (history: HistoryStore): Promise<void> => {
  const points = [...vanDay().map((fix) => ({ ...fix, ids: `'${OURS}', '${VAN}'` }))]
  points.push({ atMs: DAY + 9 * 60 * MINUTE_MS, lat: 52.4, speed: 40, ids: `'${THEIRS}', '${CAR}'` })
  const time = (ms: number): string => `fromUnixTimestamp64Milli(${ms}, 'UTC')`
  const rows = points.map(
    ({ ids, atMs, lat, speed }) =>
      `${ids}, ${time(atMs)}, ${Math.round(lat * 1e7)}, ${13.4e7}, ${4 + 16}, ${(speed ?? 0) * 100}, 55, ${2n ** 63n + 7n}`,
  )
  const insert = (table: string, columns: string, values: readonly string[]): Promise<void> =>
    history.command(`INSERT INTO ${table} (${columns}) SELECT ${values.join(' UNION ALL SELECT ')}`)
  const columns = 'organizationId, trackerId, recordedAt, latE7, lngE7, flags, speedCms, batteryPercent, version'
  await insert('points', columns, rows)
  // Logged again later, and ahead of the clock: neither counts.
  await insert('points', columns, [
    `'${OURS}', '${VAN}', ${time(points[0].atMs)}, 0, 0, 0, 0, 0, ${2n ** 63n + 6n}`,
    `'${OURS}', '${VAN}', ${time(DAY + 24 * 60 * MINUTE_MS)}, 0, 0, 0, 0, 0, 6`,
  ])
  const crossing = (organization: string, tracker: string, type: string, minute: number, no: number): string =>
    `'${organization}', ${time(DAY + minute * MINUTE_MS)}, '01900000-0000-7000-8000-00000000000${no}', '${tracker}', '${FENCE}', '${FENCE}', '${type}', 'point', '{"recordedAt":1,"lat":52.5,"lng":13.4}', 1`
  await insert(
    'transitions',
    'organizationId, at, _id, trackerId, geofenceId, geofenceGroupId, type, cause, point, version',
    [
      crossing(OURS, VAN, 'entry', 60, 1),
      crossing(OURS, VAN, 'leave', 90, 2),
      crossing(OURS, VAN, 'entry', 23 * 60, 3),
      crossing(THEIRS, CAR, 'entry', 60, 4),
    ],
  )
  const trip = (organization: string, tracker: string, no: number, finishedAt: number): string =>
    `'${organization}', ${time(DAY)}, '01900000-0000-7000-8000-00000000000${no}', '${tracker}', 0, ${finishedAt}, 1234.5, 1`
  await insert('trips', 'organizationId, startedAt, _id, trackerId, explicit, finishedAtMs, distance, version', [
    trip(OURS, VAN, 5, DAY + 1_000),
    trip(OURS, VAN, 6, 0),
    trip(THEIRS, CAR, 7, 0),
  ])
}

interface Answer {
  // biome-ignore lint/suspicious/noExplicitAny: what any statement answers
  rows?: any[]
  error?: string
}

/** Runs statements in a process of its own, whose current folder says how the engine is set up. */
const run = async (folder: string, statements: readonly string[]): Promise<Answer[]> => {
  const args = [resolve('dist/test/support/clickhouse/query-child.js'), join(folder, 'data'), ...statements]
  const child = spawn(process.execPath, args, { cwd: folder, stdio: ['ignore', 'pipe', 'inherit'] })
  const answers: Answer[] = []
  for await (const line of createInterface({ input: child.stdout })) answers.push(JSON.parse(line))
  return answers
}

/** A history of two organizations. */
const openFilled = async (t: Test): Promise<string> => {
  const folder = folderOf(t)
  const history = await openChdbHistoryStore({ path: join(folder, 'data'), scratchPath: join(folder, 'scratch') })
  await openSchema(history, { days: 36_500, runDays: 36_500 })
  await fill(history)
  await history.close()
  return folder
}

/**
 * The engine in process has one user, from its configuration: it is given the very grants and the condition of the row
 * policies that the page gives to an analyst.
 */
const becomeAnalyst = (folder: string): void => {
  const own = (sql: string): string =>
    sql.replaceAll('waymark_analysis', 'default_analysis').replaceAll('waymark.', 'default.')
  const grants = [...PAGE.matchAll(/^(GRANT SELECT ON \S+) TO waymark_analyst;$/gm)].map(([, grant]) => own(grant))
  const [, tables, condition] = /CREATE ROW POLICY fleet_analyst ON ([\w., ]+)\n {2}USING (.*) TO fleet_analyst;/.exec(
    PAGE,
  )!
  const policies = tables
    .split(', ')
    .map((name) => name.replace('waymark.', ''))
    .map((table) => `<${table}><filter>${condition}</filter></${table}>`)
  mkdirSync(folder, { recursive: true })
  writeFileSync(
    join(folder, 'config.xml'),
    `<clickhouse><users_config>${join(folder, 'users.xml')}</users_config></clickhouse>`,
  )
  writeFileSync(
    join(folder, 'users.xml'),
    `<clickhouse><users><default><password></password><profile>default</profile><quota>default</quota>
    <networks><ip>::/0</ip></networks><grants>${grants.map((grant) => `<query>${grant}</query>`).join('')}</grants>
    <databases><default>${policies.join('')}</default></databases></default></users>
    <profiles><default/></profiles><quotas><default/></quotas></clickhouse>`,
  )
}

const BEFORE = ['USE default_analysis', 'SET readonly = 1']

test('the questions of docs/analysis.md run as pasted, as an analyst of one organization', async (t) => {
  const folder = await openFilled(t)
  becomeAnalyst(folder)
  const headings = [
    'Stops',
    'Distance a day',
    'Dwell time in a geofence',
    'Heat map',
    'Speeding',
    'Which trackers are silent',
  ]
  t.equal(headings.length, PAGE.split('\n### ').length - 1, 'every question of the page is here')
  const answers = (await run(folder, [...BEFORE, ...headings.map(statementOf)])).slice(BEFORE.length)
  const [stops, distances, stays, cells, speeding, silent] = answers.map(({ rows, error }) => rows ?? [{ error }])

  const time = (seconds: number): string =>
    new Date(DAY + 8 * 3_600_000 + seconds * 1_000).toISOString().slice(0, -1).replace('T', ' ')
  const near = (actual: number, expected: number, share: number, what: string) =>
    t.ok(Math.abs(actual - expected) <= expected * share, `${what}: ${actual} is about ${expected}`)

  t.match(stops, [{ trackerId: VAN, stoppedAt: time(60), leftAt: time(660), seconds: 600 }, { stoppedAt: time(775) }])
  near(stops[0].lat, 52.5 + 1_800 / DEGREE_METERS, 1e-5, 'where it stopped')
  t.match(distances, [
    { trackerId: VAN, day: '2026-03-02' },
    { trackerId: VAN, day: '2026-03-03', kilometers: Number },
  ])
  // 60 s at 30 m/s, 19 times 2.2 m of noise, 120 s at 20 m/s of which the last 100 m end on the next day.
  near(distances[0].kilometers, (1_800 + 19 * 2.22 + 2_300) / 1_000, 0.01, 'kilometers of the day')
  near(distances[1].kilometers, 0.1, 0.05, 'kilometers of the next')
  t.match(stays, [
    { trackerId: VAN, seconds: 1_800 },
    { trackerId: VAN, leftAt: '2026-03-03 00:00:00.000', seconds: 3_600 },
  ])
  t.equal(stays.length, 2)
  t.ok(cells.length > 3 && cells.every(({ trackers }) => trackers === 1), 'cells with the one tracker')
  t.ok(Number(cells[0].minutes) >= 10, 'the hottest is where it stood')
  t.match(speeding, [{ trackerId: VAN, beganAt: time(0), endedAt: time(55), speedMax: 30 }])
  t.equal(speeding.length, 1)
  t.match(silent, [{ trackerId: VAN, recordedAt: '2026-03-02 23:30:00.000' }])
  t.equal(silent.length, 1)
})

test('an analyst sees one organization, and nothing beyond the views', async (t) => {
  const folder = await openFilled(t)
  const views = ['points', 'transitions', 'trips', 'latest']
  const whose = (table: string): string => `SELECT DISTINCT toString(organizationId) AS o FROM ${table} ORDER BY o`
  const everybody = await run(folder, [...BEFORE, ...views.map(whose)])
  t.same(
    everybody.slice(2).map(({ rows }) => rows?.length),
    [2, 2, 2, 2],
    'without a policy there are both',
  )

  becomeAnalyst(folder)
  const tables = ['default.points', 'default.transitions', 'default.trips', "merge('default', 'points|trips')"]
  const bounded = await run(folder, [...BEFORE, ...[...views, ...tables].map(whose)])
  for (const [i, { rows, error }] of bounded.slice(2).entries())
    t.same(
      rows?.map(({ o }) => o),
      [OURS],
      `${[...views, ...tables][i]} ${error ?? ''}`,
    )

  const refused = [
    'SELECT * FROM default.automation_runs',
    'SELECT * FROM default.audit_log',
    "SELECT * FROM remote('127.0.0.1', default, audit_log)",
    'INSERT INTO default.points (version) VALUES (1)',
    'ALTER TABLE default.points DELETE WHERE 1',
    'DROP VIEW default_analysis.points',
    'CREATE TABLE default_analysis.mine (a String) ENGINE = Memory',
    'SELECT * FROM default.points SETTINGS apply_deleted_mask = 0',
    'SET readonly = 0',
    "SELECT * FROM file('/etc/passwd', LineAsString)",
  ]
  for (const [i, { error }] of (await run(folder, [...BEFORE, ...refused])).slice(2).entries())
    t.match(error, /\((ACCESS_DENIED|READONLY)\)/, refused[i])
})

test('statements for administrators in docs/analysis.md and docs/clickhouse.md are SQL that the engine reads', async (t) => {
  const [, section] = PAGE.split('## Giving access to one organization')
  const statements = [section, readFileSync('docs/clickhouse.md', 'utf8')].flatMap(statementsOf)
  t.ok(statements.length > 20)
  const quoted = statements.map((sql) => quoteString(sql))
  const answers = await run(
    folderOf(t),
    quoted.map((sql) => `SELECT formatQuerySingleLine(${sql}) AS sql`),
  )
  for (const [i, { rows, error }] of answers.entries()) t.ok(rows?.[0]?.sql, `${statements[i]}: ${error}`)
})

test('views have the columns that docs/analysis.md lists', async (t) => {
  const folder = await openFilled(t)
  const answers = await run(
    folder,
    ['points', 'transitions', 'trips'].map((view) => `DESCRIBE default_analysis.${view}`),
  )
  for (const [i, view] of ['points', 'transitions', 'trips'].entries()) {
    const [, table] = PAGE.split(`| \`${view}\` | Type | Meaning |\n`)
    const listed = [...table.split('\n\n')[0].matchAll(/^\| (`.*?) \| (.*?) \|/gm)].flatMap(([, names, type]) =>
      names.split(', ').map((name) => `${name.replaceAll('`', '')} ${type}`),
    )
    t.same(answers[i].rows?.map(({ name, type }) => `${name} ${type}`).sort(), listed.sort(), view)
  }
})

const REAL = process.env.WAYMARK_TEST_CLICKHOUSE

test('on a real server, the statements of the page make an analyst who sees one organization', {
  skip: REAL === undefined ? 'WAYMARK_TEST_CLICKHOUSE names no server whose user may make users' : false,
}, async (t) => {
  const url = new URL(REAL as string)
  const database = url.pathname.slice(1) || 'default'
  const own = (sql: string): string =>
    sql
      .replaceAll('waymark_analysis', `${database}_analysis`)
      .replaceAll('waymark.', `${database}.`)
      .replace(/ TO waymark$/, ` TO ${url.username || 'default'}`)
  const admin = await openClickhouseHistory({ url: url.href })
  const tables = ['points', 'transitions', 'trips'].map((table) => `${database}.${table}`).join(', ')
  const dropAll = async (): Promise<void> => {
    await admin.command('DROP USER IF EXISTS fleet_analyst')
    for (const policy of ['fleet_analyst', 'waymark_analyst', 'waymark_service'])
      await admin.command(`DROP ROW POLICY IF EXISTS ${policy} ON ${tables}`)
    await admin.command('DROP ROLE IF EXISTS waymark_analyst')
    await admin.command('DROP SETTINGS PROFILE IF EXISTS waymark_analyst')
  }
  await openSchema(admin, { days: 36_500, runDays: 36_500 })
  await dropAll()
  t.teardown(async () => {
    await dropAll()
    await admin.erase([{ organizationId: OURS }, { organizationId: THEIRS }])
    await admin.close()
  })
  await fill(admin)
  const [, section] = PAGE.split('## Giving access to one organization')
  for (const sql of statementsOf(section)) await admin.command(own(sql))

  const ask = async (sql: string): Promise<string> => {
    const authorization = `Basic ${Buffer.from('fleet_analyst:choose-a-long-one').toString('base64')}`
    const answer = await fetch(url.origin, { method: 'POST', headers: { authorization }, body: sql })
    return (await answer.text()).trim()
  }
  for (const view of ['points', 'transitions', 'trips', 'latest', `${database}.points`])
    t.equal(await ask(`SELECT DISTINCT organizationId FROM ${view}`), OURS, view)
  for (const heading of PAGE.split('\n### ').slice(1))
    t.notMatch(await ask(/```sql\n([\s\S]*?)```/.exec(heading)![1]), /DB::Exception/, heading.split('\n')[0])
  for (const sql of [
    `SELECT * FROM ${database}.audit_log`,
    `INSERT INTO ${database}.points (version) VALUES (1)`,
    'SELECT * FROM points SETTINGS apply_deleted_mask = 0',
  ])
    t.match(await ask(sql), /ACCESS_DENIED|READONLY/, sql)
})
