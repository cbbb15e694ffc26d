import { join } from 'node:path'
import { test, type Test } from 'tap'
import { PointBlock } from '../../../projections/location-history-block.ts'
import { backtests } from '../../../projections/backtests.ts'
import { POINTS } from '../../../src/engines/clickhouse-sql/history-tables.ts'
import { openSchema } from '../../../src/engines/clickhouse-sql/history-schema.ts'
import { openChdbHistoryStore } from '../../../src/engines/chdb/chdb-history.ts'
import type { HistoryStore } from '../../../src/engines/history-store.ts'
import { cancelledRow, type JobCommand, type JobDeleted, jobDecider } from '../../../src/kit/jobs/life.ts'
import {
  packIds,
  resultStream,
  unpackIds,
  type BacktestPage,
  type BacktestRequested,
} from '../../../src/features/backtests/events.ts'
import { BACKTEST, type BacktestRow } from '../../../src/features/backtests/views.ts'
import { GEOFENCE_CREATED, geofenceStream } from '../../../src/features/geofences/events.ts'
import type { Transition } from '../../../src/features/transitions/events.ts'
import { transitionShown } from '../../../src/features/transitions/views.ts'
import { Failure } from '../../../src/kernel/errors.ts'
import type { UserCaller } from '../../../src/kernel/caller.ts'
import { decodeJson, encodeJson } from '../../../src/kernel/event.ts'
import { handleCommand } from '../../../src/kit/commands/handle-command.ts'
import { loadState } from '../../../src/kit/commands/load-state.ts'
import { idSource } from '../../../src/kit/commands/ids.ts'
import { backtestOf } from '../../../src/reactors/backtests/answer-backtest.ts'
import { backtestWork } from '../../../src/reactors/backtests/run-backtest.ts'
import { JOBS } from '../../../src/kit/jobs/rows.ts'
import { JobRunner } from '../../../src/kit/jobs/runner.ts'
import type { FakeClock } from '../../support/fake-clock.ts'
import { folderOf } from '../../support/folder-of.ts'
import { keepErrors, openServices, startProjections } from '../../support/open-services.ts'
import { until } from '../../support/service.ts'
import { batchOf, uuidOf, type PlainPoint } from '../../support/trace-batches.ts'
import { ringOf } from '../../support/ring.ts'

const ORGANIZATION = uuidOf('organization')
const FENCE = uuidOf('fence')
const TRACKERS = 5
const POINTS_EACH = 60
const DAY_MS = 86_400_000
const START = Date.parse('2026-01-01T00:00:00Z')
const SHAPE = {
  type: 'Polygon' as const,
  coordinates: [ringOf(0, 0, 0.01, 0.01)],
}

/** Each tracker is outside, inside, outside, …: as many transitions as points but the first. */
const walks = (): PlainPoint[] =>
  Array.from({ length: TRACKERS }, (_, tracker) =>
    Array.from({ length: POINTS_EACH }, (_, i) => ({
      organizationId: ORGANIZATION,
      trackerId: uuidOf(`tracker ${tracker}`),
      recordedAt: START + i * 1_000 + (tracker % 2),
      latE7: i % 2 === 0 ? -50_000 : 50_000,
      lngE7: 50_000,
      flags: 0,
    })),
  ).flat()

/** A history whose queries stop after their first chunk while it is shut, and fail where it is told so. */
class Gate {
  isShut = false
  failure: Error | undefined
  queries = 0
  private readonly waiters: (() => void)[] = []
  readonly store: HistoryStore

  constructor(store: HistoryStore) {
    const query = (...args: Parameters<HistoryStore['query']>): AsyncIterable<Uint8Array> =>
      this.through(store.query(...args), args[3])
    this.store = { query, rows: (...args) => store.rows(...args) } as HistoryStore
  }

  get held(): number {
    return this.waiters.length
  }

  open(): void {
    this.isShut = false
    for (const resume of this.waiters.splice(0)) resume()
  }

  private async *through(
    chunks: AsyncIterable<Uint8Array>,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<Uint8Array> {
    this.queries++
    if (this.failure !== undefined) throw this.failure
    for await (const chunk of chunks) {
      if (this.isShut) await this.opened(signal)
      yield chunk
    }
  }

  private opened(signal: AbortSignal | undefined): Promise<void> {
    return new Promise<void>((resume, refuse) => {
      this.waiters.push(resume)
      signal?.addEventListener('abort', () => refuse(signal.reason))
    })
  }
}

const open = async (t: Test) => {
  const folder = folderOf(t)
  const services = await openServices(folder)
  const history = await openChdbHistoryStore({ path: join(folder, 'history'), scratchPath: join(folder, 'scratch') })
  await openSchema(history, { days: 36_500, runDays: 36_500 })
  const block = new PointBlock(1_000)
  block.add(batchOf(walks()), 0, 1)
  await history.insert(POINTS, block.encode(), 'points')
  const { runner } = await startProjections(services, [backtests])
  const { log, clock } = services
  const created = {
    organizationId: ORGANIZATION,
    name: 'Yard',
    geofenceGroupId: uuidOf('group'),
    isActive: true,
    shape: SHAPE,
    at: START,
  }
  await log.append(
    geofenceStream(FENCE),
    [{ id: uuidOf('created'), type: GEOFENCE_CREATED, data: encodeJson(created), isJson: true, metadata: {} }],
    'none',
  )
  const gate = new Gate(history)
  const failures: { error?: string }[] = []
  const opened: JobRunner[] = []
  const openJobs = async (): Promise<JobRunner> => {
    await services.checkpoints.reached('backtests', { all: lastPosition }, 10_000)
    const work = backtestWork({
      log,
      history: gate.store,
      visibleTrackers: async () => 'all',
      bounds: { runTransitions: 50, pageBytes: 2_000 },
    })
    const options = { name: JOBS, works: [work], atOnceMax: 2, keepMs: 30 * DAY_MS }
    const jobs = new JobRunner({ ...services, logger: keepErrors(failures) }, options)
    opened.push(jobs)
    await jobs.start()
    return jobs
  }
  t.teardown(async () => {
    gate.open()
    for (const jobs of opened) await jobs.close()
    await runner.close()
    await history.close()
    await services.close()
  })
  let lastPosition = -1
  const ids = idSource(START)
  const tell = async (id: string, command: JobCommand<BacktestRequested>): Promise<void> => {
    const { wrote } = await handleCommand(log, BACKTEST.stream(id), jobDecider(BACKTEST, id), command, {
      ids,
      metadata: { organizationId: ORGANIZATION },
    })
    lastPosition = wrote?.position ?? lastPosition
  }
  const request = async (name: string, changes: Partial<BacktestRequested> = {}): Promise<string> => {
    const requested: BacktestRequested = {
      organizationId: ORGANIZATION,
      geofenceId: FENCE,
      geofenceGroupId: uuidOf('group'),
      geofenceVersion: 1,
      userId: uuidOf('user'),
      hubIds: 'all',
      from: START,
      to: START + DAY_MS,
      rules: {},
      total: TRACKERS * POINTS_EACH,
      at: clock.now(),
      ...changes,
    }
    await tell(uuidOf(name), { kind: 'request', requested })
    return uuidOf(name)
  }
  const rowOf = async (id: string): Promise<BacktestRow | undefined> =>
    (await loadState(log, BACKTEST.stream(id), jobDecider(BACKTEST, id))).state.row
  const isNow = (id: string, status: string): Promise<void> =>
    until(status, async () => (await rowOf(id))?.status === status)
  const pagesOf = async (id: string, attempt: number): Promise<BacktestPage['transitions'][]> =>
    (await log.read(resultStream(id, attempt), 0, 10_000)).map(({ data }) => decodeJson<BacktestPage>(data).transitions)
  const pages = async (id: string): Promise<BacktestPage['transitions'][]> =>
    (await Promise.all(Array.from({ length: BACKTEST.attemptsMax }, (_, i) => pagesOf(id, i + 1)))).flat()
  const direct = async (): Promise<object[]> => {
    const caller = { organizationId: ORGANIZATION, hubIds: 'all' } as UserCaller
    const fence = { geofenceId: FENCE, geofenceGroupId: uuidOf('group'), geofenceVersion: 1 }
    const answer = await backtestOf({ log, history, visibleTrackers: async () => 'all', pointsMax: 1_000 })({
      caller,
      ...fence,
      from: START,
      to: START + DAY_MS,
      rules: {},
      signal: new AbortController().signal,
    })
    return 'transitions' in answer ? answer.transitions : []
  }
  return {
    ...services,
    direct,
    clock: clock as unknown as FakeClock,
    gate,
    failures,
    openJobs,
    tell,
    request,
    rowOf,
    isNow,
    pages,
    pagesOf,
  }
}

const EXPECTED = TRACKERS * (POINTS_EACH - 1)

test('one that is interrupted is done anew by the next start, and ends once: whoever was slower changes nothing', async (t) => {
  const { gate, openJobs, request, rowOf, isNow, pages, pagesOf, log, direct } = await open(t)
  gate.isShut = true
  const slow = await openJobs()
  const id = await request('first')
  await isNow(id, 'processing')
  await until('it reads', () => gate.held === 1)
  gate.isShut = false // the next one reads on; the one before hangs where it is
  await openJobs()
  await isNow(id, 'completed')
  const row = await rowOf(id)
  t.match(row, { attempt: 2, processed: TRACKERS * POINTS_EACH, result: { transitions: EXPECTED } })
  const kept = await pages(id)
  const transitions = kept.flat()
  t.equal(transitions.length, EXPECTED)
  t.ok(kept.length > 10, 'in pages')
  t.strictSame(
    transitions.map((transition) => transitionShown(transition as Transition)),
    await direct(),
    'as the direct answer has it',
  )
  t.equal(gate.queries, 2)
  gate.open()
  await until('the slower one sees that it has ended', () => slow.runningCount === 0)
  t.strictSame(await rowOf(id), row)
  t.strictSame((await pagesOf(id, 2)).flat(), transitions)
  const finished = (await log.read(BACKTEST.stream(id), 0, 100)).filter(({ type }) => type === BACKTEST.types.finished)
  t.equal(finished.length, 1)
})

test('cancelling ends the one that runs, lets the next one of the organization run, and leaves nothing', async (t) => {
  const { gate, openJobs, request, tell, rowOf, isNow, pages, log } = await open(t)
  gate.isShut = true
  await openJobs()
  const first = await request('first')
  const second = await request('second')
  await isNow(first, 'processing')
  await until('it reads', () => gate.held === 1)
  t.equal((await rowOf(second))?.status, 'queued', 'one of an organization at a time')
  gate.isShut = false // for the next one; this one hangs until it is cancelled
  await tell(first, { kind: 'delete', organizationId: ORGANIZATION, at: START })
  await isNow(second, 'completed')
  t.equal(await rowOf(first), undefined)
  t.same(await pages(first), [])
  const left = await log.read(BACKTEST.stream(first), 0, 10)
  t.same(
    left.map(({ type }) => type),
    [BACKTEST.types.deleted],
    'the stream is cut off',
  )
  t.match(cancelledRow(decodeJson<JobDeleted>(left[0].data)), {
    _id: first,
    status: 'cancelled',
    userId: uuidOf('user'),
  })
  await t.rejects(tell(first, { kind: 'delete', organizationId: ORGANIZATION, at: START }), { code: 'not_found' })
  await t.rejects(tell(second, { kind: 'delete', organizationId: uuidOf('other'), at: START }), { code: 'not_found' })
  await tell(second, { kind: 'delete', organizationId: ORGANIZATION, at: START })
  await until('the result is let go of', async () => (await pages(second)).length === 0)
})

test('an engine that is down is waited for; what cannot succeed fails by name', async (t) => {
  const { gate, openJobs, request, rowOf, isNow, failures, clock } = await open(t)
  gate.failure = new Failure('engine_down')
  await openJobs()
  const id = await request('first')
  await until('a failure', () => failures.length === 1)
  t.equal((await rowOf(id))?.status, 'processing')
  gate.failure = undefined
  clock.advance(60_000)
  await isNow(id, 'completed')
  const gone = await request('second', { geofenceId: uuidOf('no fence') })
  await isNow(gone, 'failed')
  t.match(await rowOf(gone), { error: { code: 'not_found' } })
  gate.failure = new Failure('engine_down')
  const never = await request('third')
  await until('it gives up', async () => {
    clock.advance(120_000)
    return (await rowOf(never))?.status === 'failed'
  })
  t.match(await rowOf(never), { error: { code: 'engine_down' }, attempt: 8 })
})

test('what has been kept its time is deleted with its result; named trackers come through packed', async (t) => {
  const { openJobs, request, rowOf, isNow, pages, clock } = await open(t)
  const named = [uuidOf('tracker 0'), uuidOf('tracker 3')]
  t.same(unpackIds(packIds(named)), named)
  const jobs = await openJobs()
  const id = await request('first', { trackerIds: packIds(named) })
  await isNow(id, 'completed')
  t.match(await rowOf(id), { trackers: 2, processed: 2 * POINTS_EACH, result: { transitions: 2 * (POINTS_EACH - 1) } })
  clock.advance(29 * DAY_MS)
  const young = await request('second')
  await isNow(young, 'completed')
  await jobs.sweep()
  t.ok(await rowOf(id))
  clock.advance(2 * DAY_MS)
  await jobs.sweep()
  await until('it is gone', async () => (await pages(id)).length === 0 && (await rowOf(id)) === undefined)
  t.equal((await rowOf(young))?.status, 'completed')
})
