import { join } from 'node:path'
import { test, type Test } from 'tap'
import { openLmdbTableStore } from '../../../src/engines/lmdb-tables/lmdb-tables.ts'
import { livePositionsRoute } from '../../../src/features/locations/live-positions-api.ts'
import { LATEST_POSITIONS, TRACKERS_TABLE } from '../../../src/features/locations/views.ts'
import { distanceMeters } from '../../../src/geo/distance.ts'
import { idFrom } from '../../../src/kit/commands/ids.ts'
import type { UserCaller } from '../../../src/kernel/caller.ts'
import { routeCaller } from '../../support/call-route.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { folderOf } from '../../support/folder-of.ts'
import { ownerOf } from '../../support/geofence-world.ts'

const ORGANIZATION = idFrom('organization', 'live')
const HUBS = [idFrom('hub', 0), idFrom('hub', 1)]
const TRACKERS = 1_203

/** Positions in a grid of 10 m steps; every third tracker belongs to the second hub. */
const open = async (t: Test) => {
  const clock = new FakeClock()
  const tables = await openLmdbTableStore({ path: join(folderOf(t), 'tables'), clock })
  t.teardown(() => tables.close())
  await tables.declare(LATEST_POSITIONS)
  await tables.declare({ name: TRACKERS_TABLE, version: 1 })
  const ids = Array.from({ length: TRACKERS }, (_, i) => idFrom('tracker', i)).sort()
  const at = (trackerId: string, lat: number, lng: number) => ({
    table: LATEST_POSITIONS.name,
    scope: ORGANIZATION,
    id: trackerId,
    row: {
      trackerId,
      recordedAt: clock.now(),
      loggedAt: clock.now(),
      lat,
      lng,
      flags: 0,
      accuracy: 0,
      altitude: 0,
      speed: 0,
      heading: 0,
      battery: 0,
    },
  })
  const gone = (id: string) => ({ table: LATEST_POSITIONS.name, scope: ORGANIZATION, id, row: null })
  await tables.commit(
    ids.map((id, i) => ({
      table: TRACKERS_TABLE,
      scope: ORGANIZATION,
      id,
      row: { _id: id, name: `Van ${i}`, hubIds: [HUBS[i % 3 === 0 ? 1 : 0]] },
    })),
  )
  await tables.commit(ids.map((id, i) => at(id, 520_000_000 + (i % 40) * 900, 210_000_000 + Math.floor(i / 40) * 900)))
  const services = { tables, statusAt: () => 'online' as const }
  const live = livePositionsRoute(services)
  const call = routeCaller({ routes: [live], clock })
  const get = async (query: string, caller: Partial<UserCaller> = {}) => {
    const answer = await call('GET', `/live-positions?${query}`, { caller: { ...ownerOf(ORGANIZATION), ...caller } })
    const body = answer.stream === undefined ? answer.body : await read(answer.stream)
    return {
      ...answer,
      body,
      ids: (body.data ?? []).map(({ trackerId }: { trackerId: string }) => trackerId) as string[],
    }
  }
  const stream = async (query: object) =>
    read((await live.handler({ caller: ownerOf(ORGANIZATION), query, now: clock.now() } as never)).stream ?? [])
  return { get, stream, at, gone, ids, tables }
}

const read = async (parts: AsyncIterable<Uint8Array | string> | Iterable<string>) => {
  const whole: Buffer[] = []
  for await (const part of parts) whole.push(Buffer.from(part as Uint8Array))
  return JSON.parse(Buffer.concat(whole).toString())
}

/** Every page of a walk; `between` runs after each. */
const walk = async (
  get: Awaited<ReturnType<typeof open>>['get'],
  query: string,
  between = async (_ids: string[]) => {},
  caller: Partial<UserCaller> = {},
) => {
  const pages: string[][] = []
  for (let path: string | undefined = query; path !== undefined; ) {
    const page = await get(path, caller)
    pages.push(page.ids)
    await between(page.ids)
    path =
      page.body.nextCursor === null
        ? undefined
        : /^<\/api\/v3\/live-positions\?([^>]*)>; rel="next"$/.exec(page.headers.link)?.[1]
    if (page.body.nextCursor !== null && path === undefined) throw new Error(`no link: ${page.headers.link}`)
  }
  return pages
}

test('pages of positions meet each tracker once while they move, are forgotten and appear', async (t) => {
  const { get, stream, at, gone, ids, tables } = await open(t)
  const first = await get('limit=100')
  t.match(first.body, { total: TRACKERS, page: 1, limit: 100, nextCursor: String })
  t.same(first.ids, ids.slice(0, 100))
  let step = 0
  const met = await walk(get, 'limit=100', async (page) => {
    step++
    // What was met is forgotten, so that every later place of the table moves up.
    await tables.commit([
      ...[ids[step * 7], page[page.length - 1], ids.at(-1) as string].map((id) => at(id, step * 1e6, -step * 1e6)),
      ...page.slice(0, 40).map(gone),
    ])
  })
  t.same(met.flat(), ids, 'by tracker, each once')
  t.same(
    met.map(({ length }) => length).slice(0, -1),
    Array.from({ length: 12 }, () => 100),
  )
  await tables.commit(ids.map((id) => at(id, 0, 0)))
  t.match(await stream({}), { total: TRACKERS, page: 1, limit: null, nextCursor: null, data: { length: TRACKERS } })
  const { nextCursor } = (await get('limit=1000')).body
  t.match(
    await stream({ cursor: nextCursor }),
    { total: TRACKERS, page: null, nextCursor: null, data: ids.slice(1000).map((trackerId) => ({ trackerId })) },
    'the rest',
  )
})

test('pages by number, filters, fields, hubs', async (t) => {
  const { get, ids } = await open(t)
  t.same((await get('page=3&limit=500')).ids, ids.slice(1000))
  t.match((await get('page=2')).body, { page: 2, limit: 20, data: { length: 20 }, total: TRACKERS })
  t.match((await get('page=4&limit=500')).body, { data: [], nextCursor: null, total: TRACKERS })
  t.strictSame((await get('limit=1&fields=lat')).body.data, [{ trackerId: ids[0], lat: 52 }])
  const ofHub = ids.filter((_, i) => i % 3 === 0)
  t.same((await walk(get, 'limit=77', undefined, { hubIds: [HUBS[1]] })).flat(), ofHub, 'the hubs of the caller')
  t.match((await get(`limit=77&hubId=${HUBS[1]}`)).body, { total: ofHub.length })
  t.match((await get(`limit=77&hubId=${HUBS[1]},${HUBS[0]}`)).body, { total: TRACKERS })
  t.match((await get('limit=77&teamId=null&hubId=null')).body, { total: 0 })
  t.match((await get('limit=77&teamId=null&status=online,stale,offline')).body, { total: TRACKERS })
  t.equal((await get('hubId=north')).status, 400)
  t.same((await get(`limit=77&hubId=${HUBS[0]}`, { hubIds: [HUBS[1]] })).body, {
    status: true,
    data: [],
    total: 0,
    page: 1,
    limit: 77,
    nextCursor: null,
  })
})

test('positions by tracker, user and vehicle', async (t) => {
  const { get, ids, tables } = await open(t)
  const [userId, vehicleId, unseen] = ['user', 'vehicle', 'unseen'].map((name) => idFrom(name, 0))
  const row = (at: number, more: object) => ({
    table: TRACKERS_TABLE,
    scope: ORGANIZATION,
    id: ids[at],
    row: { _id: ids[at], name: 'Van', hubIds: [HUBS[0]], ...more },
  })
  await tables.commit([row(1, { userId, userHubIds: [HUBS[0]] }), row(2, { vehicleId }), row(4, { vehicleId })])
  await tables.commit([row(5, { userId: unseen, userHubIds: [HUBS[1]] })])
  const some = [ids[7], ids[3], ids[900], ids[3].toUpperCase(), idFrom('tracker', 'silent')]
  t.same((await get(`trackerId=${some}`)).ids, [ids[3], ids[7], ids[900]])
  t.same((await walk(get, `trackerId=${some}&limit=1`)).flat(), [ids[3], ids[7], ids[900]])
  t.match((await get(`trackerId=${some}&limit=1`)).body, { total: 3 })
  t.same((await get(`trackerId=${some}&near=52,21`)).ids, [ids[3], ids[7], ids[900]])
  t.same((await get(`trackerId=${some}`, { hubIds: [HUBS[1]] })).ids, [ids[3], ids[900]], 'of the hubs of the caller')
  const seesUsers = { permissions: new Set(['view/location-history', 'view/user']) }
  t.same((await get(`userId=${userId.toUpperCase()}`, seesUsers)).ids, [ids[1]])
  t.same((await get(`userId=${unseen}`, seesUsers)).ids, [ids[5]])
  t.same((await get(`userId=${unseen}`, { ...seesUsers, hubIds: [HUBS[0]] })).ids, [], 'a user whom they do not see')
  t.same((await get(`vehicleId=${vehicleId}`)).ids, [ids[2], ids[4]])
  t.match((await get('vehicleId=null&userId=null&limit=1', seesUsers)).body, { total: TRACKERS - 4 })
})

test('a large page is written as it is read; the next one is named in its body', async (t) => {
  const { get, ids, tables } = await open(t)
  await tables.commit(
    ids.map((id) => ({
      table: TRACKERS_TABLE,
      scope: ORGANIZATION,
      id,
      row: { _id: id, name: 'Van'.repeat(1_000), hubIds: [HUBS[0]] },
    })),
  )
  const page = await get('limit=1000')
  t.same(page.ids, ids.slice(0, 1_000))
  t.notOk(page.headers.link, 'over 2 MiB it was not held')
  t.same((await get(`limit=1000&cursor=${page.body.nextCursor}`)).ids, ids.slice(1_000))
})

test('near: the nearest first, in pages', async (t) => {
  const { get, ids } = await open(t)
  const meters = (i: number): number =>
    distanceMeters(210_010_000, 520_010_000, 210_000_000 + Math.floor(i / 40) * 900, 520_000_000 + (i % 40) * 900)
  const expected = ids
    .map((id, i) => ({ id, meters: meters(i) }))
    .filter(({ meters }) => meters <= 90)
    .sort((a, b) => a.meters - b.meters || (a.id < b.id ? -1 : 1))
  t.ok(expected.length > 30)
  const met = await walk(get, 'near=52.001,21.001&radius=90&limit=40')
  t.same(
    met.flat(),
    expected.map(({ id }) => id),
  )
  t.match((await get('near=52.001,21.001&radius=90&limit=40')).body, { total: expected.length })
})

test('what is no page is refused by its name', async (t) => {
  const { get } = await open(t)
  const cursor = (await get('limit=2')).body.nextCursor
  const refused: [string, string][] = [
    ['limit=0', '/limit'],
    ['page=0', '/page'],
    [`limit=2&page=1&cursor=${cursor}`, '/page'],
    ['limit=2&cursor=nonsense', '/cursor'],
    [`limit=2&cursor=${cursor}&status=online`, '/cursor'],
    ['fields=colour', '/fields'],
    ['sort=name', '/sort'],
    ['radius=5', '/radius'],
  ]
  for (const [query, path] of refused) t.match(await get(query), { status: 400, body: { errors: [{ path }] } }, query)
  const forged = Buffer.from(
    Buffer.from(cursor, 'base64url').toString().slice(0, 8) + '[{"page":3,"trackerId":"a"},1]',
  ).toString('base64url')
  t.match(await get(`limit=2&cursor=${forged}`), { status: 400 })
})
