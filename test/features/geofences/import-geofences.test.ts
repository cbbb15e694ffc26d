import { performance } from 'node:perf_hooks'
import { test } from 'tap'
import { importGeofences } from '../../../src/features/geofences/import-geofences.ts'
import { idSource } from '../../../src/kit/commands/ids.ts'
import { openGeofences } from '../../support/geofence-world.ts'
import { readData, withoutData } from '../../support/shared-data.ts'
import { ringOf } from '../../support/ring.ts'

const square = (at: number) => [ringOf(at, 0, at + 0.01, 0.01)]
const feature = (geometry: object | null, properties: object | null = { name: 'n' }) => ({
  type: 'Feature',
  geometry,
  properties,
})
const bytesOf = (value: unknown): Uint8Array =>
  new TextEncoder().encode(typeof value === 'string' ? value : JSON.stringify(value))

test('each good feature becomes a geofence, each bad one is named', async (t) => {
  const { call, caller } = await openGeofences(t)
  const geofenceGroupId = (await call('POST', '/geofence-group', { caller, body: { name: 'g' } })).body.data._id
  const features = [
    feature({ type: 'Polygon', coordinates: square(1) }, { name: 'polygon', colour: 'red', size: 3 }),
    feature(
      {
        type: 'Polygon',
        coordinates: [
          [
            [0, 0],
            [1, 1],
            [1, 0],
            [0, 1],
            [0, 0],
          ],
        ],
      },
      { name: 'bow-tie' },
    ),
    feature(
      {
        type: 'Polygon',
        coordinates: [
          [
            [0, 0],
            [1, 0],
            [1, 1],
            [0, 1],
          ],
        ],
      },
      { name: 'unclosed' },
    ),
    feature({ type: 'Polygon', coordinates: [...square(1), ...square(2)] }, { name: 'hole outside' }),
    feature({ type: 'Point', coordinates: [13.4, 52.5] }, { name: 'circle', radius: 50 }),
    feature({ type: 'Point', coordinates: [13.4, 52.5] }, { name: 'no radius' }),
    feature(
      {
        type: 'LineString',
        coordinates: [
          [1, 1],
          [2, 2],
        ],
      },
      { name: 'corridor', width: 30, radius: 7 },
    ),
    feature(
      {
        type: 'LineString',
        coordinates: [
          [1, 1],
          [2, 2],
        ],
      },
      { name: 'no width' },
    ),
    feature({ type: 'Polygon', coordinates: square(200) }, { name: 'out of range' }),
    feature({ type: 'Polygon', coordinates: square(3) }, { title: 'no name' }),
    feature(
      { type: 'Polygon', coordinates: [Array.from({ length: 40_000 }, (_, i) => [i / 1e4, 0])] },
      { name: 'many' },
    ),
    feature({ type: 'GeometryCollection', geometries: [] }, { name: 'collection' }),
    feature(null),
    feature({ type: 'Polygon', coordinates: square(4) }, null),
    null,
    feature({ type: 'Polygon', coordinates: JSON.parse('['.repeat(3_000) + ']'.repeat(3_000)) }, { name: 'deep' }),
    feature({ type: 'MultiPolygon', coordinates: [square(5), square(6)] }, { name: 7 }),
    feature(
      {
        type: 'Polygon',
        coordinates: [ringOf(179, 0, -179, 1)],
      },
      { name: 'antimeridian', text: 'x'.repeat(70_000) },
    ),
    feature({ type: 'Polygon', coordinates: square(7), crs: 'x' }, { name: 'foreign member' }),
  ]
  const answer = await call('POST', `/geofences/import?geofenceGroupId=${geofenceGroupId}`, {
    caller,
    body: bytesOf({ type: 'FeatureCollection', features }),
  })
  t.match(answer, { status: 200, body: { data: { created: 4 } }, applied: true })
  t.notOk(answer.headers['waymark-pending'], 'all are in force')
  t.strictSame(
    answer.body.data.rejected.map(({ index }: { index: number }) => index),
    [1, 2, 3, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 17, 18],
  )
  t.ok(
    answer.body.data.rejected.every(
      ({ code, message }: { code: string; message: string }) => code === 'invalid' && message.length > 5,
    ),
    JSON.stringify(answer.body.data.rejected),
  )
  const listed = (await call('GET', '/geofences?sortBy=name', { caller })).body.data
  t.match(listed, [
    { name: '7', geometry: { type: 'MultiPolygon' } },
    { name: 'circle', center: { lat: 52.5, lng: 13.4 }, radius: 50 },
    { name: 'corridor', geometry: { type: 'LineString' }, width: 30, attributes: { radius: 7 } },
    { name: 'polygon', attributes: { colour: 'red', size: 3 }, isActive: true, geofenceGroupId },
  ])
  for (const [body, why] of [
    ['{', 'broken'],
    ['[1]', 'a list'],
    [{ type: 'Feature' }, 'one feature'],
    [{ type: 'FeatureCollection' }, 'no features'],
    ['['.repeat(1e6), 'deep'],
  ] as const) {
    t.match(
      await call('POST', `/geofences/import?geofenceGroupId=${geofenceGroupId}`, { caller, body: bytesOf(body) }),
      { status: 400 },
      why,
    )
  }
  t.match(
    await call('POST', `/geofences/import?geofenceGroupId=${caller.userId}`, { caller, body: bytesOf('{}') }),
    { status: 400 },
    'unknown group',
  )
})

test('a feature is held to the limits of a geofence: characters of its name, and numbers that can be kept', async (t) => {
  const { call, caller } = await openGeofences(t)
  const geofenceGroupId = (await call('POST', '/geofence-group', { caller, body: { name: 'g' } })).body.data._id
  const circle = (properties: object) =>
    feature({ type: 'Point', coordinates: [13.4, 52.5] }, { radius: 5, ...properties })
  const features = [
    circle({ name: '🚚'.repeat(200) }),
    circle({ name: '🚚'.repeat(201) }),
    circle({ name: 'e\u0301'.repeat(200) }),
    circle({ name: 'heavy', loads: [{ kg: 'KG' }] }),
  ]
  const text = JSON.stringify({ type: 'FeatureCollection', features }).replace('"KG"', '1e400')
  const { body } = await call('POST', `/geofences/import?geofenceGroupId=${geofenceGroupId}`, {
    caller,
    body: bytesOf(text),
  })
  t.match(body.data, {
    created: 2,
    rejected: [
      { index: 1, message: '/properties/name must not be over 200 characters' },
      { index: 3, message: '/properties/loads/0/kg must be a number within 1.8e308' },
    ],
  })
  const names = (await call('GET', '/geofences', { caller })).body.data.map(({ name }: { name: string }) => name)
  t.same(new Set(names), new Set(['🚚'.repeat(200), 'é'.repeat(200)]))
})

test('an import that is repeated makes the same geofences', async (t) => {
  const { services, shapes, caller, call } = await openGeofences(t)
  const { organizationId } = caller
  const features = [
    feature({ type: 'Polygon', coordinates: square(1) }),
    feature(null),
    feature({ type: 'Polygon', coordinates: square(2) }),
  ]
  const bytes = bytesOf({ type: 'FeatureCollection', features })
  const request = () => ({
    bytes,
    nameProperty: 'name',
    organizationId,
    geofenceGroupId: 'g',
    now: 1,
    ids: idSource(1, Buffer.alloc(32, 7)),
    metadata: {},
    signal: new AbortController().signal,
  })
  const first = await importGeofences(services, shapes, request())
  t.match(first, { created: 2, rejected: [{ index: 1 }] })
  t.strictSame(await importGeofences(services, shapes, request()), first)
  await call('POST', '/geofence-group', { caller, body: { name: 'waits for the tables' } })
  t.match((await call('GET', '/geofences', { caller })).body, { total: 2 })
})

test('the counties of a country are imported while the event loop goes on', {
  skip: withoutData,
}, async (t) => {
  const { call, caller } = await openGeofences(t)
  const geofenceGroupId = (await call('POST', '/geofence-group', { caller, body: { name: 'g' } })).body.data._id
  const body = new TextEncoder().encode(readData('polygons/us-counties.geojson.gz'))
  let longestMs = 0
  let at = performance.now()
  const timer = setInterval(() => {
    longestMs = Math.max(longestMs, performance.now() - at - 1)
    at = performance.now()
  }, 1)
  const answer = await call('POST', `/geofences/import?geofenceGroupId=${geofenceGroupId}&nameProperty=GEOID`, {
    caller,
    body,
  })
  clearInterval(timer)
  t.equal(answer.body.data.created + answer.body.data.rejected.length, 3_220)
  t.ok(answer.body.data.created > 3_200, JSON.stringify(answer.body.data.rejected.slice(0, 3)))
  t.comment(`longest pause of the event loop ${longestMs.toFixed(1)} ms`)
  t.equal((await call('GET', '/geofences?limit=1&fields=name', { caller })).body.total, answer.body.data.created)
})

test('a file of more features than it may have is refused as a whole', async (t) => {
  const { call, caller } = await openGeofences(t)
  const geofenceGroupId = (await call('POST', '/geofence-group', { caller, body: { name: 'g' } })).body.data._id
  const body = bytesOf(`{"type":"FeatureCollection","features":[${'1,'.repeat(500_000)}1]}`)
  const answer = await call('POST', `/geofences/import?geofenceGroupId=${geofenceGroupId}`, { caller, body })
  t.match(answer, { status: 400, body: { message: /500000 features/ } })
})
