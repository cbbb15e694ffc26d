import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { askControl } from '../../src/cli/control-socket.ts'
import { IngestClient } from '../../src/cli/ingest-client.ts'
import type { Fix } from '../../src/cli/trace-file.ts'
import { openLmdbEventLog } from '../../src/engines/lmdb-log/lmdb-log.ts'
import { openChdbHistoryStore } from '../../src/engines/chdb/chdb-history.ts'
import { openLmdbTableStore } from '../../src/engines/lmdb-tables/lmdb-tables.ts'
import { locationStream } from '../../src/features/locations/events.ts'
import { LATEST_POSITIONS, type LatestPositionRow } from '../../src/features/locations/views.ts'
import { NO_ORGANIZATION } from '../../src/kernel/table.ts'
import { systemClock } from '../../src/kernel/system-clock.ts'
import { LOG_CONSUMERS } from '../../src/reactors/sweep/log-consumers.ts'
import { realDay } from '../support/real-day.ts'
import { allPages, allRows, ask, call, signUp, startService, until, type Service } from '../support/service.ts'
import { checkHistory, checkTransitions, prepare } from '../support/stream-checks.ts'
import { openReceiver } from '../support/webhook-receiver.ts'
import { folderOf } from '../support/folder-of.ts'

const FIXES = 3_000
/** Of these the first part is sent before the log is truncated. */
const BEFORE = 2_000
const PARTITIONS = 16
const FLAGS = ['--location-log-days', '0']
const TABLES = ['directory', 'access', 'automations', 'backtests', 'notifications']
const EVERY = [
  ...TABLES,
  'location-history',
  'transitions',
  'automation-runs',
  'audit-log',
  'latest-position',
  'matcher',
  'point-steps',
]

const send = async (service: Service, key: string, fixes: Fix[]): Promise<void> => {
  const gateway = await IngestClient.connect(service.url, key)
  for (let at = 0; at < fixes.length; at += 100) await gateway.send(fixes.slice(at, at + 100))
  await gateway.drained()
  gateway.close()
}

/** Runs the command line; answers its exit code and what it printed. */
const waymark = async (...args: string[]): Promise<{ code: number | null; out: string; error: string }> => {
  const child = spawn(process.execPath, ['dist/src/main.js', ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  let [out, error] = ['', '']
  child.stdout.on('data', (text) => (out += text))
  child.stderr.on('data', (text) => (error += text))
  const code = await new Promise<number | null>((done) => child.once('close', done))
  return { code, out, error }
}

const rebuildEach = async (t: Test, data: string, when: string): Promise<void> => {
  for (const name of EVERY) {
    const answer = await askControl(data, { command: 'rebuild', name })
    const report = answer?.report as { projection: string; rows: number; differing: number; differences: unknown[] }
    t.match(answer, { ok: true, report: { projection: name } }, `${name} is rebuilt ${when}`)
    t.same(
      [report?.differing, report?.differences],
      name === 'point-steps' ? [undefined, undefined] : [0, []],
      `${name} equals what was there, over ${report?.rows} rows`,
    )
  }
}

const answersOf = async (service: Service, token: string) => {
  const sorted = (rows: { _id?: string; trackerId?: string }[]) =>
    rows.sort((a, b) => String(a._id ?? a.trackerId).localeCompare(String(b._id ?? b.trackerId)))
  return {
    history: sorted(await allRows(service, '/location-histories', token)),
    transitions: sorted(await allRows(service, '/geofence-events', token)),
    positions: sorted((await positionsOf(service, token)).map(({ status: _status, ...position }) => position)),
  }
}

/** A tracker that was deleted and made anew: its position is older than what it had before. */
const remakeTracker = async (service: Service, token: string): Promise<void> => {
  const key = (await ask(service, 'POST', '/ingest-key', { token, body: { name: 'gateway', autoCreate: true } })).data
    .key
  const point = (agoMs: number, lat: number): Fix => ({
    externalId: 'remade',
    recordedAt: Date.now() - agoMs,
    lat,
    lng: 7,
  })
  await send(service, key, [point(60_000, 1), point(50_000, 2)])
  await until('its position', async () => (await positionsOf(service, token)).length === 1)
  const [{ trackerId }] = await positionsOf(service, token)
  await ask(service, 'DELETE', `/tracker/${trackerId}`, { token })
  await until('it to be forgotten', async () => (await positionsOf(service, token)).length === 0)
  await until('the key to make it anew', async () => {
    await send(service, key, [point(90_000, 4), point(80_000, 5)])
    return (await allPages(service, '/trackers', token)).length === 1
  })
  await until('its position', async () => (await positionsOf(service, token)).length === 1)
}

// biome-ignore lint/suspicious/noExplicitAny: rows as the API shows them
const positionsOf = async (service: Service, token: string): Promise<any[]> =>
  (await ask(service, 'GET', '/live-positions', { token })).data

const firstRevisions = async (data: string): Promise<number[]> => {
  const log = await openLmdbEventLog({ path: join(data, 'log'), clock: systemClock })
  const firsts = await Promise.all(
    Array.from(
      { length: PARTITIONS },
      async (_, partition) =>
        (await log.read(locationStream(partition), 0, 1))[0]?.revision ??
        (await log.head(locationStream(partition))) + 1,
    ),
  )
  await log.close()
  return firsts
}

const withTables = async <Result>(
  data: string,
  run: (tables: Awaited<ReturnType<typeof openLmdbTableStore>>) => Promise<Result>,
): Promise<Result> => {
  const tables = await openLmdbTableStore({ path: join(data, 'tables'), clock: systemClock })
  try {
    return await run(tables)
  } finally {
    await tables.close()
  }
}

test('what is rebuilt equals what was there, also from a truncated log; what was broken is reported and put right', {
  timeout: 900_000,
}, async (t) => {
  const data = folderOf(t)
  let service = await startService(data, FLAGS)
  t.teardown(() => service.kill())
  const day = await realDay(t, FIXES, Date.now())
  const { token, organizationId } = await signUp(service)
  const setting = await prepare(service, token, day, await openReceiver(t))
  const inOrder = { ...day, fixes: [...day.fixes].sort((a, b) => a.recordedAt - b.recordedAt) }
  const first = { ...day, fixes: inOrder.fixes.slice(0, BEFORE) }

  await send(service, setting.ingestKey, first.fixes)
  let trackers = await checkHistory(t, service, setting, first)
  let transitions = await checkTransitions(t, service, setting, first, trackers)
  const isDelivered = async () => {
    const runs = await allPages(service, '/automation-log', token)
    return runs.length >= transitions.length && runs.every(({ status }) => status === 'succeeded')
  }
  await until('webhooks', isDelivered)
  const other = await signUp(service, 'Other')
  await remakeTracker(service, other.token)
  await rebuildEach(t, data, 'before')
  t.match(await askControl(data, { command: 'rebuild', name: 'nothing' }), {
    ok: false,
    error: /no projection nothing; there are .*directory.*matcher/,
  })
  const before = await answersOf(service, token)

  const swept = (await askControl(data, { command: 'sweep' }))?.report as { partition: number; first: number }[]
  t.ok(swept.length > 0 && swept.every((one) => one.first > 0), `${swept.length} partitions were truncated`)
  t.equal(await service.stop(), 0)
  const firsts = await firstRevisions(data)
  t.same(
    swept.map(({ partition }) => firsts[partition]),
    swept.map((one) => one.first),
    'the log begins where the sweep said',
  )

  service = await startService(data, FLAGS)
  t.same(await answersOf(service, token), before, 'a truncated log answers the same')
  await rebuildEach(t, data, 'from a truncated log')
  await send(service, setting.ingestKey, inOrder.fixes.slice(BEFORE))
  trackers = await checkHistory(t, service, setting, inOrder)
  transitions = await checkTransitions(t, service, setting, inOrder, trackers)
  await until('webhooks', isDelivered)
  await rebuildEach(t, data, 'after more points')

  const whole = await answersOf(service, token)
  t.equal(await service.stop(), 0)
  const [broken] = await withTables(data, async (tables) => {
    await tables.declare(LATEST_POSITIONS)
    const rows: { scope: string; id: string; row: LatestPositionRow }[] = []
    for await (const row of tables.scanAll<LatestPositionRow>(LATEST_POSITIONS.name)) rows.push(row)
    const [{ scope, id, row }, lost] = rows
    await tables.commit([
      { table: LATEST_POSITIONS.name, scope, id, row: { ...row, lat: row.lat + 1 } },
      { table: LATEST_POSITIONS.name, scope, id: lost.id, row: null },
    ])
    return rows
  })
  const alone = await waymark('rebuild', 'latest-position', '--data', data, ...FLAGS)
  t.equal(alone.code, 1, `with no service running: ${alone.error}`)
  const report = JSON.parse(alone.out)
  t.equal(report.differing, 2, 'the changed row and the missing one')
  t.ok(
    report.differences.some(
      (one: { id: string; live: { lat: number }; rebuilt: { lat: number } }) =>
        one.id === broken.id && one.live.lat === one.rebuilt.lat + 1,
    ),
  )
  t.equal((await waymark('rebuild', 'latest-position', '--data', data, ...FLAGS)).code, 0, 'it is put right')
  t.match(await waymark('rebuild', 'nothing', '--data', data, ...FLAGS), { code: 2, error: /no projection nothing/ })

  // What was sent after the truncation: the log has it still.
  const young = `organizationId = '${organizationId}' AND recordedAt > fromUnixTimestamp64Milli(${inOrder.fixes[BEFORE].recordedAt}, 'UTC')`
  const pointsBefore = whole.history.length
  const history = await openChdbHistoryStore({
    path: join(data, 'history'),
    scratchPath: join(data, 'history-scratch'),
  })
  const [{ changed }] = await history.rows<{ changed: number }>(
    `SELECT count() AS changed FROM points FINAL WHERE ${young} AND intDiv(latE7, 100) % 4 < 2`,
  )
  await history.command(
    `ALTER TABLE points DELETE WHERE ${young} AND intDiv(latE7, 100) % 4 = 0 SETTINGS mutations_sync = 2`,
  )
  await history.command(
    `ALTER TABLE points UPDATE lngE7 = lngE7 + 1 WHERE ${young} AND intDiv(latE7, 100) % 4 = 1 SETTINGS mutations_sync = 2`,
  )
  await history.close()
  const repaired = await waymark('rebuild', 'location-history', '--data', data, ...FLAGS)
  t.equal(repaired.code, 1, repaired.error)
  const { missing, different, differences } = JSON.parse(repaired.out)
  t.ok(missing > 100 && different > 100, `${missing} points were missing, ${different} were changed`)
  t.same([missing + different, differences.length], [changed, 100])

  // Every table of positions and of the matcher is lost: the history, the snapshots and what the log has left bring them back.
  await withTables(data, async (tables) => {
    await tables.declare({ name: 'matcher_state', version: 1 })
    for (let partition = 0; partition < PARTITIONS; partition++) {
      await tables.reset([LATEST_POSITIONS.name], `latest-position-${partition}`)
      await tables.reset(['matcher_state'], `matcher-${partition}`)
    }
    await tables.declare(LOG_CONSUMERS)
    await tables.commit([
      { table: LOG_CONSUMERS.name, scope: NO_ORGANIZATION, id: 'heat-map', row: { name: 'heat-map', registeredAt: 0 } },
    ])
  })
  service = await startService(data, FLAGS)
  t.match(await positionsOf(service, other.token), [{ lat: 5 }], 'what a deleted tracker had does not come back')
  const again = await answersOf(service, token)
  t.same(again.positions, whole.positions, 'positions come back')
  t.same(again.transitions, whole.transitions, 'nothing is decided twice')
  t.equal(again.history.length, pointsBefore)
  t.same(again.history, whole.history, 'the history is put right')
  await rebuildEach(t, data, 'after the loss of tables')

  // A consumer that no longer exists holds the log back until it is forgotten.
  t.same((await askControl(data, { command: 'sweep' }))?.report, [], 'nothing is truncated')
  await until('it to be named', () =>
    service.lines.some((line) => line.includes('holds the location log back') && line.includes('heat-map')),
  )
  t.match(
    (await call(service, 'GET', '//metrics')).text,
    /waymark_consumer_lag_events\{consumer="heat-map",partition="0"\}/,
  )
  t.match((await waymark('doctor', '--data', data)).out, /heat-map is [1-9]\d* events and .* behind/)
  t.match(await waymark('doctor', '--data', data, '--forget', 'location-history'), {
    code: 2,
    error: /exists and would lose points/,
  })
  t.match(await waymark('doctor', '--data', data, '--forget', 'nobody'), { code: 2, error: /heat-map/ })
  t.match(await waymark('doctor', '--data', data, '--forget', 'heat-map'), { code: 0, out: /no longer holds/ })
  t.notMatch((await call(service, 'GET', '//metrics')).text, /heat-map/)
  t.match(await askControl(data, { command: 'sweep' }), { report: [{ partition: Number }] }, 'and lets go')
  t.equal((await ask(service, 'GET', '/user', { token })).status, true)
  t.equal(await service.stop(), 0)
})
