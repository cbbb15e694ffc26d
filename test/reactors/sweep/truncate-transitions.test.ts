import { join } from 'node:path'
import { test, type Test } from 'tap'
import { TRANSITIONS, TRIPS } from '../../../src/engines/clickhouse-sql/history-tables.ts'
import { openSchema } from '../../../src/engines/clickhouse-sql/history-schema.ts'
import { openChdbHistoryStore } from '../../../src/engines/chdb/chdb-history.ts'
import { type EventLog, eventsOf } from '../../../src/engines/event-log.ts'
import { transitionStream } from '../../../src/features/transitions/events.ts'
import { PartitionFeed } from '../../../src/kit/consumers/partition-feed.ts'
import { ALL_SEEN } from '../../../src/live/cursor.ts'
import { replayEvents } from '../../../src/live/resume.ts'
import { decideAgain } from '../../../src/reactors/matcher/decide-again.ts'
import { FenceBook } from '../../../src/reactors/matcher/fence-book.ts'
import { dispatcherOf } from '../../../src/reactors/dispatch/owed-rows.ts'
import { decodeTransition } from '../../../src/reactors/dispatch/owe.ts'
import { matcherCheckpoint } from '../../../src/features/transitions/events.ts'
import { MATCHER_STATE } from '../../../src/reactors/matcher/store.ts'
import { locationSweep } from '../../../src/reactors/sweep/truncate-locations.ts'
import { transitionSweep } from '../../../src/reactors/sweep/truncate-transitions.ts'
import { transitionsApplied } from '../../../src/operations/upkeep.ts'
import { Erased } from '../../../projections/erasures.ts'
import { decisionBuffer, DECISIONS_HISTORY, DecisionsHistory } from '../../../projections/decisions-history.ts'
import { storeCheckpoint } from '../../support/store-checkpoint.ts'
import { rebuildHistory } from '../../../projections/history-rebuild.ts'
import { noErasures } from '../../support/history-writers.ts'
import { folderOf } from '../../support/folder-of.ts'
import { MatcherWorld, ORG } from '../../support/matcher-world.ts'
import { until } from '../../support/service.ts'
import { failOnErrors } from '../../support/open-services.ts'
import { batchOf, uuidOf } from '../../support/trace-batches.ts'
import { ringOf } from '../../support/ring.ts'

const DAY_MS = 86_400_000
const KEEP_MS = 365 * DAY_MS
const TRACKERS = 20
const STEPS = 40

/** Two partitions with the same walks through a square, old ones and, more than a year later, young ones; the first one has its matcher. */
const openYears = async (t: Test) => {
  const folder = folderOf(t)
  const world = await MatcherWorld.open(folder)
  t.teardown(() => world.close())
  const { log, clock } = world
  const group = await world.putGroup('group', {})
  const square = {
    type: 'Polygon' as const,
    coordinates: [ringOf(0, 0, 0.001, 0.01)],
  }
  const fence = await world.putFence(uuidOf('fence'), { shape: square, geofenceGroupId: 'group' })
  for (const partition of [0, 1])
    await world.announce(partition, { sourcePosition: fence.position, geofences: [fence], groups: [group] })
  const walk = async (): Promise<void> => {
    for (let i = 0; i < STEPS; i++) {
      clock.advance(10_000)
      const fixOf = (tracker: number) => ({
        organizationId: ORG,
        trackerId: uuidOf(`tracker ${tracker}`),
        recordedAt: clock.now(),
        latE7: 5_000 + tracker,
        lngE7: Math.round(Math.sin(i / 4 + tracker) * 20_000),
        flags: 0,
      })
      const batch = batchOf(Array.from({ length: TRACKERS }, (_, tracker) => fixOf(tracker)))
      for (const partition of [0, 1]) await world.points(partition, batch)
    }
  }
  const matcher = world.matcher()
  await walk()
  await world.run(matcher, 0)
  await matcher.save(0) // once its decisions are in the log
  const oldEnd = await log.head(transitionStream(0))
  clock.advance(400 * DAY_MS)
  await walk()
  await world.run(matcher, 0) // takes the partition anew
  await matcher.save(0)
  return { world, folder, matcher, walk, oldEnd }
}

const firstOf = async (log: EventLog): Promise<number> => (await log.read(transitionStream(0), 0, 1))[0].revision

test('what is old leaves the log when every consumer has stored it; the last event never does', async (t) => {
  const { world, matcher, oldEnd } = await openYears(t)
  t.teardown(() => matcher.close())
  const { log, tables, clock } = world
  const head = await log.head(transitionStream(0))
  const at = async (revision: number): Promise<void> => {
    await storeCheckpoint(tables, `${DECISIONS_HISTORY}-0`, { 0: revision })
    await storeCheckpoint(tables, dispatcherOf(0), { source: revision })
  }
  const sweep = transitionSweep(world, {
    keepMs: KEEP_MS,
    appliedAt: (partition) => transitionsApplied(tables, partition),
  })

  t.equal(await sweep.sweep(0), undefined, 'nobody has stored anything')
  await at(head)
  t.equal(await sweep.sweep(0), undefined, 'the location log has all that led to it')
  const locations = locationSweep(world, {
    keepMs: 7 * DAY_MS,
    consumersAt: async () => [STEPS],
    snapshot: (partition) => matcher.snapshot(partition),
  })
  t.equal(await locations.sweep(0), STEPS + 1)

  await storeCheckpoint(tables, `${DECISIONS_HISTORY}-0`, { 0: 2 })
  t.equal(await sweep.sweep(0), 3, 'the history holds it back')
  await at(head)
  await storeCheckpoint(tables, dispatcherOf(0), { source: 5 })
  t.equal(await sweep.sweep(0), 6, 'the dispatcher holds it back')
  t.equal(await firstOf(log), 6)
  await at(head)
  t.equal(await sweep.sweep(0), oldEnd + 1, 'what is young stays')
  t.equal(await sweep.sweep(0), undefined, 'nothing further')

  clock.advance(400 * DAY_MS)
  t.equal(await sweep.sweep(0), undefined, 'the location log still has what led to the young ones')
  await log.erase('locations-0')
  t.equal(await sweep.sweep(0), head, 'the last event stays')
  t.equal(await sweep.sweep(0), undefined)
  t.equal(await log.head(transitionStream(0)), head)
})

test('a truncated stream of transitions restarts, rebuilds and resumes', async (t) => {
  const { world, folder, matcher, walk, oldEnd } = await openYears(t)
  const { log, tables, clock } = world
  const historyStore = await openChdbHistoryStore({
    path: join(folder, 'history'),
    scratchPath: join(folder, 'scratch'),
  })
  t.teardown(() => historyStore.close())
  await openSchema(historyStore, { days: 3_650, runDays: 3_650 })
  const openHistory = async () => {
    const consumer = new DecisionsHistory({
      history: historyStore,
      tables,
      clock,
      epoch: 0,
      erasures: noErasures(),
      onFailure: (error) => t.fail(String(error)),
    })
    const feed = new PartitionFeed({
      log,
      streamOf: transitionStream,
      decode: decodeTransition,
      logger: failOnErrors(t),
    })
    await feed.add(consumer, 0)
    await until('all to be stored', async () => {
      await consumer.flush()
      return (await feed.lags(0)).every(({ events }) => events === 0)
    })
    return { close: () => Promise.all([feed.close(), consumer.close()]) }
  }
  const rowsOf = async () => historyStore.rows<object>('SELECT * FROM transitions FINAL ORDER BY ALL', {})
  let history = await openHistory()
  const historyBefore = await rowsOf()
  t.ok(historyBefore.length > 100, `${historyBefore.length} transitions`)

  await locationSweep(world, {
    keepMs: 7 * DAY_MS,
    consumersAt: async () => [STEPS],
    snapshot: (partition) => matcher.snapshot(partition),
  }).sweep(0)
  const applied = await log.head(transitionStream(0))
  t.equal(await transitionSweep(world, { keepMs: KEEP_MS, appliedAt: async () => applied }).sweep(0), oldEnd + 1)

  const signal = new AbortController().signal
  t.match(
    await decideAgain({ ...world, book: new FenceBook(log) }, 0, matcher.storedThrough(0), signal),
    { differing: 0 },
    'the matcher decides the same again',
  )
  const parts = { history: historyStore, mark: '1', since: clock.now() - KEEP_MS, eraseAgain: async () => {} }
  async function* entries() {
    for await (const event of eventsOf(log, transitionStream(0), 0, applied, signal))
      yield { partition: 0, entry: decodeTransition(event) }
  }
  t.match(
    await rebuildHistory(parts, 'transitions', [TRANSITIONS, TRIPS], decisionBuffer(0, new Erased()), entries()),
    {
      missing: 0,
      different: 0,
    },
  )

  // A history that knows no place in the log any more takes what is left and loses nothing.
  await history.close()
  await tables.reset([], `${DECISIONS_HISTORY}-0`)
  history = await openHistory()
  t.same(await rowsOf(), historyBefore)
  await history.close()

  const vector = (revision: number) => [{ revision, seen: ALL_SEEN }]
  const missed = async (from: number) => {
    const events: unknown[] = []
    for await (const event of replayEvents(
      log,
      ORG,
      vector(from),
      vector(applied),
      (decision) => decision as never,
      new AbortController().signal,
    ))
      events.push(event)
    return events
  }
  t.same(await missed(oldEnd - 1), [undefined], 'a cursor from before is told of a gap')
  const since = await missed(oldEnd)
  t.ok(since.length > 50 && !since.includes(undefined), 'one from right after hears all that is left')

  // The tables are lost, and with them where the matcher stood; it begins from its snapshot.
  await matcher.drop(0)
  await tables.reset([MATCHER_STATE.name], matcherCheckpoint(0))
  await walk()
  const again = world.matcher()
  await world.run(again, 0)
  await again.close()
  const calm = world.matcher()
  await world.run(calm, 1)
  await calm.close()
  const left = await world.decisions(0)
  const whole = await world.decisions(1)
  t.ok(left.length > 100 && left.length < whole.length)
  t.strictSame(left, whole.slice(-left.length), 'nothing is decided twice, nothing is left out')
})
