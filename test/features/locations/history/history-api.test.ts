import { join } from 'node:path'
import { test, type Test } from 'tap'
import { PointBlock } from '../../../../projections/location-history-block.ts'
import { POINTS } from '../../../../src/engines/clickhouse-sql/history-tables.ts'
import { openSchema } from '../../../../src/engines/clickhouse-sql/history-schema.ts'
import { openChdbHistoryStore } from '../../../../src/engines/chdb/chdb-history.ts'
import { historyRoutes } from '../../../../src/features/locations/history/api.ts'
import { routeCaller } from '../../../support/call-route.ts'
import { folderOf } from '../../../support/folder-of.ts'
import { ownerOf } from '../../../support/geofence-world.ts'
import { entriesOf, uuidOf } from '../../../support/trace-batches.ts'

const ORGANIZATION = uuidOf('organization')
const TRACKERS = [0, 1, 2].map((i) => uuidOf(`tracker ${i}`))
const START = Date.parse('2026-06-01T00:00:00Z')
const USER = uuidOf('user')
const HUB = uuidOf('hub')

const open = async (t: Test) => {
  const folder = folderOf(t)
  const history = await openChdbHistoryStore({ path: join(folder, 'data'), scratchPath: join(folder, 'scratch') })
  t.teardown(() => history.close())
  await openSchema(history, { days: 36_500, runDays: 36_500 })
  const block = new PointBlock(1_000)
  const points = Array.from({ length: 300 }, (_, i) => ({
    organizationId: ORGANIZATION,
    trackerId: TRACKERS[i % 3],
    recordedAt: START + Math.floor(i / 3) * 1_000,
    latE7: i,
    lngE7: -i,
    flags: 0,
  }))
  for (const entry of entriesOf(points)) if (entry.kind === 'points') block.add(entry.batch, 0, entry.revision)
  await history.insert(POINTS, block.encode(), 'points')
  let visible: 'all' | string[] = 'all'
  const routes = historyRoutes({
    history,
    visibleTrackers: async () => visible,
    trackersOf: async (_organizationId, field, ids) =>
      field === 'userId' && ids.includes(USER)
        ? [TRACKERS[1]]
        : field === 'hubIds' && ids.includes(HUB)
          ? TRACKERS.slice(1)
          : [],
    trackerNames: async (_organizationId, ids) => ids.map((id) => `Bus ${TRACKERS.indexOf(id)}`),
  })
  const call = routeCaller({ routes })
  const get = async (path: string) => {
    const answer = await call('GET', path, { caller: ownerOf(ORGANIZATION) })
    const chunks: Uint8Array[] = []
    for await (const chunk of answer.stream ?? []) chunks.push(Buffer.from(chunk))
    return { ...answer, text: Buffer.concat(chunks).toString() }
  }
  return { get, see: (ids: 'all' | string[]) => void (visible = ids) }
}

test('bad parameters are named, whatever they look like to a parser of numbers', async (t) => {
  const { get } = await open(t)
  const refused: [string, string][] = [
    ['from=x', '/from'],
    ['from=2&to=1', '/to'],
    ['bbox=1,2,3', '/bbox'],
    ['bbox=0,95,1,96', '/bbox'],
    ['simplify=-1', '/simplify'],
    ['simplify=1e400', '/simplify'],
    ['interval=0', '/interval'],
    ['interval=-1e999', '/interval'],
    ['format=kml', '/format'],
    ['geometry=lines', '/geometry'],
    ['geometry=lines&format=gpx', '/geometry'],
    ['geometry=circles&format=geojson', '/geometry'],
    ['order=up', '/order'],
    ['limit=0', '/limit'],
    ['limit=9007199254740993', '/limit'],
    ['cursor=abc', '/cursor'],
    ['colour=red', '/colour'],
    ['trackerId=bus-1', '/trackerId'],
    ['trackerId=', '/trackerId'],
    ['userId=', '/userId'],
    ['vehicleId=van', '/vehicleId'],
    ['hubId=main', '/hubId'],
    ['fields=colour', '/fields'],
  ]
  for (const [query, path] of refused)
    t.match(await get(`/location-histories?${query}`), { status: 400, body: { errors: [{ path }] } }, query)
  t.match(
    await get(`/location-histories?limit=${Number.MAX_SAFE_INTEGER - 1}`),
    { status: 200 },
    'there is no largest limit',
  )
  t.match(await get(`/location-history/${TRACKERS[0]}.${START.toString(36)}?fields=colour`), {
    status: 400,
    body: { errors: [{ path: '/fields' }] },
  })
  for (const id of ['x', TRACKERS[0], `${TRACKERS[0]}.0`])
    t.match(await get(`/location-history/${id}`), { status: 404 }, id)
})

test('a cursor under other filters is 400', async (t) => {
  const { get } = await open(t)
  const first = `trackerId=${TRACKERS[0]}&limit=3`
  const { nextCursor } = JSON.parse((await get(`/location-histories?${first}`)).text)
  t.equal(JSON.parse((await get(`/location-histories?${first}&cursor=${nextCursor}`)).text).data.length, 3)
  for (const query of [
    `trackerId=${TRACKERS[1]}`,
    `userId=${USER}`,
    '',
    `trackerId=${TRACKERS[0]}&from=1`,
    `${first}&hubId=${HUB}`,
  ]) {
    t.match(
      await get(`/location-histories?${query}&cursor=${nextCursor}`),
      { status: 400, body: { errors: [{ path: '/cursor' }] } },
      query,
    )
  }
})

test('several trackers and hubs are asked for, and what all conditions mean is answered', async (t) => {
  const { get, see } = await open(t)
  const asked = async (query: string) => [
    ...new Set(
      JSON.parse((await get(`/location-histories?${query}`)).text).data.map(({ trackerId }: { trackerId: string }) =>
        TRACKERS.indexOf(trackerId),
      ),
    ),
  ]
  t.same((await asked(`hubId=${HUB}`)).sort(), [1, 2])
  t.same((await asked(`hubId=${uuidOf('other hub')}&hubId=${HUB.toUpperCase()}`)).sort(), [1, 2])
  t.same((await asked(`trackerId=${TRACKERS[0]}&trackerId=${TRACKERS[1]}&hubId=${HUB}`)).sort(), [1])
  t.same(await asked(`hubId=${uuidOf('other hub')}`), [])
  see([TRACKERS[2]])
  t.same(await asked(`hubId=${HUB}`), [2], 'of what the caller sees')
})

test('points are asked for by id', async (t) => {
  const { get, see } = await open(t)
  const rows = async (query: string): Promise<{ _id: string; trackerId: string; recordedAt: string }[]> =>
    JSON.parse((await get(`/location-histories?${query}`)).text).data
  const all = await rows('limit=300&order=asc')
  const some = TRACKERS.map((id, i) => all.filter(({ trackerId }) => trackerId === id)[20 * i + 5])
  const ids = some.map(({ _id }) => _id)
  t.same(await rows(`order=asc&_id=${ids.join(',')}`), some)
  t.same(await rows(`_id=${ids.map((id) => id.toUpperCase()).join('&_id=')}`), [...some].reverse())
  // The time of one at the tracker of another is no point that was asked for.
  const [first, second] = all.filter(({ recordedAt }) => recordedAt === all[0].recordedAt)
  const later = all.find(({ _id, trackerId }) => trackerId === first.trackerId && _id !== first._id)!
  t.same(await rows(`_id=${second._id},${later._id}&order=asc`), [second, later])
  t.same(await rows(`_id=${ids.join(',')}&trackerId=${some[1].trackerId}`), [some[1]])
  t.same(await rows(`_id=${ids.join(',')}&from=${some[1].recordedAt}&order=asc`), some.slice(1))
  t.same(await rows(`_id=${TRACKERS[0]},nothing`), [])
  const simplified = await get(`/location-histories?format=csv&simplify=5&_id=${ids.join(',')}`)
  t.equal(simplified.text.trimEnd().split('\n').length, 4)
  see([TRACKERS[2]])
  t.same(
    await rows(`_id=${ids.join(',')}`),
    some.filter(({ trackerId }) => trackerId === TRACKERS[2]),
    'of what the caller sees',
  )
})

test('lines carry the names of trackers', async (t) => {
  const { get } = await open(t)
  const { headers, text } = await get('/location-histories?format=geojson&geometry=lines&simplify=0')
  t.match(headers, { 'content-type': 'application/geo+json' })
  t.match(
    JSON.parse(text)
      .features.map(({ properties }: { properties: { name: string } }) => properties.name)
      .sort(),
    ['Bus 0', 'Bus 1', 'Bus 2'],
  )
})

test('the link of each page leads to the next one, with the question', async (t) => {
  const { get, see } = await open(t)
  const rows: string[] = []
  for (
    let query: string | undefined = `userId=${USER.toUpperCase()}&format=csv&fields=lat&limit=7&order=asc`;
    query !== undefined;
  ) {
    const { text, headers } = await get(`/location-histories?${query}`)
    rows.push(...text.trim().split('\n').slice(1))
    query = /^<\/api\/v3\/location-histories\?([^>]*)>; rel="next"$/.exec(headers.link ?? '')?.[1]
  }
  t.same(
    rows,
    Array.from(
      { length: 100 },
      (_, i) =>
        `${TRACKERS[1]}.${(START + i * 1_000).toString(36)},${
          (i * 3 + 1) / 1e7 < 1e-6
            ? `0.000000${i * 3 + 1}`
            : `0.${String(i * 3 + 1)
                .padStart(7, '0')
                .replace(/0+$/, '')}`
        }`,
    ),
  )
  t.strictSame(
    (await get(`/location-history/${TRACKERS[2].toUpperCase()}.${START.toString(36)}?fields=lng`)).body.data,
    { _id: `${TRACKERS[2]}.${START.toString(36)}`, lng: -2e-7 },
  )
  see([TRACKERS[0]])
  t.same(JSON.parse((await get(`/location-histories?userId=${USER}`)).text).data, [], 'of what the caller sees')
  t.match(await get(`/location-history/${TRACKERS[2]}.${START.toString(36)}`), { status: 404 })
})
