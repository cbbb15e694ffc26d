import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { DecisionsHistory } from '../../../projections/decisions-history.ts'
import { openChdbHistoryStore } from '../../../src/engines/chdb/chdb-history.ts'
import { openSchema } from '../../../src/engines/clickhouse-sql/history-schema.ts'
import type { HistoryParameters } from '../../../src/engines/history-store.ts'
import { HistoryRows } from '../../../src/engines/clickhouse-sql/rows.ts'
import { readTripToken, tripToken } from '../../../src/features/locations/trip-token.ts'
import type { TripChange } from '../../../src/features/transitions/events.ts'
import { tripRoutes } from '../../../src/features/trips/api.ts'
import { systemClock } from '../../../src/kernel/system-clock.ts'
import { tripId } from '../../../src/reactors/matcher/detect-trips.ts'
import { routeCaller } from '../../support/call-route.ts'
import { ownerOf } from '../../support/geofence-world.ts'
import { openServices } from '../../support/open-services.ts'
import { noErasures } from '../../support/history-writers.ts'
import { folderOf } from '../../support/folder-of.ts'

const HOUR_MS = 3_600_000

const open = async (t: Test) => {
  const folder = folderOf(t)
  const services = await openServices(folder, systemClock)
  const history = await openChdbHistoryStore({ path: join(folder, 'data'), scratchPath: join(folder, 'scratch') })
  t.teardown(async () => {
    await history.close()
    await services.close()
  })
  await openSchema(history, { days: 365, runDays: 30 })
  const organizationId = randomUUID()
  const now = systemClock.now()
  const [mine, other] = [randomUUID(), randomUUID()]
  const change = (trackerId: string, startedAt: number, finishedAt?: number): TripChange => ({
    kind: finishedAt === undefined ? 'tripStarted' : 'tripFinished',
    _id: tripId(trackerId, startedAt),
    organizationId,
    trackerId,
    explicit: false,
    startedAt,
    finishedAt,
    distance: finishedAt === undefined ? 0 : 1_234.5,
    point: { recordedAt: startedAt, lat: 0, lng: 0 },
  })
  const decisions = [
    change(mine, now - 3 * HOUR_MS),
    change(mine, now - 3 * HOUR_MS, now - 2 * HOUR_MS),
    change(mine, now - HOUR_MS),
    change(other, now - 2 * HOUR_MS),
    change(other, now - 2 * HOUR_MS, now - HOUR_MS),
  ]
  const onFailure = (error: unknown) => t.fail(String(error))
  const consumer = new DecisionsHistory({ ...services, history, erasures: noErasures(), epoch: 0, onFailure })
  await consumer.load(0)
  const decided = { sourceRevision: 0, ordinal: 0, sourceLoggedAt: now, decisions }
  await consumer.handle({ revision: 0, decided }, 0)
  await consumer.close()
  const trackerIds: string[] = [mine, other]
  const [userId, vehicleId] = [randomUUID(), randomUUID()]
  let visible: 'all' | string[] = 'all'
  let isBehind = false
  const listed = new Set<string>()
  const lagging = {
    rows: async <R extends object>(...asked: [string, HistoryParameters?]) =>
      isBehind ? [] : history.rows<R>(...asked),
  }
  const routes = tripRoutes({
    tables: new HistoryRows(lagging, systemClock, async () => void (isBehind = false)),
    visibleTrackers: async () => visible,
    seesTracker: async (_caller, trackerId) => visible === 'all' || visible.includes(trackerId),
    trackersOf: async (_organizationId, field, ids) =>
      ids.includes(userId) && field === 'userId'
        ? trackerIds
        : ids.includes(vehicleId) && field === 'vehicleId'
          ? [other]
          : [],
    ownsTracker: async (owner, trackerId) => owner === organizationId && trackerIds.includes(trackerId),
    tripToken: (trackerId, startedAt) => tripToken(services.keyring, trackerId, startedAt),
    readTripToken: (token) => readTripToken(services.keyring, token),
    tripId,
    runningMeters: async (trips) => trips.map(() => 77),
    readTrack: async (_organizationId, trackerId, from, to) =>
      (async function* () {
        yield new TextEncoder().encode(JSON.stringify([{ trackerId, from, to, isWhole: listed.has(trackerId) }]))
      })(),
    pointsListed: async (trackerId) => listed.add(trackerId),
  })
  const call = routeCaller({ routes })
  const limit = (ids: string[]): void => void (visible = ids)
  return {
    call,
    caller: ownerOf(organizationId),
    mine,
    other,
    userId,
    vehicleId,
    now,
    services,
    limit,
    routes,
    lag: () => void (isBehind = true),
  }
}

test('a trip that the history does not have yet is waited for', async (t) => {
  const { call, caller, lag } = await open(t)
  const { body } = await call('GET', '/trips', { caller })
  lag()
  t.match(await call('GET', `/trip/${body.data[0]._id}`, { caller }), { body: { data: { _id: body.data[0]._id } } })
})

test('trips are listed newest first, filtered, paged, and read by id', async (t) => {
  const { call, caller, mine, other, userId, vehicleId, now, limit } = await open(t)
  const { body } = await call('GET', '/trips', { caller })
  t.match(body, {
    total: 3,
    data: [
      {
        trackerId: mine,
        state: 'running',
        finishedAt: null,
        distance: 77,
        startedAt: new Date(now - HOUR_MS).toISOString(),
      },
      { trackerId: other, state: 'finished', distance: 1_234.5, finishedAt: new Date(now - HOUR_MS).toISOString() },
      { trackerId: mine, state: 'finished' },
    ],
  })
  t.strictSame((await call('GET', `/trip/${body.data[1]._id}`, { caller })).body.data, body.data[1])
  t.match((await call('GET', `/trips?trackerId=${mine}&state=finished`, { caller })).body, { total: 1 })
  t.match((await call('GET', `/trips?trackerId=${mine.toUpperCase()}`, { caller })).body, { total: 2 })
  for (const [query, total] of [
    [`userId=${userId}`, 3],
    [`userId=${userId.toUpperCase()}&trackerId=${mine}`, 2],
    [`vehicleId=${vehicleId}`, 1],
    [`userId=${userId}&vehicleId=${vehicleId}`, 1],
    [`vehicleId=${vehicleId}&trackerId=${mine}`, 0],
    [`vehicleId=${userId}`, 0],
    [`_id=${body.data[0]._id},${body.data[2]._id}`, 2],
    [`_id=${vehicleId}`, 0],
  ] as const)
    t.match((await call('GET', `/trips?${query}`, { caller })).body, { total }, query)
  t.match(await call('GET', '/trips?userId=me', { caller }), { status: 400, body: { errors: [{ path: '/userId' }] } })
  t.match(await call('GET', '/trips?from=2&to=1', { caller }), { status: 400, body: { errors: [{ path: '/to' }] } })
  t.match(
    (await call('GET', `/trips?from=${encodeURIComponent(new Date(now - 2 * HOUR_MS).toISOString())}`, { caller }))
      .body,
    { total: 2 },
  )
  t.match((await call('GET', `/trips?to=${now - 2 * HOUR_MS}`, { caller })).body, { total: 2 })
  const page = await call('GET', '/trips?limit=2', { caller })
  t.match((await call('GET', `/trips?limit=2&cursor=${page.body.nextCursor}`, { caller })).body, {
    data: [{ trackerId: mine, state: 'finished' }],
    nextCursor: null,
  })
  t.match(await call('GET', '/trips?from=yesterday', { caller }), { status: 400 })
  limit([other])
  t.match((await call('GET', '/trips', { caller })).body, { total: 1, data: [{ trackerId: other }] })
  t.match((await call('GET', `/trips?trackerId=${mine}`, { caller })).body, { total: 0, data: [] })
  t.match((await call('GET', `/trips?userId=${userId}`, { caller })).body, { total: 1 }, 'of what the caller may see')
  t.match(await call('GET', `/trip/${body.data[0]._id}`, { caller }), { status: 404 })
  t.match(await call('GET', `/trip/${body.data[0]._id}`, { caller: ownerOf(randomUUID()) }), { status: 404 })
})

test('a tracking token shows its trip and points, and nothing until the trip is decided', async (t) => {
  const { caller, mine, now, services, routes, call } = await open(t)
  const tracking = routes.find(({ operationId }) => operationId === 'readTracking')
  const read = async (token: string, who = caller) => {
    const reply = await tracking?.handler({
      caller: who,
      params: { token },
      signal: new AbortController().signal,
    } as never)
    let text = ''
    if (reply?.stream === undefined) return reply?.body
    for await (const chunk of reply.stream) text += typeof chunk === 'string' ? chunk : new TextDecoder().decode(chunk)
    return JSON.parse(text)
  }
  const finished = await read(tripToken(services.keyring, mine, now - 3 * HOUR_MS))
  t.match(finished, {
    status: true,
    data: {
      trip: { state: 'finished', trackerId: mine },
      points: [{ from: now - 3 * HOUR_MS, to: now - 2 * HOUR_MS, isWhole: true }],
    },
  })
  t.strictSame(await read(tripToken(services.keyring, mine, now)), { data: { trip: null, points: [] } })
  await t.rejects(read(tripToken(services.keyring, mine, now), ownerOf(randomUUID())), { code: 'not_found' })
  await t.rejects(read(tripToken(services.keyring, mine, now - 3 * HOUR_MS), ownerOf(randomUUID())), {
    code: 'not_found',
  })
  t.match(await call('GET', '/location-history/tracking/nonsense', { caller }), { status: 404 })
})
