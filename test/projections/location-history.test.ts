import { join } from 'node:path'
import { test, type Test } from 'tap'
import { DecisionsHistory } from '../../projections/decisions-history.ts'
import { historyCheckpoint } from '../../projections/history-checkpoints.ts'
import { LOCATION_HISTORY, LocationHistory } from '../../projections/location-history.ts'
import { openSchema } from '../../src/engines/clickhouse-sql/history-schema.ts'
import { openChdbHistoryStore } from '../../src/engines/chdb/chdb-history.ts'
import type { HistoryStore } from '../../src/engines/history-store.ts'
import { openLmdbTableStore } from '../../src/engines/lmdb-tables/lmdb-tables.ts'
import type { TableStore } from '../../src/engines/table-store.ts'
import type { Decision, Transition } from '../../src/features/transitions/events.ts'
import { readTransitions } from '../../src/features/transitions/history-query.ts'
import { transitionShown } from '../../src/features/transitions/views.ts'
import { Failure } from '../../src/kernel/errors.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { entriesOf, uuidOf, type PlainPoint } from '../support/trace-batches.ts'
import { noErasures } from '../support/history-writers.ts'
import { folderOf } from '../support/folder-of.ts'
import { until } from '../support/service.ts'

const ORGANIZATION = uuidOf('organization')
const NOW = Date.parse('2026-06-01T00:00:00Z')

const engines = async (t: Test): Promise<{ history: HistoryStore; tables: TableStore; clock: FakeClock }> => {
  const folder = folderOf(t)
  const clock = new FakeClock(NOW)
  const history = await openChdbHistoryStore({ path: join(folder, 'data'), scratchPath: join(folder, 'scratch') })
  const tables = await openLmdbTableStore({ path: join(folder, 'tables'), clock })
  t.teardown(async () => {
    await history.close()
    await tables.close()
  })
  await openSchema(history, { days: 36_500, runDays: 36_500 })
  return { history, tables, clock }
}

/** 5,000 points of 50 trackers. */
const points = Array.from(
  { length: 5_000 },
  (_, i): PlainPoint => ({
    organizationId: ORGANIZATION,
    trackerId: uuidOf(`tracker ${i % 50}`),
    recordedAt: NOW - 5_000_000 + i * 1_000,
    latE7: i,
    lngE7: -i,
    flags: 0,
  }),
)

const count = async (history: HistoryStore): Promise<number> =>
  (await history.rows<{ n: number }>('SELECT count() AS n FROM points FINAL'))[0].n

test('every point is in the history before the checkpoint says so, also when inserts fail meanwhile', async (t) => {
  const { history, tables, clock } = await engines(t)
  let down = 3
  const failures: unknown[] = []
  const flaky: HistoryStore = Object.create(history, {
    insert: {
      value: async (...insert: Parameters<HistoryStore['insert']>) => {
        if (down-- > 0) throw new Failure('engine_down')
        return history.insert(...insert)
      },
    },
  }) as HistoryStore
  const open = (): LocationHistory =>
    new LocationHistory({
      history: flaky,
      tables,
      clock,
      epoch: 0,
      erasures: noErasures(),
      blockRowsMax: 700,
      onFailure: (error) => failures.push(error),
    })
  const entries = entriesOf(points, 4)
  const first = open()
  for (let partition = 0; partition < 4; partition++) t.equal(await first.load(partition), -1)
  const pumping = setInterval(() => clock.advance(10_000), 5)
  for (const entry of entries) await first.handle(entry, entry.partition)
  await first.flush()
  clearInterval(pumping)
  t.equal(failures.length, 3)
  t.equal(await count(history), points.length)
  const heads = Object.fromEntries(entries.map(({ partition, revision }) => [partition, revision]))
  t.same(await historyCheckpoint(tables, LOCATION_HISTORY, 4), heads)
  t.match(first.stats(), { rowsInserted: points.length, rowsWaiting: 0, failures: 3 })
  await first.close()

  const second = open()
  for (const partition of [0, 1, 2, 3])
    t.equal(await second.load(partition), heads[partition], 'a restart goes on where it was')
  for (const entry of entries) await second.handle(entry, entry.partition)
  await second.close()
  t.equal(await count(history), points.length, 'what is inserted again changes nothing')
})

test('while the history is away, two blocks at most wait in memory; the rest stays in the log', async (t) => {
  const { history, tables, clock } = await engines(t)
  let isAway = true
  const away: HistoryStore = Object.create(history, {
    insert: {
      value: async (...insert: Parameters<HistoryStore['insert']>) => {
        if (isAway) throw new Failure('engine_down')
        return history.insert(...insert)
      },
    },
  })
  const consumer = new LocationHistory({
    history: away,
    tables,
    clock,
    epoch: 0,
    erasures: noErasures(),
    blockRowsMax: 700,
    onFailure: () => undefined,
  })
  const entries = entriesOf(points, 4, 100)
  for (let partition = 0; partition < 4; partition++) await consumer.load(partition)
  let handled = 0
  const feeding = (async () => {
    for (const entry of entries) {
      await consumer.handle(entry, entry.partition)
      handled++
    }
  })()
  await until('attempts', () => {
    clock.advance(10_000)
    return consumer.stats().failures > 5
  })
  const { rowsWaiting } = consumer.stats()
  t.ok(rowsWaiting >= 700 && rowsWaiting <= 2 * (700 + 100), `${rowsWaiting} rows wait`)
  t.ok(handled < entries.length / 2, `${handled} of ${entries.length} batches were taken`)

  isAway = false
  const pumping = setInterval(() => clock.advance(10_000), 5)
  await feeding
  await consumer.flush()
  clearInterval(pumping)
  t.equal(await count(history), points.length, 'and then all is there')
  await consumer.close()
})

test('a block that is not full is inserted when it is old enough', async (t) => {
  const { history, tables, clock } = await engines(t)
  const consumer = new LocationHistory({
    history,
    tables,
    clock,
    epoch: 0,
    erasures: noErasures(),
    onFailure: (error) => t.fail(String(error)),
  })
  await consumer.load(0)
  for (const entry of entriesOf(points.slice(0, 100), 1)) await consumer.handle(entry, 0)
  t.equal(consumer.stats().rowsWaiting, 100)
  clock.advance(500)
  await consumer.flush()
  t.equal(await count(history), 100)
  await consumer.close()
})

test('transitions and trips are read as they were decided', async (t) => {
  const { history, tables, clock } = await engines(t)
  const trackerId = uuidOf('tracker')
  const point = { recordedAt: NOW, lat: 52.1, lng: 21.2, speed: 3.5 }
  const transition = (name: string, type: 'entry' | 'leave', at: number, geofence = 'fence'): Decision => ({
    kind: 'transition',
    _id: uuidOf(name),
    organizationId: ORGANIZATION,
    trackerId,
    geofenceId: uuidOf(geofence),
    geofenceGroupId: uuidOf('group'),
    type,
    at,
    cause: 'point',
    point,
  })
  const trip = (kind: 'tripStarted' | 'tripFinished', finishedAt?: number): Decision => ({
    kind,
    _id: uuidOf('trip'),
    organizationId: ORGANIZATION,
    trackerId,
    explicit: true,
    startedAt: NOW,
    finishedAt,
    distance: finishedAt === undefined ? 0 : 1234.5,
    point,
  })
  const decided = [
    [transition('a', 'entry', NOW), trip('tripStarted')],
    [transition('b', 'leave', NOW + 1), transition('c', 'entry', NOW + 1, 'other')],
    [trip('tripFinished', NOW + 60_000), transition('d', 'leave', NOW + 1)],
  ]
  const open = (): DecisionsHistory =>
    new DecisionsHistory({
      history,
      tables,
      clock,
      epoch: 0,
      erasures: noErasures(),
      onFailure: (error) => t.fail(String(error)),
    })
  const feed = async (which: readonly number[]): Promise<void> => {
    const consumer = open()
    await consumer.load(0)
    for (const i of which)
      await consumer.handle(
        {
          revision: i,
          decided: { sourceRevision: i, ordinal: 0, sourceLoggedAt: NOW, decisions: decided[i] },
        },
        0,
      )
    await consumer.close()
  }
  const scope = { organizationId: ORGANIZATION, trackerIds: 'all' as const }
  const read = async (
    question: object,
  ): Promise<{ data: { _id: string; at: string; point: object }[]; limit: number; nextCursor: string | null }> => {
    const chunks: Uint8Array[] = []
    for await (const chunk of (await readTransitions(history, { ...scope, format: 'json', ...question })).body)
      chunks.push(chunk)
    return JSON.parse(Buffer.concat(chunks).toString())
  }

  await feed([0, 1])
  const trips = (): Promise<object[]> => history.rows('SELECT _id, explicit, finishedAtMs, distance FROM trips FINAL')
  t.match(await trips(), [{ _id: uuidOf('trip'), explicit: 1, finishedAtMs: 0 }], 'a trip from its start on')
  await feed([2])
  await feed([0, 1, 2])
  const { data, limit } = await read({})
  t.equal(limit, 500, 'the limit in force')
  t.same(
    data.map(({ _id }) => _id),
    ['d', 'c', 'b', 'a'].map(uuidOf),
    'newest first, equal times in the order logged',
  )
  t.match(data[3], {
    at: '2026-06-01T00:00:00.000Z',
    point: { recordedAt: '2026-06-01T00:00:00.000Z', lat: 52.1, speed: 3.5 },
  })
  const [shown] = decided[0] as Transition[]
  t.same(data[3], JSON.parse(JSON.stringify(transitionShown(shown))), 'as the live channel and the back-test show it')
  const page = await read({ limit: 3 })
  t.match(page, { page: null, limit: 3 })
  t.same(
    (await read({ limit: 3, cursor: page.nextCursor })).data.map(({ _id }) => _id),
    [uuidOf('a')],
  )
  t.same(
    (await read({ geofenceIds: [uuidOf('other')] })).data.map(({ _id }) => _id),
    [uuidOf('c')],
  )
  t.same((await read({ type: 'leave', to: NOW + 1 })).data.length, 2)
  t.same((await read({ trackerIds: [uuidOf('no such')] })).data, [])
  t.match(
    await trips(),
    [{ _id: uuidOf('trip'), finishedAtMs: NOW + 60_000, distance: 1234.5 }],
    'one trip, whatever came twice',
  )
})
