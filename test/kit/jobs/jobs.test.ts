import { test, type Test } from 'tap'
import { logWith } from '../../../src/engines/event-log.ts'
import { Failure } from '../../../src/kernel/errors.ts'
import type { Row, TableDeclaration } from '../../../src/kernel/table.ts'
import { handleCommand } from '../../../src/kit/commands/handle-command.ts'
import { loadState } from '../../../src/kit/commands/load-state.ts'
import { idSource } from '../../../src/kit/commands/ids.ts'
import { type JobRun, type JobWork, runAttempt } from '../../../src/kit/jobs/attempt.ts'
import { JobPlaces } from '../../../src/kit/jobs/asking.ts'
import { defineJob, type JobAsked, type JobRow } from '../../../src/kit/jobs/job.ts'
import { cancelledRow, type JobCommand, type JobDeleted, jobDecider, teller } from '../../../src/kit/jobs/life.ts'
import { JOB_RUNS, jobRows, JOBS } from '../../../src/kit/jobs/rows.ts'
import { JobRunner } from '../../../src/kit/jobs/runner.ts'
import type { TableStore } from '../../../src/engines/table-store.ts'
import { decodeJson } from '../../../src/kernel/event.ts'
import { defer, type Deferred } from '../../../src/kit/consumers/deferred.ts'
import { folderOf } from '../../support/folder-of.ts'
import { keepErrors, openServices, startProjections } from '../../support/open-services.ts'
import { until } from '../../support/service.ts'
import { MemoryRows } from '../../simulate/memory-rows.ts'
import type { Rows } from '../../../src/kit/consumers/projection.ts'

const DAY_MS = 86_400_000

interface CountAsked extends JobAsked {
  rows: number
}

/** Counts rows, and can go on from one. */
const COUNT = defineJob<CountAsked, JobRow<{ sum: number }>>({
  kind: 'count',
  attemptsMax: 3,
  row: ({ rows }) => ({ total: rows }),
})
const COUNTS: TableDeclaration = { name: 'counts', version: 1, equality: ['status'], range: ['createdAt'] }

type Doing = JobWork<CountAsked>['run']

const open = async (t: Test, doing: Doing) => {
  const services = await openServices(folderOf(t))
  const { log, clock } = services
  const { runner: projections, settle } = await startProjections(services, [jobRows(COUNT, COUNTS)])
  const runs: JobRun<CountAsked>[] = []
  const released: string[] = []
  const failures: { error?: string }[] = []
  const opened: JobRunner[] = []
  const act = { doing }
  const work: JobWork<CountAsked, JobRow<{ sum: number }>> = {
    kind: COUNT,
    run: (run) => {
      runs.push(run)
      return act.doing(run)
    },
    release: async (id) => void released.push(id),
  }
  const start = async (isOurs?: () => Promise<boolean>): Promise<JobRunner> => {
    const options = { name: JOBS, works: [work], atOnceMax: 2, keepMs: 30 * DAY_MS }
    const runner = new JobRunner({ ...services, isOurs, logger: keepErrors(failures) }, options)
    opened.push(runner)
    return runner.start()
  }
  const ids = idSource(1)
  const tell = async (id: string, command: JobCommand<CountAsked>): Promise<void> => {
    const { wrote } = await handleCommand(log, COUNT.stream(id), jobDecider(COUNT, id), command, { ids, metadata: {} })
    if (wrote !== undefined) await settle(wrote, 60_000)
  }
  const ask = (id: string, organizationId = 'a', rows = 100): Promise<void> =>
    tell(id, { kind: 'request', requested: { organizationId, rows, at: clock.now() } })
  const rowOf = async (id: string) => (await loadState(log, COUNT.stream(id), jobDecider(COUNT, id))).state.row
  const isNow = (id: string, status: string) =>
    until(`${id} is ${status}`, async () => (await rowOf(id))?.status === status)
  const typesOf = async (id: string) => (await log.read(COUNT.stream(id), 0, 1_000)).map(({ type }) => type)
  t.teardown(async () => {
    for (const runner of opened) await runner.close()
    await projections.close()
    await services.close()
  })
  return { ...services, act, work, runs, released, failures, start, tell, ask, rowOf, isNow, typesOf }
}

/** A run that counts when it is let to, or is aborted. */
const held = () => {
  const gates = new Map<string, Deferred<void>>()
  const gateOf = (id: string) => {
    const gate = gates.get(id) ?? defer<void>()
    gates.set(id, gate)
    return gate
  }
  const doing: Doing = async ({ id, signal, asked }) => {
    signal.addEventListener('abort', () => gateOf(id).reject(signal.reason))
    await gateOf(id).promise
    return { processed: asked.rows, result: { sum: asked.rows } }
  }
  return { doing, go: (id: string) => gateOf(id).resolve() }
}

test('a job from its request to its end; progress is logged now and then, and its row is listed', async (t) => {
  const { start, ask, rowOf, isNow, typesOf, clock, tables } = await open(t, async ({ progress, asked }) => {
    for (let row = 1; row <= asked.rows; row++) {
      clock.advance(100)
      await progress(row, { row })
    }
    return { processed: asked.rows, result: { sum: 7 } }
  })
  await ask('one')
  t.match(await rowOf('one'), { status: 'queued', total: 100, processed: 0, attempt: 0, version: 1 })
  await start()
  await isNow('one', 'completed')
  const types = await typesOf('one')
  t.same(types.slice(0, 3), ['countRequested.v1', 'countStarted.v1', 'countProgressed.v1'])
  t.equal(types.length, 13, 'ten seconds, so ten times')
  t.equal(types.at(-1), 'countFinished.v1')
  const row = await rowOf('one')
  t.match(row, { status: 'completed', processed: 100, result: { sum: 7 }, attempt: 1, version: 13 })
  await until('the row', async () => (await tables.get(COUNTS.name, 'a', 'one'))?.status === 'completed')
  t.same(await tables.get(COUNTS.name, 'a', 'one'), row, 'the list has what its events say')
})

test('cancelling aborts the run wherever it is, keeps the record, and what it had done by then', async (t) => {
  const { act, start, ask, tell, rowOf, isNow, runs, typesOf } = await open(t, held().doing)
  await start()
  await ask('one')
  await until('it runs', () => runs.length === 1)
  await tell('one', { kind: 'cancel', organizationId: 'a', at: 5 })
  await until('it is aborted', () => runs[0].signal.aborted)
  t.match(await rowOf('one'), { status: 'cancelled', updatedAt: 5 })
  await tell('one', { kind: 'cancel', organizationId: 'a', at: 6 })
  await t.rejects(tell('one', { kind: 'cancel', organizationId: 'b', at: 6 }), { code: 'not_found' })
  t.same(await typesOf('one'), ['countRequested.v1', 'countStarted.v1', 'countCancelled.v1'])

  act.doing = async ({ signal }) => {
    await new Promise((done) => signal.addEventListener('abort', done))
    return { processed: 40, result: { sum: 40 } }
  }
  await ask('two')
  await until('the next one runs', () => runs.length === 2)
  await tell('two', { kind: 'cancel', organizationId: 'a', at: 7 })
  await until('what it found is kept', async () => (await rowOf('two'))?.result !== undefined)
  t.match(await rowOf('two'), { status: 'cancelled', processed: 40, total: 100, result: { sum: 40 } })

  act.doing = held().doing
  await ask('three')
  await until('the third runs', () => runs.length === 3)
  await ask('four')
  await tell('four', { kind: 'cancel', organizationId: 'a', at: 8 })
  await tell('three', { kind: 'cancel', organizationId: 'a', at: 8 })
  act.doing = async () => ({ processed: 1 })
  await ask('five')
  await isNow('five', 'completed')
  t.notOk(
    runs.some(({ id }) => id === 'four'),
    'one that waits never begins',
  )
})

test('a job that fails again and again ends by what it failed with: a full disk, say', async (t) => {
  const message = 'The disk for files is full; try again later.'
  const { start, ask, rowOf, runs, clock } = await open(t, async () => {
    throw new Failure('engine_down', { message })
  })
  await ask('one')
  await start()
  await until('its end', async () => {
    clock.advance(120_000)
    return (await rowOf('one'))?.status === 'failed'
  })
  t.equal(runs.length, 3)
  const error = { code: 'engine_down', message: `It was begun 3 times and never came to its end. ${message}` }
  t.match(await rowOf('one'), { error })
})

test('deleting ends a run, lets go of what it stored, and leaves what those who watch it are told', async (t) => {
  const { start, ask, tell, rowOf, runs, released, log, typesOf } = await open(t, held().doing)
  const runner = await start()
  await ask('one')
  await until('it runs', () => runs.length === 1)
  await tell('one', { kind: 'delete', organizationId: 'a', at: 5 })
  await until('it is let go of', async () => released.includes('one') && (await typesOf('one')).length === 1)
  t.equal(runner.runningCount, 0)
  const [deleted] = await log.read(COUNT.stream('one'), 0, 10)
  t.match(cancelledRow(decodeJson<JobDeleted>(deleted.data)), { status: 'cancelled', updatedAt: 5, total: 100 })
  t.equal(await rowOf('one'), undefined)
  await t.rejects(ask('one'), { code: 'not_found' }, 'a request that is repeated after that makes none')
})

test('a start after a crash takes up what had not ended, at each point of it, from where the last attempt came', async (t) => {
  const { act, start, ask, rowOf, isNow, runs, tell } = await open(t, held().doing)
  await ask('queued')
  await ask('begun', 'b')
  await tell('begun', { kind: 'start', attempt: 1, at: 1 })
  await ask('half', 'c')
  await tell('half', { kind: 'start', attempt: 1, at: 1 })
  await tell('half', { kind: 'progress', attempt: 1, processed: 40, cursor: { row: 40 }, at: 2 })
  await ask('done', 'd')
  await tell('done', { kind: 'start', attempt: 1, at: 1 })
  await tell('done', { kind: 'finish', attempt: 1, processed: 9, result: { sum: 9 }, at: 2 })
  act.doing = async ({ asked }) => ({ processed: asked.rows, result: { sum: asked.rows } })
  const first = await start()
  for (const id of ['queued', 'begun', 'half']) await isNow(id, 'completed')
  const seen = runs.map(({ id, attempt, cursor, processed }) => [id, attempt, cursor, processed])
  t.same(seen.sort(), [
    ['begun', 2, undefined, 0],
    ['half', 2, { row: 40 }, 40],
    ['queued', 1, undefined, 0],
  ])
  t.match(await rowOf('done'), { processed: 9, attempt: 1 }, 'what has ended stays as it is')

  act.doing = async ({ signal }) => {
    await new Promise((done) => signal.addEventListener('abort', done))
    return { processed: 1 }
  }
  await ask('left')
  await until('it runs', () => runs.length === 4)
  await first.close()
  t.match(await rowOf('left'), { status: 'processing' }, 'a stop of the service is no end')
  act.doing = async () => ({ processed: 1 })
  await start()
  await isNow('left', 'completed')
  t.equal((await rowOf('left'))?.attempt, 2)
})

test('an attempt that another has overtaken stops, and what it says changes nothing', async (t) => {
  const go = defer<void>()
  const { start, ask, tell, rowOf, runs, clock, failures } = await open(t, async ({ progress, signal }) => {
    await go.promise
    clock.advance(2_000)
    await progress(50)
    signal.throwIfAborted()
    return { processed: 50, result: { sum: 50 } }
  })
  const runner = await start()
  await ask('one')
  await until('it runs', () => runs.length === 1)
  await tell('one', { kind: 'start', attempt: 2, at: 1 })
  await tell('one', { kind: 'finish', attempt: 2, processed: 100, result: { sum: 100 }, at: 2 })
  go.resolve()
  await until('it stops', () => runner.runningCount === 0)
  t.ok(runs[0].signal.aborted, 'before it has done the rest')
  t.match(await rowOf('one'), { status: 'completed', processed: 100, result: { sum: 100 }, attempt: 2, version: 4 })
  t.same(failures, [])
})

for (const isOurs of [true, false])
  test(`a job overtaken by an attempt that never ends is ${isOurs ? 'begun again by its owner' : 'left to another owner'}`, async (t) => {
    const go = defer<void>()
    const { start, ask, tell, rowOf, runs, clock, isNow } = await open(t, async ({ attempt }) => {
      if (attempt === 1) await go.promise
      return { processed: 100, result: { sum: 100 } }
    })
    const runner = await start(async () => isOurs)
    await ask('one')
    await until('it runs', () => runs.length === 1)
    // A process that stood still begins it before it notices that the jobs are another's.
    await tell('one', { kind: 'start', attempt: 2, at: 1 })
    go.resolve()
    await until('it is begun again, or left', () => {
      clock.advance(1_000)
      return runs.length === 2 || runner.runningCount === 0
    })
    if (isOurs) await isNow('one', 'completed')
    t.match(await rowOf('one'), isOurs ? { status: 'completed', attempt: 3 } : { status: 'processing', attempt: 2 })
  })

for (const isEnded of [true, false])
  test(`the last failure of an overtaken attempt changes nothing, and lets go of nothing, where the other ${isEnded ? 'has ended' : 'runs'}`, async (t) => {
    const go = defer<void>()
    const { start, ask, tell, rowOf, runs, clock, released } = await open(t, async () => {
      await go.promise
      throw new Failure('too_large')
    })
    const runner = await start(async () => false)
    await ask('one')
    await until('it runs', () => runs.length === 1)
    await tell('one', { kind: 'start', attempt: 2, at: 1 })
    const finish = { kind: 'finish', attempt: 2, processed: 100, result: { sum: 100 }, at: 2 } as const
    if (isEnded) await tell('one', finish)
    go.resolve()
    await until('it is left', () => {
      clock.advance(1_000)
      return runner.runningCount === 0
    })
    t.match(await rowOf('one'), { status: isEnded ? 'completed' : 'processing', attempt: 2 })
    t.same(released, [], 'what the other has stored stays')
  })

test('two processes that begin a job at the same moment do not both run the same attempt', async (t) => {
  const { log, clock, ask, rowOf, runs, work } = await open(t, async () => ({ processed: 1 }))
  await ask('one')
  const before = (await rowOf('one')) as JobRow
  const services = { clock, closing: new AbortController().signal }
  const begin = (appending: typeof log.append): Promise<boolean> =>
    runAttempt({ ...services, log: logWith(log, appending) }, work, before, services.closing)
  const ended = await begin(async (stream, events, expected) => {
    // It stood still before its append, and another process took the jobs.
    if (runs.length === 0) await begin((...asked) => log.append(...asked))
    return log.append(stream, events, expected)
  })
  t.same([runs.map(({ attempt }) => attempt), ended], [[1], true])
})

test('what fails for now is tried again; what gets nowhere, or cannot succeed, fails by name', async (t) => {
  const { act, start, ask, tell, rowOf, isNow, failures, clock, released } = await open(t, async () => {
    throw new Failure('engine_down')
  })
  await start()
  await ask('one')
  await until('it gives up', async () => {
    clock.advance(120_000)
    return (await rowOf('one'))?.status === 'failed'
  })
  t.match(await rowOf('one'), { attempt: 3, error: { code: 'engine_down', message: /begun 3 times/ } })
  t.equal(failures.length, 3)
  t.ok(released.includes('one'))
  act.doing = async () => {
    throw new Failure('too_large', { message: 'Too much.' })
  }
  await ask('two')
  await isNow('two', 'failed')
  t.match(await rowOf('two'), { attempt: 1, error: { code: 'too_large', message: 'Too much.' } })
  await tell('two', { kind: 'cancel', organizationId: 'a', at: 1 })
  t.match(await rowOf('two'), { status: 'failed' }, 'what has ended is not cancelled')

  let rows = 0
  act.doing = async ({ progress }) => {
    clock.advance(1_000)
    rows += 10
    await progress(rows, { rows })
    if (rows < 100) throw new Failure('engine_down')
    return { processed: rows }
  }
  await ask('three')
  await until('it ends', async () => {
    clock.advance(120_000)
    return (await rowOf('three'))?.status === 'completed'
  })
  t.equal((await rowOf('three'))?.attempt, 10, 'attempts that get somewhere do not count')
})

test('organizations take turns, one job of each runs at a time, and a bounded number over all', async (t) => {
  const { doing, go } = held()
  const { start, ask, isNow, runs, tables } = await open(t, doing)
  const order = () => runs.map(({ id }) => id)
  for (let i = 1; i <= 4; i++) await ask(`a${i}`, 'a')
  for (let i = 1; i <= 4; i++) await ask(`b${i}`, 'b')
  const runner = await start()
  await until('two run', () => runs.length === 2)
  t.same(order(), ['a1', 'b1'])
  await ask('c1', 'c')
  await ask('d1', 'd')
  await until('the runner knows', async () => (await tables.get(JOB_RUNS.name, JOBS, COUNT.stream('d1'))) !== undefined)
  t.equal(runner.runningCount, 2, 'two at a time')
  go('a1')
  await until('the next', () => runs.length === 3)
  go('b1')
  await until('and the next', () => runs.length === 4)
  t.same(order().slice(2), ['c1', 'd1'], 'who came later does not wait for all that others asked for before')
  go('c1')
  go('d1')
  await until('two more', () => runs.length === 6)
  t.same(order().slice(4), ['a2', 'b2'])
  for (const id of ['a2', 'a3', 'a4', 'b2', 'b3', 'b4']) go(id)
  for (const id of ['a4', 'b4']) await isNow(id, 'completed')
})

test('what was asked for 30 days ago is deleted with what it stored, ended or not', async (t) => {
  const { act, start, ask, rowOf, isNow, clock, released, tables } = await open(t, async () => ({ processed: 1 }))
  const runner = await start()
  await ask('old')
  await isNow('old', 'completed')
  act.doing = held().doing
  await ask('hanging', 'b')
  await isNow('hanging', 'processing')
  clock.advance(29 * DAY_MS)
  await runner.sweep()
  t.ok(await rowOf('old'), 'not yet')
  act.doing = async () => ({ processed: 1 })
  await ask('young', 'c')
  await isNow('young', 'completed')
  clock.advance(2 * DAY_MS)
  await runner.sweep()
  await until('both are let go of', () => ['old', 'hanging'].every((id) => released.includes(id)))
  t.same([await rowOf('old'), await rowOf('hanging')], [undefined, undefined])
  await until('their rows', async () => (await tables.get(COUNTS.name, 'a', 'old')) === undefined)
  t.match(await rowOf('young'), { status: 'completed' })
})

test('more than an organization may have waiting are 429, more than all together 503, and a repeat is neither', async (t) => {
  const { tables, ask, tell, start, isNow } = await open(t, held().doing)
  const bounds = { table: COUNTS, plural: 'counts', organizationMax: 2 }
  const places = new JobPlaces(tables, bounds, 3)
  await places.keep('a', 'a1')
  await ask('a1')
  await places.keep('a', 'a2')
  await t.rejects(places.keep('a', 'a3'), {
    code: 'rate_limited',
    message: '2 counts of your organization wait or run; wait for one to end, or cancel one.',
    details: { retryAfterSeconds: 60 },
  })
  await places.keep('b', 'b1')
  places.release('a', 'a2')
  await places.keep('a', 'a3')
  await ask('a3')
  await ask('b1', 'b')
  await start()
  await isNow('b1', 'processing')
  await t.rejects(places.keep('b', 'b2'), { code: 'overloaded', details: { retryAfterSeconds: 60 } })
  await places.keep('c', 'c1') // nothing of theirs waits: others do not keep them out
  await places.keep('a', 'a1')
  await tell('a3', { kind: 'cancel', organizationId: 'a', at: 1 })
  await until('there is room again', () =>
    places.keep('b', 'b2').then(
      () => true,
      () => false,
    ),
  )
})

test('a job whose row is stored while places are counted counts once', async (t) => {
  for (const storedBefore of [0, 1, 2, 3, 4]) {
    let questions = Number.NEGATIVE_INFINITY
    const isStored = (): boolean => questions++ >= storedBefore
    const tables = {
      declare: async () => undefined,
      getMany: async (_table: string, _scope: string, ids: readonly string[]) => {
        const has = isStored()
        return ids.map((id) => (id === 'a1' && has ? {} : undefined))
      },
      find: async (table: string) => ({ rows: [], total: table === COUNTS.name && isStored() ? 1 : 0 }),
    } as unknown as TableStore
    const placesFor = async (organizationMax: number): Promise<JobPlaces> => {
      const places = new JobPlaces(tables, { table: COUNTS, plural: 'counts', organizationMax })
      questions = Number.NEGATIVE_INFINITY
      await places.keep('a', 'a1')
      questions = 0
      return places
    }
    const one = await placesFor(1)
    await t.rejects(one.keep('a', 'a2'), { code: 'rate_limited', message: /^1 counts/ }, `${storedBefore}`)
    const two = await placesFor(2)
    await two.keep('a', 'a2')
  }
})

test('events that come again, as after a crash between rows and their checkpoint, change no row', async (t) => {
  const { log, close } = await openServices(folderOf(t))
  t.teardown(close)
  const tables = new MemoryRows(() => 0)
  tables.declare(COUNTS)
  const rows = {
    get: async (table: string, scope: string, id: string) => tables.get(table, scope, id),
    put: (table: string, scope: string, id: string, row: Row) => tables.storePlace('', [{ table, scope, id, row }]),
    delete: (table: string, scope: string, id: string) => tables.storePlace('', [{ table, scope, id, row: null }]),
  } as Rows
  const tell = teller(log, COUNT, 'c')
  await tell({ kind: 'request', requested: { organizationId: 'o', rows: 3, at: 0 } })
  await tell({ kind: 'start', attempt: 1, at: 1 })
  await tell({ kind: 'finish', attempt: 1, processed: 3, result: { sum: 6 }, at: 2 })
  const events = await log.read(COUNT.stream('c'), 0, 10)
  const { apply } = jobRows(COUNT, COUNTS)
  for (const event of events) await apply(event, rows)
  const stored = tables.get('counts', 'o', 'c')
  t.match(stored, { version: 3, status: 'completed' })
  for (const event of events.slice(1)) await apply(event, rows)
  t.same(tables.get('counts', 'o', 'c'), stored)
})
