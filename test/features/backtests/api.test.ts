import { test, type Test } from 'tap'
import { backtests } from '../../../projections/backtests.ts'
import { backtestRoutes } from '../../../src/features/backtests/api.ts'
import type { BacktestRequested } from '../../../src/features/backtests/events.ts'
import { type JobCommand, jobDecider } from '../../../src/kit/jobs/life.ts'
import type { BacktestResult, FoundTransition } from '../../../src/features/backtests/events.ts'
import { readResult } from '../../../src/features/backtests/read-result.ts'
import type { Transition } from '../../../src/features/transitions/events.ts'
import type { UserCaller } from '../../../src/kernel/caller.ts'
import { handleCommand } from '../../../src/kit/commands/handle-command.ts'
import { idSource } from '../../../src/kit/commands/ids.ts'
import { fingerprintOf, sealCursor } from '../../../src/kit/http/question-cursor.ts'
import { ResultWriter } from '../../../src/reactors/backtests/result-writer.ts'
import { BACKTEST, BACKTEST_BOUNDS } from '../../../src/features/backtests/views.ts'
import { JobPlaces } from '../../../src/kit/jobs/asking.ts'
import { routeCaller } from '../../support/call-route.ts'
import { folderOf } from '../../support/folder-of.ts'
import { ownerOf } from '../../support/geofence-world.ts'
import { openServices, startProjections } from '../../support/open-services.ts'
import { uuidOf } from '../../support/trace-batches.ts'

const ORGANIZATION = uuidOf('organization')
const FENCE = uuidOf('fence')
const BODY = { from: 0, to: 1_000 }

/** The routes, where every back-test is too large for one answer. */
const open = async (t: Test) => {
  const services = await openServices(folderOf(t))
  const { runner, settle } = await startProjections(services, [backtests])
  t.teardown(async () => {
    await runner.close()
    await services.close()
  })
  const { log } = services
  const routes = backtestRoutes({
    ...services,
    runBacktest: async () => ({ total: 30_000_000, rules: { debounce: { fixes: 2 } } }),
    findGeofence: async () => ({ geofenceId: FENCE, geofenceGroupId: uuidOf('group'), geofenceVersion: 1 }),
    places: new JobPlaces(services.tables, BACKTEST_BOUNDS),
    visibleTrackers: async () => 'all',
    show: (transition) => transition,
  })
  const caller = ownerOf(ORGANIZATION)
  const routed = routeCaller({ routes, settle, clock: services.clock })
  const call = (method: 'GET' | 'POST' | 'DELETE', of = '', options: object = {}) =>
    routed(method, `/geofence/${FENCE}/backtest${of}`, { caller, ...options })
  const tell = async (id: string, command: JobCommand<BacktestRequested>): Promise<void> => {
    const { wrote } = await handleCommand(log, BACKTEST.stream(id), jobDecider(BACKTEST, id), command, {
      ids: idSource(1),
      metadata: {},
    })
    if (wrote !== undefined) await settle(wrote, 60_000)
  }
  return { log, routes, call, tell, caller, services }
}

test('a job from its request to its end, for those who may read it', async (t) => {
  const { routes, call, tell, caller, log } = await open(t)
  t.ok(
    routes.every(
      ({ rollout, access }) => rollout === 'geofences' && JSON.stringify(access) === '{"permission":"view/geofence"}',
    ),
  )
  const asked = await call('POST', '', {
    body: { ...BODY, trackerIds: [uuidOf('a'), uuidOf('b')] },
    seed: Buffer.alloc(32),
  })
  const { _id } = asked.body.data
  t.match(asked, { status: 202, applied: true, headers: { location: `/api/v3/geofence/${FENCE}/backtest/${_id}` } })
  t.match(asked.body.data, {
    status: 'queued',
    total: 30_000_000,
    processed: 0,
    trackers: 2,
    debounce: { fixes: 2 },
    userId: caller.userId,
  })
  const again = await call('POST', '', {
    body: { ...BODY, trackerIds: [uuidOf('a'), uuidOf('b')] },
    seed: Buffer.alloc(32),
  })
  t.same(again.body, asked.body, 'a repeated request is the same job')
  t.equal(await log.head(BACKTEST.stream(_id)), 0)

  t.match(await call('GET', `/${_id}/transitions`), {
    status: 409,
    body: { code: 'conflict', message: /queued/ },
    headers: { 'retry-after': '1' },
  })
  await tell(_id, { kind: 'start', attempt: 1, at: 5 })
  t.match((await call('GET', `/${_id}`)).body.data, { status: 'processing' })
  t.match((await call('GET', 's?status=processing')).body, { data: [{ _id }], total: 1 })
  t.match((await call('GET', `s?_id=${_id}`)).body, { data: [{ _id }], total: 1 })
  t.match((await call('GET', `s?_id=${uuidOf('hub')}`)).body, { total: 0 })
  const colleague: UserCaller = { ...ownerOf(ORGANIZATION), hubIds: [uuidOf('hub')] }
  t.equal((await call('GET', `/${_id}`, { caller: colleague })).status, 404)
  t.equal((await call('DELETE', `/${_id}`, { caller: colleague })).status, 404)
  t.equal(
    (await call('GET', `/${_id}`, { caller: { ...colleague, userId: caller.userId } })).status,
    200,
    'whoever asked for it',
  )
  t.equal(
    (await call('GET', `/${_id}`, { caller: ownerOf(ORGANIZATION) })).status,
    200,
    'another one who sees every hub',
  )
  t.equal((await call('GET', `/${_id}`, { caller: ownerOf(uuidOf('other')) })).status, 404)
  await tell(_id, { kind: 'fail', attempt: 1, code: 'too_large', message: 'Over it.', at: 6 })
  t.match(await call('GET', `/${_id}/transitions`), { status: 409, body: { message: /Over it/ } })
  t.equal((await call('DELETE', `/${_id}`)).status, 200)
  t.equal((await call('GET', `/${_id}`)).status, 404)
  t.match((await call('GET', 's')).body, { data: [], total: 0 })
  t.match(await call('POST', '', { body: { from: 2, to: 1 } }), { status: 400, body: { errors: [{ path: '/to' }] } })
})

test('more than may wait are refused by name, and a place that is free is taken', async (t) => {
  const { call, tell, services } = await open(t)
  const made: string[] = []
  for (let i = 0; i < BACKTEST_BOUNDS.organizationMax; i++)
    made.push((await call('POST', '', { body: BODY })).body.data._id)
  t.match(await call('POST', '', { body: BODY }), {
    status: 429,
    body: { code: 'rate_limited' },
    headers: { 'retry-after': String },
  })
  t.equal(
    (await call('POST', '', { body: BODY, caller: ownerOf(uuidOf('other')) })).status,
    202,
    'another organization has its own places',
  )
  await tell(made[0], { kind: 'delete', organizationId: ORGANIZATION, at: 2 })
  const both = await Promise.all([call('POST', '', { body: BODY }), call('POST', '', { body: BODY })])
  t.same(both.map(({ status }) => status).sort(), [202, 429], 'of two at once one gets the last place')
  const elsewhere = new JobPlaces(services.tables, BACKTEST_BOUNDS)
  await t.rejects(elsewhere.keep(ORGANIZATION, 'new'), { code: 'rate_limited' }, 'whichever process is asked')
  await elsewhere.keep(ORGANIZATION, made[1])
})

test('a result is read in pages of any size, and by each one only what they see', async (t) => {
  const { log } = await open(t)
  const transitions = Array.from(
    { length: 100 },
    (_, i) => ({ _id: String(i), trackerId: `t${i % 3}`, at: i }) as unknown as Transition,
  )
  const writer = await ResultWriter.open(log, { backtestId: 'b', organizationId: 'o', attempt: 1 }, { pageBytes: 300 })
  await writer.add(transitions)
  const result = await writer.end()
  const page = async (
    limit: number,
    cursor?: string,
    trackerIds: 'all' | string[] = 'all',
    of: BacktestResult = result,
  ) => {
    let text = ''
    for await (const part of await readResult(log, {
      backtestId: 'b',
      result: of,
      limit,
      cursor,
      trackerIds,
      show: ({ at }: FoundTransition) => ({ at }),
    }))
      text += part
    return JSON.parse(text) as { data: { at: number }[]; nextCursor: string | null }
  }
  for (const [limit, trackerIds] of [
    [1, 'all'],
    [7, 'all'],
    [99, 'all'],
    [100, 'all'],
    [500, 'all'],
    [4, ['t1']],
    [500, ['t2', 't0']],
    [5, []],
  ] as const) {
    const read: number[] = []
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const { data, nextCursor } = await page(limit, cursor, trackerIds === 'all' ? 'all' : [...trackerIds])
      if (nextCursor !== null) t.equal(data.length, limit)
      read.push(...data.map(({ at }) => at))
      cursor = nextCursor
    }
    const seen = transitions.filter(
      ({ trackerId }) => trackerIds === 'all' || (trackerIds as readonly string[]).includes(trackerId),
    )
    t.strictSame(
      read,
      seen.map(({ at }) => at),
      `${limit} of ${trackerIds}`,
    )
  }
  t.same(await page(5, undefined, 'all', { first: 7, last: 6, transitions: 0 }), {
    status: true,
    data: [],
    page: null,
    limit: 5,
    nextCursor: null,
  })
  const sealed = (place: string, of = 'b'): string => sealCursor(place, fingerprintOf(of))
  for (const cursor of ['x', 'e30', sealed('9999.0'), sealed('0.-1'), sealed('0'), sealed('0.0', 'c')]) {
    await t.rejects(page(5, cursor), { code: 'invalid' }, cursor)
  }
  await t.rejects(
    page(5, undefined, 'all', { ...result, last: result.last + 1 }).then(() =>
      page(500, undefined, 'all', { ...result, last: result.last + 1 }),
    ),
    { code: 'not_found' },
  )
})
