import { join } from 'node:path'
import { test, type Test } from 'tap'
import { openChdbHistoryStore } from '../../src/engines/chdb/chdb-history.ts'
import { RUNS } from '../../src/engines/clickhouse-sql/history-tables.ts'
import { openSchema } from '../../src/engines/clickhouse-sql/history-schema.ts'
import { HistoryRows } from '../../src/engines/clickhouse-sql/rows.ts'
import { type RunChange, runsBlock } from '../../src/engines/clickhouse-sql/runs.ts'
import type { Find } from '../../src/engines/table-store.ts'
import type { TripChange } from '../../src/features/transitions/events.ts'
import { tripRow, type TripRow } from '../../src/features/trips/views.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { insertDecided } from '../support/history-writers.ts'
import { folderOf } from '../support/folder-of.ts'
import { seeded } from '../support/random.ts'

const DAY_MS = 86_400_000
const NOW = Date.parse('2026-06-01T00:00:00Z')

const open = async (t: Test) => {
  const folder = folderOf(t)
  const history = await openChdbHistoryStore({ path: join(folder, 'data'), scratchPath: join(folder, 'scratch') })
  t.teardown(() => history.close())
  await openSchema(history, { days: 36_500, runDays: 36_500 })
  return { history, rows: new HistoryRows(history, new FakeClock(NOW)) }
}

/** All pages of a question, each answered with the number of all rows. */
const walk = async (rows: HistoryRows, table: string, scope: string, question: Find) => {
  const found: { id: string; row: object }[] = []
  const totals = new Set<number | undefined>()
  for (let after: string | undefined; ; ) {
    const page = await rows.find(table, scope, { ...question, total: true, after })
    found.push(...page.rows)
    totals.add(page.total)
    if (page.next === null) return { found, totals: [...totals] }
    after = page.next
  }
}

test('trips are found as every one of them says, whatever is asked', async (t) => {
  const { history, rows } = await open(t)
  const random = seeded(5)
  const all = new Map<string, TripRow>()
  const changes: TripChange[] = []
  for (let i = 0; i < 400; i++) {
    // Many on some days, none on others; some start at the same moment, some ahead of the clock.
    const startedAt = NOW + DAY_MS - Math.floor(random() ** 3 * 400) * DAY_MS - Math.floor(random() * 20) * 60_000
    const finishedAt = random() < 0.3 ? undefined : startedAt + 1_000 + Math.floor(random() * 3_600_000)
    const trip = {
      _id: `trip ${String(i).padStart(3, '0')}`,
      organizationId: i % 10 === 0 ? 'other' : 'o',
      trackerId: `tracker ${i % 7}`,
      explicit: i % 3 === 0,
      startedAt,
      point: { recordedAt: startedAt, lat: 0, lng: 0 },
    }
    changes.push({ ...trip, kind: 'tripStarted', distance: 0 })
    if (finishedAt !== undefined) changes.push({ ...trip, kind: 'tripFinished', finishedAt, distance: i * 1.5 })
    if (trip.organizationId === 'o')
      all.set(trip._id, tripRow({ ...trip, finishedAt, distance: finishedAt === undefined ? 0 : i * 1.5 }))
  }
  for (const [token, from] of [
    ['a', 0],
    ['b', 100],
    ['again', 50],
  ] as const) {
    const decisions = changes.slice(from, token === 'a' ? 200 : undefined)
    const decided = { sourceRevision: 0, ordinal: 0, sourceLoggedAt: NOW, decisions }
    await insertDecided(history, { revision: from, decided }, token)
  }
  const questions: Omit<Find, 'limit'>[] = []
  const wheres: NonNullable<Find['where']>[] = [
    {},
    { trackerId: ['tracker 1', 'tracker 2'] },
    { state: 'running' },
    { explicit: true, state: 'finished' },
  ]
  for (const order of ['asc', 'desc'] as const)
    for (const where of wheres)
      for (const range of [
        {},
        { from: NOW - 40 * DAY_MS },
        { to: NOW - 3 * DAY_MS },
        { from: NOW - 90 * DAY_MS, to: NOW - 20 * DAY_MS },
      ])
        questions.push({ where, range: { field: 'startedAt', ...range }, sort: { field: 'startedAt', order } })
  for (const { where = {}, range, sort } of questions) {
    const expected = [...all.values()]
      .filter((row) => Object.entries(where).every(([field, value]) => [value].flat().includes(row[field] as string)))
      .filter(({ startedAt }) => startedAt >= Number(range?.from ?? 0) && startedAt <= Number(range?.to ?? NOW * 2))
      .sort((a, b) => a.startedAt - b.startedAt || (a._id < b._id ? -1 : 1))
    if (sort?.order === 'desc') expected.reverse()
    const { found, totals } = await walk(rows, 'trips', 'o', { where, range, sort, limit: 83 })
    const what = JSON.stringify({ where, range, sort })
    t.strictSame(
      found.map(({ row }) => row),
      expected,
      what,
    )
    t.same(totals, [expected.length], what)
    const page = await rows.find('trips', 'o', { where, range, sort, limit: 5, offset: 7 })
    t.same(
      page.rows.map(({ id }) => id),
      expected.slice(7, 12).map(({ _id }) => _id),
      `a page of ${what}`,
    )
  }
  const known = [...all.keys()][3]
  t.same(await rows.getMany('trips', 'o', ['none', known]), [undefined, all.get(known)])
  t.equal(await rows.get('trips', 'other', known), undefined, 'of another organization')
  t.same(await rows.find('trips', 'nobody', { limit: 3, total: true }), { rows: [], total: 0, next: null })
  for (const wrong of [
    { text: 'x' },
    { sort: { field: 'distance', order: 'asc' } },
    { where: { unknown: 1 } },
  ] as Partial<Find>[])
    await t.rejects(rows.find('trips', 'o', { limit: 1, ...wrong }), Error)
  await t.rejects(rows.find('nothing', 'o', { limit: 1 }), Error)
  for (const after of ['x', '[]', '[1]', '["1","x"]', '[1e300,"x"]', '[1.5,"x"]', '{}', '[1,"x\\"]'])
    await t.rejects(rows.find('trips', 'o', { limit: 1, after }), { code: 'invalid' }, after)
})

test('a run is what all its rows say together, in whatever order and however often they come', async (t) => {
  const { history, rows } = await open(t)
  const createdAt = NOW - DAY_MS
  const run = { organizationId: 'o', _id: 'r', createdAt }
  const at = (revision: number, ordinal = 0) => ({ at: { epoch: 0, revision, ordinal } })
  const owed = { automationId: 'a', subjectId: 't', partition: 3, sequence: 77, trigger: '{"event":"onStartTrip"}' }
  const attempt = (no: number, statusCode: number) => JSON.stringify({ at: NOW - no, statusCode, durationMs: 5 })
  const changes: RunChange[] = [
    { ...run, ...at(9), status: 'pending', owed },
    { ...run, ...at(10, 4), status: 'pending', dueAt: NOW + 50, attempt: attempt(1, 500) },
    { ...run, ...at(255), status: 'pending', dueAt: NOW + 90, attempt: attempt(2, 503) },
    { ...run, ...at(4_096, 1), status: 'dead', attempt: attempt(3, 410) },
    { ...run, _id: 's', ...at(9, 1), status: 'skipped', reason: 'historical', owed: { ...owed, sequence: 78 } },
  ]
  for (const [i, order] of [[3, 1, 4], [0], [2, 0, 1], [3]].entries())
    await history.insert(RUNS, runsBlock(order.map((no) => changes[no] as RunChange)), `insert ${i}`)
  const row = {
    _id: 'r',
    organizationId: 'o',
    automationId: 'a',
    subjectId: 't',
    partition: 3,
    sequence: 77,
    trigger: { event: 'onStartTrip' },
    status: 'dead',
    attempts: [1, 2, 3].map((no) => JSON.parse(attempt(no, [500, 503, 410][no - 1] as number))),
    createdAt,
  }
  t.strictSame(await rows.get('automationRuns', 'o', 'r'), row)
  const found = await rows.find('automationRuns', 'o', { where: { automationId: 'a', status: ['dead'] }, limit: 5 })
  t.strictSame(
    found.rows.map(({ row: one }) => one),
    [row],
  )
  t.match(await rows.get('automationRuns', 'o', 's'), { status: 'skipped', reason: 'historical', attempts: [] })
  await history.insert(RUNS, runsBlock([{ ...run, ...at(5_000), status: 'pending', dueAt: NOW + 7 }]), 'reopened')
  t.match(await rows.get('automationRuns', 'o', 'r'), { status: 'pending', dueAt: NOW + 7, attempts: { length: 3 } })
  await history.command(`OPTIMIZE TABLE ${RUNS} FINAL`)
  t.match(await rows.get('automationRuns', 'o', 'r'), {
    status: 'pending',
    dueAt: NOW + 7,
    attempts: { length: 3 },
    ...{ sequence: 77 },
  })
})
