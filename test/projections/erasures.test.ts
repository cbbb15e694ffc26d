import { join } from 'node:path'
import { test, type Test } from 'tap'
import { DecisionsHistory } from '../../projections/decisions-history.ts'
import { Erased, eraseAfter, HistoryErasures } from '../../projections/erasures.ts'
import { ERASURES, historyConsumer } from '../../projections/history-checkpoints.ts'
import { rebuildHistory } from '../../projections/history-rebuild.ts'
import { LocationHistory, PointBuffer } from '../../projections/location-history.ts'
import { decodeRuns, RunsHistory } from '../../projections/runs-history.ts'
import { openChdbHistoryStore } from '../../src/engines/chdb/chdb-history.ts'
import { POINTS } from '../../src/engines/clickhouse-sql/history-tables.ts'
import { openSchema } from '../../src/engines/clickhouse-sql/history-schema.ts'
import type { HistoryErasure, HistoryStore } from '../../src/engines/history-store.ts'
import { runIdOf, type RunTrigger } from '../../src/features/automations/events.ts'
import { eraseHistory } from '../../src/features/locations/erase-history.ts'
import { AHEAD, HISTORY_ERASURES, type LocationEntry } from '../../src/features/locations/events.ts'
import type { Decision } from '../../src/features/transitions/events.ts'
import { encodeJson, type RecordedEvent } from '../../src/kernel/event.ts'
import { settling } from '../../src/kit/consumers/settle.ts'
import { folderOf } from '../support/folder-of.ts'
import { openServices } from '../support/open-services.ts'
import { batchOf, uuidOf } from '../support/trace-batches.ts'
import { until } from '../support/service.ts'

const [ORG, OTHER] = [uuidOf('organization'), uuidOf('other organization')]
const [A, B, C] = [uuidOf('tracker a'), uuidOf('tracker b'), uuidOf('tracker c')]
const NOW = Date.parse('2026-06-01T00:00:00Z')
const BEFORE = NOW - 60_000
const AFTER = NOW + 60_000
const THINGS = [
  [ORG, A],
  [ORG, B],
  [OTHER, C],
] as const

const open = async (t: Test) => {
  const folder = folderOf(t)
  const services = await openServices(folder)
  const engine = await openChdbHistoryStore({ path: join(folder, 'data'), scratchPath: join(folder, 'scratch') })
  t.teardown(async () => {
    await engine.close()
    await services.close()
  })
  await openSchema(engine, { days: 36_500, runDays: 36_500 })
  const gates: { insert?: Promise<void> } = {}
  const history: HistoryStore = {
    command: (...command) => engine.command(...command),
    insert: async (...insert) => {
      await gates.insert
      return engine.insert(...insert)
    },
    erase: (erasures) => engine.erase(erasures),
    query: (...query) => engine.query(...query),
    rows: (...rows) => engine.rows(...rows),
    ping: () => engine.ping(),
    close: () => engine.close(),
  }
  /** A process that follows partition 0. */
  const live = async () => {
    const erasures = await new HistoryErasures({ ...services, history }).start()
    const onFailure = (error: unknown) => t.fail(String(error))
    const parts = { ...services, history, erasures, epoch: 0, onFailure }
    const consumers = [new LocationHistory(parts), new DecisionsHistory(parts), new RunsHistory(parts)] as const
    for (const consumer of consumers) await consumer.load(0)
    return {
      consumers,
      flush: async () => {
        for (const consumer of consumers) await consumer.flush()
      },
      end: async () => {
        for (const consumer of consumers) await consumer.close()
        await erasures.close()
      },
    }
  }
  const steps = ['location-history', 'decisions-history', 'automation-runs'].map((consumer) => ({
    consumer: historyConsumer(consumer, 0),
    stream: HISTORY_ERASURES,
    source: ERASURES,
  }))
  const settle = settling(services, [])
  const erased = async () => t.ok(await settle({ types: [], position: -1 }, 1_000_000, steps), 'the consumers say so')
  const erase = (erasure: HistoryErasure) => eraseHistory(services.log, erasure, { actor: 'test' })
  const left = async (table: string) =>
    (
      await engine.rows<{ text: string }>(
        table === 'automation_runs'
          ? 'SELECT concat(_id, toString(length(attempts))) AS text FROM automation_runs FINAL ORDER BY text'
          : `SELECT concat(toString(trackerId), toString(${TIMES[table]})) AS text FROM ${table} FINAL ORDER BY text`,
      )
    ).map(({ text }) => text)
  const count = async () =>
    Promise.all([...Object.keys(TIMES), 'automation_runs'].map(async (table) => (await left(table)).length))
  return { ...services, engine, history, gates, live, erase, erased, left, count }
}

const TIMES: { [table: string]: string } = { points: 'recordedAt', transitions: 'at', trips: 'startedAt' }

type Consumers = Awaited<ReturnType<Awaited<ReturnType<typeof open>>['live']>>['consumers']

const trigger = (organizationId: string, trackerId: string, at: number): RunTrigger => ({
  sourceId: `${trackerId}${at}`,
  event: 'onGeofenceEntry',
  organizationId,
  subject: { type: 'tracker', id: trackerId },
  at,
})

const pointsAt = (revision: number, at: number, flags = 0): LocationEntry => ({
  partition: 0,
  revision,
  position: revision,
  kind: 'points',
  batch: batchOf(
    THINGS.map(([organizationId, trackerId]) => ({
      organizationId,
      trackerId,
      recordedAt: at,
      latE7: 1,
      lngE7: 2,
      flags,
    })),
    Math.min(at, NOW),
  ),
})

const decidedAt = (revision: number, at: number) => ({
  revision,
  decided: {
    sourceRevision: revision,
    ordinal: 0,
    sourceLoggedAt: at,
    decisions: THINGS.flatMap(([organizationId, trackerId]): Decision[] => {
      const shared = {
        _id: uuidOf(`${trackerId}${at}`),
        organizationId,
        trackerId,
        point: { recordedAt: at, lat: 1, lng: 2 },
      }
      return [
        { kind: 'transition', ...shared, geofenceId: 'g', geofenceGroupId: 'gg', type: 'entry', at, cause: 'point' },
        { kind: 'tripStarted', ...shared, explicit: false, startedAt: at, distance: 0 },
      ]
    }),
  },
})

const runEvent = (revision: number, type: string, data: object): RecordedEvent => ({
  stream: 'automation-runs-0',
  revision,
  position: revision,
  loggedAt: NOW,
  id: `${revision}`,
  type,
  data: encodeJson(data),
  isJson: true,
  metadata: {},
})

const owedAt = (revision: number, at: number): RecordedEvent =>
  runEvent(revision, 'runsOwed.v2', {
    source: 'transitions',
    sourceAt: revision,
    complete: true,
    owedAt: AFTER,
    firstSequence: revision * 10,
    owed: THINGS.map(([o, tracker]) => ({ trigger: trigger(o, tracker, at), runs: [{ automationId: 'x' }] })),
  })

const attemptedAt = (revision: number, at: number): RecordedEvent =>
  runEvent(revision, 'attemptsMade.v1', {
    attempts: THINGS.map(([organizationId, trackerId]) => ({
      runId: runIdOf(trigger(organizationId, trackerId, at), 'x'),
      automationId: 'x',
      organizationId,
      owedAt: AFTER,
      at: AFTER,
      durationMs: 1,
      failures: 0,
      status: 'succeeded',
    })),
  })

/** What happened at a time, as the next event of each stream. */
const happen = async ([points, decisions, runs]: Consumers, revision: number, at: number): Promise<void> => {
  await points.handle(pointsAt(revision, at), 0)
  await decisions.handle(decidedAt(revision, at), 0)
  await runs.handle(decodeRuns(owedAt(revision, at)), 0)
}

test('what is erased goes, what comes late stays away, what happens later and all else is kept', async (t) => {
  const { live, erase, erased, count, left } = await open(t)
  const process = await live()
  await happen(process.consumers, 0, BEFORE)
  await process.flush()
  t.same(await count(), [3, 3, 3, 3])
  await happen(process.consumers, 1, BEFORE - 1) // still in memory
  await erase({ organizationId: ORG, trackerId: A, through: NOW })
  await erase({ organizationId: OTHER })
  await erased()
  t.same(await count(), [2, 2, 2, 2])
  await happen(process.consumers, 2, BEFORE - 2)
  await process.consumers[0].handle(pointsAt(3, AFTER - 1, AHEAD), 0)
  await happen(process.consumers, 4, AFTER)
  for (const [i, at] of [BEFORE, BEFORE - 1, BEFORE - 2, AFTER].entries())
    await process.consumers[2].handle(decodeRuns(attemptedAt(5 + i, at)), 0)
  await process.flush()
  t.same(await left('transitions'), await left('trips'))
  t.same(await count(), [6, 5, 5, 5], 'of A what came later, of B all with one point ahead, of C nothing')
  t.ok(
    (await left('automation_runs')).every((run) => run.endsWith('1')),
    'each run that is left has its attempt',
  )
  await process.end()
})

test('inserts that are under way when something is erased do not outlive it', async (t) => {
  const { live, erase, erased, gates, count } = await open(t)
  const process = await live()
  let release = (): void => undefined
  gates.insert = new Promise((resolve) => (release = resolve))
  await happen(process.consumers, 0, BEFORE)
  const flushing = process.flush()
  await erase({ organizationId: ORG })
  const gone = erased()
  await new Promise((resume) => setImmediate(resume))
  release()
  await Promise.all([flushing, gone])
  t.same(await count(), [1, 1, 1, 1])
  await process.end()
})

test('a process whose insert comes after it lost its partition takes away what it brought', async (t) => {
  const { live, erase, erased, gates, count, clock } = await open(t)
  const before = await live()
  let release = (): void => undefined
  gates.insert = new Promise((resolve) => (release = resolve))
  await happen(before.consumers, 0, BEFORE)
  const flushing = before.flush()
  const leaving = Promise.all(before.consumers.map((consumer) => consumer.leave(0)))
  await new Promise((resume) => setImmediate(resume))
  clock.advance(2_000)
  await leaving
  const after = await live()
  await erase({ organizationId: ORG })
  await erased()
  t.same(await count(), [0, 0, 0, 0])
  release()
  await flushing
  await until('what came late to go again', async () => (await count()).every((rows) => rows === 1))
  await before.end()
  await after.end()
})

test('a crash between the fact and the deletion, or before, is made good by the next owner; nothing comes back from the log', async (t) => {
  const { live, erase, erased, count, tables } = await open(t)
  const first = await live()
  await happen(first.consumers, 0, BEFORE)
  await first.flush()
  await first.end() // nobody hears of it
  await erase({ organizationId: ORG, trackerId: A, through: NOW })
  t.same(await count(), [3, 3, 3, 3])

  const second = await live()
  await erased()
  t.same(await count(), [2, 2, 2, 2])
  await second.end()
  for (const name of ['location-history', 'decisions-history', 'automation-runs']) await tables.reset([], `${name}-0`)

  const third = await live()
  await happen(third.consumers, 0, BEFORE)
  await third.flush()
  await erased()
  t.same(await count(), [2, 2, 2, 2], 'also where every checkpoint was lost')
  await third.end()
})

test('a rebuild leaves out what is erased, also what is erased while it runs', async (t) => {
  const { log, live, erase, history, left } = await open(t)
  const process = await live()
  await happen(process.consumers, 0, BEFORE)
  await process.flush()
  await process.end()
  await erase({ organizationId: ORG, trackerId: A })
  async function* entries() {
    yield { partition: 0, entry: pointsAt(0, BEFORE) }
    await erase({ organizationId: OTHER })
    yield { partition: 0, entry: pointsAt(1, AFTER) }
  }
  const parts = { history, mark: 'm', since: 0, eraseAgain: () => eraseAfter(log, history, -1) }
  const buffer = new PointBuffer(0, await new Erased().read(log))
  const report = await rebuildHistory(parts, 'location-history', [POINTS], buffer, entries())
  t.match(report, { rows: 4, missing: 2, different: 0 }, 'A is not even looked for')
  t.same(
    (await left('points')).map((text) => text.slice(0, 36)),
    [B, B],
  )
})

test('an erasure waits for a history that is down, and is done once it is back', async (t) => {
  const { live, erase, erased, history, clock, count } = await open(t)
  const { erase: eraseRows } = history
  let failures = 0
  history.erase = async () => {
    failures++
    throw new Error('down')
  }
  const process = await live()
  await happen(process.consumers, 0, BEFORE)
  await process.flush()
  await erase({ organizationId: ORG })
  const gone = erased()
  await until('two failures', () => {
    clock.advance(100)
    return failures > 1
  })
  t.same(await count(), [3, 3, 3, 3])
  history.erase = eraseRows
  clock.advance(5_000)
  await gone
  t.same(await count(), [1, 1, 1, 1])
  await process.end()
})
