import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { Erased, HistoryErasures } from '../../projections/erasures.ts'
import { rebuildHistory } from '../../projections/history-rebuild.ts'
import { decodeRuns, RUNS_HISTORY, runBuffer, RunsHistory } from '../../projections/runs-history.ts'
import { openChdbHistoryStore } from '../../src/engines/chdb/chdb-history.ts'
import { RUNS } from '../../src/engines/clickhouse-sql/history-tables.ts'
import { openSchema } from '../../src/engines/clickhouse-sql/history-schema.ts'
import { HistoryRows } from '../../src/engines/clickhouse-sql/rows.ts'
import { runIdOf, type RunTrigger } from '../../src/features/automations/events.ts'
import { encodeJson, type RecordedEvent } from '../../src/kernel/event.ts'
import { folderOf } from '../support/folder-of.ts'
import { openServices } from '../support/open-services.ts'

const ORG = 'o'
const trigger = (no: number): RunTrigger => ({
  sourceId: `transition ${no}`,
  event: 'onGeofenceEntry',
  organizationId: ORG,
  subject: { type: 'tracker', id: `t${no}` },
  at: 1_000 + no,
})

const open = async (t: Test) => {
  const folder = folderOf(t)
  const services = await openServices(folder)
  const history = await openChdbHistoryStore({ path: join(folder, 'data'), scratchPath: join(folder, 'scratch') })
  t.teardown(() => services.close())
  t.teardown(() => history.close())
  await openSchema(history, { days: 36_500, runDays: 36_500 })
  const events: RecordedEvent[] = []
  /** What the stream of partition 2 has next. */
  const log = (type: string, data: object): void => {
    const revision = events.length
    const loggedAt = services.clock.now() + revision * 1_000
    const event = { id: `${revision}`, type, data: encodeJson(data), isJson: true, metadata: {} }
    events.push({ ...event, stream: 'automation-runs-2', revision, position: revision, loggedAt })
  }
  const onFailure = (error: unknown) => t.fail(String(error))
  const erasures = new HistoryErasures({ ...services, history })
  /** As a process that goes on behind the checkpoint and inserts after each event, or only at the end. */
  const follow = async ({ eachAlone = false } = {}) => {
    const consumer = new RunsHistory({ ...services, history, erasures, epoch: 0, onFailure })
    const from = await consumer.load(2)
    for (const event of events.slice(from + 1)) {
      await consumer.handle(decodeRuns(event), 2)
      if (eachAlone) await consumer.flush()
    }
    await consumer.close()
  }
  const runs = new HistoryRows(history, services.clock)
  const all = async () =>
    (await runs.find('automationRuns', ORG, { limit: 100, sort: { field: 'createdAt', order: 'asc' } })).rows
  return { ...services, history, events, log, follow, runs, all }
}

const owe = (log: (type: string, data: object) => void, no: number, firstSequence: number, owedAt: number): string => {
  const owed = [{ trigger: trigger(no), runs: [{ automationId: 'a' }, { automationId: 'b', reason: 'loop' }] }]
  log('runsOwed.v2', { source: 'transitions', sourceAt: no, complete: true, owedAt, firstSequence, owed })
  return runIdOf(trigger(no), 'a')
}

const attempt = (runId: string, at: number, status: string, more: object = {}) => ({
  runId,
  automationId: 'a',
  organizationId: ORG,
  at,
  durationMs: 3,
  statusCode: status === 'succeeded' ? 200 : 500,
  failures: 1,
  status,
  ...more,
})

for (const eachAlone of [false, true])
  test(`runs are listed as the log tells them, ${eachAlone ? 'each event' : 'all events'} inserted alone`, async (t) => {
    const { log, follow, all, tables, history } = await open(t)
    const first = owe(log, 1, 10, 5_000)
    const second = owe(log, 2, 12, 6_000)
    // The clock went back between the two attempts of the second.
    log('attemptsMade.v1', {
      attempts: [
        attempt(first, 100, 'pending', { owedAt: 5_000, dueAt: 900 }),
        attempt(second, 300, 'dead', { owedAt: 6_000 }),
      ],
    })
    log('runReopened.v2', {
      runId: second,
      automationId: 'a',
      sequence: 12,
      failures: 1,
      owedAt: 6_000,
      dueAt: 7,
      trigger: trigger(2),
    })
    log('attemptsMade.v1', { attempts: [attempt(second, 200, 'succeeded', { owedAt: 6_000 })] })
    const runs = [{ runId: first, owedAt: 5_000 }]
    log('runsSkipped.v2', { automationId: 'a', organizationId: ORG, reason: 'deactivated', runs })
    log('partitionTaken.v1', {})
    await follow({ eachAlone })
    const told = await all()
    const byId = new Map(told.map(({ id, row }) => [id, row]))
    t.equal(told.length, 4)
    t.match(byId.get(first), { sequence: 10, status: 'skipped', reason: 'deactivated', attempts: { length: 1 } })
    t.match(byId.get(second), {
      subjectId: 't2',
      sequence: 12,
      status: 'succeeded',
      trigger: trigger(2),
      createdAt: 6_000,
    })
    t.strictSame(
      (byId.get(second) as { attempts: { at: number }[] }).attempts.map(({ at }) => at),
      [300, 200],
    )

    // A history that knows no place in the log any more takes all again.
    await tables.reset([], `${RUNS_HISTORY}-2`)
    await follow({ eachAlone: !eachAlone })
    t.strictSame(await all(), told, 'and nothing changes')
    await history.command(`OPTIMIZE TABLE ${RUNS} FINAL`)
    t.strictSame(await all(), told, 'nor by merging')
  })

test('a rebuild puts back what is missing or different, and leaves what the log has let go of', async (t) => {
  const { log, events, follow, all, history } = await open(t)
  const [first, second, third] = [owe(log, 1, 10, 5_000), owe(log, 2, 12, 6_000), owe(log, 3, 14, 7_000)]
  log('attemptsMade.v1', {
    attempts: [first, second].map((id, i) => attempt(id, 100, 'succeeded', { owedAt: 5_000 + i * 1_000 })),
  })
  await follow()
  const whole = await all()
  const rebuild = () =>
    rebuildHistory(
      { history, mark: randomUUID(), since: 0, eraseAgain: async () => {} },
      RUNS_HISTORY,
      [RUNS],
      runBuffer(history, 0, new Erased()),
      left(),
    )
  async function* left() {
    for (const event of events.slice(1)) yield { partition: 2, entry: decodeRuns(event) } // the first is truncated
  }
  t.match(await rebuild(), { rows: 5, missing: 0, different: 0 })
  await history.command(`ALTER TABLE ${RUNS} DELETE WHERE _id IN {ids:Array(String)} SETTINGS mutations_sync = 1`, {
    ids: [third],
  })
  await history.command(`ALTER TABLE ${RUNS} UPDATE state = '0' WHERE _id = {id:String} SETTINGS mutations_sync = 1`, {
    id: second,
  })
  const report = await rebuild()
  t.match(report, { rows: 5, missing: 1, different: 1, differing: 2 })
  t.match(
    report.differences
      ?.map(({ id }) => id)
      .sort()
      .join(),
    new RegExp(second),
  )
  t.strictSame(await all(), whole)
  t.match(await rebuild(), { missing: 0, different: 0 })
})
