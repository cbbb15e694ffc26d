import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { openSchema } from '../../../src/engines/clickhouse-sql/history-schema.ts'
import { openChdbHistoryStore } from '../../../src/engines/chdb/chdb-history.ts'
import { transitionRoutes } from '../../../src/features/transitions/api.ts'
import type { Transition } from '../../../src/features/transitions/events.ts'
import { transitionShown } from '../../../src/features/transitions/views.ts'
import { idFrom } from '../../../src/kit/commands/ids.ts'
import { insertDecided } from '../../support/history-writers.ts'
import { folderOf } from '../../support/folder-of.ts'
import { ownerOf } from '../../support/geofence-world.ts'
import { routeCaller } from '../../support/call-route.ts'

const ORGANIZATION = idFrom('organization', 'transitions')
const START = Date.parse('2026-06-01T00:00:00Z')
const COUNT = 2_500

/** Entries and leaves of 5 trackers and 3 geofences, four of a kind at each time. */
const made = (): Transition[] =>
  Array.from({ length: COUNT }, (_, i) => ({
    kind: 'transition',
    _id: idFrom('transition', i),
    organizationId: ORGANIZATION,
    trackerId: idFrom('tracker', i % 5),
    geofenceId: idFrom('fence', i % 3),
    geofenceGroupId: idFrom('group', i % 2),
    type: i % 2 === 0 ? 'entry' : 'leave',
    at: START + Math.floor(i / 4) * 1_000,
    cause: i % 7 === 0 ? 'geofence' : 'point',
    point: {
      recordedAt: START + i * 250,
      lat: i / 100 - 12,
      lng: 180 - i / 50,
      ...(i % 2 === 0 && { speed: i / 4, altitude: -i }),
      ...(i % 100 === 0 && { attributes: { text: `"quoted", <${i}> é`, on: true } }),
    },
  }))

const open = async (t: Test) => {
  const folder = folderOf(t)
  const history = await openChdbHistoryStore({ path: join(folder, 'data'), scratchPath: join(folder, 'scratch') })
  t.teardown(() => history.close())
  await openSchema(history, { days: 36_500, runDays: 36_500 })
  const all = made()
  for (let i = 0; i < COUNT; i += 500) {
    const decided = { sourceRevision: i, ordinal: 0, sourceLoggedAt: START, decisions: all.slice(i, i + 500) }
    await insertDecided(history, { revision: i, decided }, `block ${i}`)
  }
  let visible: 'all' | string[] = 'all'
  const routes = transitionRoutes({ history, visibleTrackers: async () => visible })
  const call = routeCaller({ routes })
  const get = async (query: string) => {
    const answer = await call('GET', `/geofence-events?${query}`, { caller: ownerOf(ORGANIZATION) })
    const chunks: Uint8Array[] = []
    for await (const chunk of answer.stream ?? []) chunks.push(Buffer.from(chunk))
    const bytes = Buffer.concat(chunks)
    return { ...answer, bytes, text: bytes.toString() }
  }
  return { history, folder, all, get, see: (ids: 'all' | string[]) => void (visible = ids) }
}

test('transitions are answered in every format of the points, in the order of each', async (t) => {
  const { history, folder, all, get } = await open(t)
  const shown = all.map(transitionShown)
  const newest = [...shown].reverse()

  const json = JSON.parse((await get('')).text)
  t.strictSame(json.data, newest.slice(0, 500), 'as the live channel shows them')
  t.match(json, { status: true, page: null, limit: 500, nextCursor: String })
  const lines = (await get('format=ndjson')).text.trimEnd().split('\n')
  t.strictSame(
    lines.map((line) => JSON.parse(line)),
    newest,
  )

  const geojson = await get('format=geojson')
  t.match(geojson.headers, {
    'content-type': 'application/geo+json',
    'content-disposition': 'attachment; filename="geofence-events.geojson"',
  })
  const { features } = JSON.parse(geojson.text)
  t.same(
    features.map(({ id }: { id: string }) => id),
    shown.map(({ _id }) => _id),
    'oldest first',
  )
  const { _id, ...properties } = shown[2]
  t.strictSame(features[2], {
    type: 'Feature',
    id: _id,
    geometry: { type: 'Point', coordinates: [all[2].point.lng, all[2].point.lat, -2] },
    properties,
  })

  const csv = (await get('format=csv&order=asc')).text.trimEnd().split('\n')
  t.equal(
    csv[0],
    '_id,trackerId,geofenceId,geofenceGroupId,type,at,cause,recordedAt,lat,lng,accuracy,altitude,speed,heading,battery,attributes',
  )
  t.equal(
    csv[101],
    [
      shown[100]._id,
      shown[100].trackerId,
      shown[100].geofenceId,
      shown[100].geofenceGroupId,
      'entry',
      shown[100].at,
      'point',
      '2026-06-01T00:00:25.000Z',
      -11,
      178,
      '',
      -100,
      25,
      '',
      '',
      '"{""text"":""\\""quoted\\"", <100> é"",""on"":true}"',
    ].join(','),
  )
  t.equal(csv.length, COUNT + 1)

  const gpx = await get('format=gpx')
  t.match(gpx.headers, { 'content-type': 'application/gpx+xml' })
  t.same(
    [...gpx.text.matchAll(/<waymark:_id>([^<]*)</g)].map(([, id]) => id),
    shown.map(({ _id }) => _id),
    'oldest first',
  )
  t.match(
    gpx.text,
    `<wpt lat="${all[2].point.lat}" lon="${all[2].point.lng}"><ele>-2</ele><time>2026-06-01T00:00:00.000Z</time><name>entry ${all[2].geofenceId}</name><type>entry</type>`,
  )
  t.match(gpx.text, '<wpt lat="-12" lon="-180">', 'the antimeridian, as GPX has it')
  t.match(gpx.text, /<\/gpx>\n$/)

  const file = join(folder, 'events.parquet')
  writeFileSync(file, (await get('format=parquet')).bytes)
  const sql = `SELECT _id, trackerId, type, toUnixTimestamp64Milli(at) AS at, toUnixTimestamp64Milli(recordedAt) AS recordedAt, lat, lng, speed, accuracy, attributes
    FROM file({file:String}, 'Parquet') SETTINGS input_format_parquet_preserve_order = 1`
  const rows = await history.rows(sql, { file })
  t.strictSame(
    rows,
    [...all].reverse().map(({ _id, trackerId, type, at, point }) => ({
      _id,
      trackerId,
      type,
      at,
      recordedAt: point.recordedAt,
      lat: point.lat,
      lng: point.lng,
      speed: point.speed ?? null,
      accuracy: null,
      attributes: point.attributes ? JSON.stringify(point.attributes) : null,
    })),
  )
})

test('transitions are filtered, and walked by cursor in every format, ties included', async (t) => {
  const { all, get, see } = await open(t)
  const ids = (text: string): string[] =>
    text
      .trimEnd()
      .split('\n')
      .slice(1)
      .map((line) => line.slice(0, 36))
  for (const order of ['asc', 'desc']) {
    const expected = all
      .filter(
        ({ type, at, trackerId }) => type === 'entry' && at <= START + 100_000 && trackerId !== idFrom('tracker', 0),
      )
      .map(({ _id }) => _id)
    const filter = `type=entry&to=${START + 100_000}&trackerId=${[1, 2, 3, 4].map((i) => idFrom('tracker', i).toUpperCase()).join(',')}&order=${order}`
    const walked: string[] = []
    for (let query: string | undefined = `${filter}&format=csv&limit=7&fields=type`; query !== undefined; ) {
      const page = await get(query)
      t.ok(ids(page.text).length <= 7)
      walked.push(...ids(page.text))
      query = /^<\/api\/v3\/geofence-events\?([^>]*)>; rel="next"$/.exec(page.headers.link ?? '')?.[1]
    }
    t.same(walked, order === 'asc' ? expected : expected.reverse(), order)
  }
  t.equal(
    ids(
      (
        await get(
          `format=csv&geofenceId=${idFrom('fence', 1)}&geofenceGroupId=${idFrom('group', 1)}&from=${START + 5_000}`,
        )
      ).text,
    ).length,
    all.filter(
      (one) =>
        one.geofenceId === idFrom('fence', 1) && one.geofenceGroupId === idFrom('group', 1) && one.at >= START + 5_000,
    ).length,
  )
  const [one, , other] = all
  const named = `${one._id.toUpperCase()},${other._id},${idFrom('transition', 'none')}`
  t.same(ids((await get(`format=csv&order=asc&_id=${named}`)).text), [one._id, other._id], 'by id')
  t.same(ids((await get(`format=csv&_id=${named}&trackerId=${other.trackerId}`)).text), [other._id])
  t.strictSame(JSON.parse((await get('limit=1&fields=type,at')).text).data, [
    { _id: all[COUNT - 1]._id, type: 'leave', at: new Date(all[COUNT - 1].at).toISOString() },
  ])
  see([idFrom('tracker', 2)])
  t.equal(ids((await get('format=csv')).text).length, COUNT / 5, 'what the caller sees')
  t.equal(ids((await get(`format=csv&trackerId=${idFrom('tracker', 1)}`)).text).length, 0)
  see('all')

  const cursor = JSON.parse((await get('limit=3')).text).nextCursor
  const refused: [string, string][] = [
    ['format=xml', '/format'],
    ['limit=0', '/limit'],
    ['order=up', '/order'],
    ['type=exit', '/type'],
    ['from=yesterday', '/from'],
    ['from=2&to=1', '/to'],
    ['trackerId=bus-1', '/trackerId'],
    ['geofenceId=depot', '/geofenceId'],
    ['fields=colour', '/fields'],
    ['cursor=nonsense', '/cursor'],
    [`cursor=${cursor}&type=entry`, '/cursor'],
    [`cursor=${cursor}&order=asc`, '/cursor'],
    [`cursor=${cursor}&_id=${one._id}`, '/cursor'],
    ['_id=first', '/_id'],
    [`cursor=${cursor}&trackerId=${idFrom('tracker', 1)}`, '/cursor'],
    ['page=1', '/page'],
  ]
  for (const [query, path] of refused) t.match(await get(query), { status: 400, body: { errors: [{ path }] } }, query)
})
