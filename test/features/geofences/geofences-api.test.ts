import { randomUUID } from 'node:crypto'
import { test } from 'tap'
import { decodeJson } from '../../../src/kernel/event.ts'
import { FENCES_CHANGED, type FencesChanged, locationStream } from '../../../src/features/locations/events.ts'
import { openGeofences, ownerOf } from '../../support/geofence-world.ts'
import { ringOf } from '../../support/ring.ts'

const square = (lng: number, lat: number, size = 0.01) => ({
  type: 'Polygon',
  coordinates: [ringOf(lng, lat, lng + size, lat + size)],
})

test('a group and its geofences are made, read, listed, changed and deleted', async (t) => {
  const { call, caller, services } = await openGeofences(t)
  const group = await call('POST', '/geofence-group', {
    caller,
    body: { name: 'Depots', maxAccuracy: 50, debounce: { fixes: 3 } },
  })
  t.match(group, {
    status: 201,
    body: { data: { name: 'Depots', maxAccuracy: 50, debounce: { fixes: 3 }, version: 1 } },
    applied: true,
  })
  const geofenceGroupId = group.body.data._id

  const body = { name: 'Mitte', geofenceGroupId, geometry: square(13.4, 52.5), attributes: { gate: { number: 4 } } }
  const made = await call('POST', '/geofence', { caller, body })
  t.match(made, { status: 201, body: { data: { ...body, isActive: true, version: 1 } }, applied: true })
  t.notOk(made.headers['waymark-pending'], 'it is in force')
  const id = made.body.data._id
  for (const partition of [0, 1]) {
    const events = await services.log.read(locationStream(partition), 0, 10)
    const changes = events
      .filter(({ type }) => type === FENCES_CHANGED)
      .map(({ data }) => decodeJson<FencesChanged>(data))
    t.strictSame(
      changes.flatMap(({ geofences }) => geofences),
      [{ geofenceId: id, revision: 0 }],
      `partition ${partition} was told`,
    )
  }

  t.strictSame((await call('GET', `/geofence/${id}`, { caller })).body.data, made.body.data)
  const listed = await call('GET', '/geofences?fields=name,isActive', { caller })
  t.strictSame(listed.body, {
    status: true,
    data: [{ _id: id, name: 'Mitte', isActive: true }],
    total: 1,
    page: 1,
    limit: 20,
    nextCursor: null,
  })
  t.strictSame((await call('GET', `/geofences?geofenceGroupId=${geofenceGroupId}`, { caller })).body.data, [
    made.body.data,
  ])
  t.match(await call('GET', '/geofences?geofenceGroupId=depot', { caller }), {
    status: 400,
    body: { errors: [{ path: '/geofenceGroupId' }] },
  })

  const circle = await call('PATCH', `/geofence/${id}`, {
    caller,
    body: { center: { lat: 52.5, lng: 13.4 }, radius: 100, attributes: null },
  })
  t.match(circle, { status: 200, body: { data: { center: { lat: 52.5, lng: 13.4 }, radius: 100, version: 2 } } })
  t.notOk('geometry' in circle.body.data || 'attributes' in circle.body.data, 'what a circle does not have is gone')
  t.strictSame((await call('GET', `/geofence/${id}`, { caller })).body.data, circle.body.data)
  const corridor = {
    geometry: {
      type: 'LineString',
      coordinates: [
        [13, 52],
        [13.1, 52.1],
      ],
    },
    width: 40,
  }
  const { center: _center, radius: _radius, ...rest } = circle.body.data
  const replaced = await call('PUT', `/geofence/${id}`, { caller, body: { ...rest, ...corridor, isActive: false } })
  t.match(replaced, { status: 200, body: { data: { ...corridor, isActive: false, version: 3 } } })
  t.match(await call('PATCH', `/geofence/${id}`, { caller, body: { name: 'x', version: 1 } }), {
    status: 409,
    body: { code: 'stale_version', version: 3 },
  })

  t.match(await call('DELETE', `/geofence-group/${geofenceGroupId}`, { caller }), { status: 409 }, 'it has a geofence')
  t.match(await call('GET', `/geofence/${id}`, { caller: ownerOf(randomUUID()) }), { status: 404 })
  t.match(await call('DELETE', `/geofence/${id}`, { caller: ownerOf(randomUUID()) }), { status: 404 })
  t.match(await call('DELETE', `/geofence/${id}`, { caller }), { status: 200 })
  t.match(await call('GET', `/geofence/${id}`, { caller }), { status: 404 })
  t.match(await call('DELETE', `/geofence-group/${geofenceGroupId}`, { caller }), { status: 200 })
})

test('bodies that are no geofence are refused with the path', async (t) => {
  const { call, caller } = await openGeofences(t)
  const geofenceGroupId = (await call('POST', '/geofence-group', { caller, body: { name: 'g' } })).body.data._id
  const deep = JSON.parse('['.repeat(5_000) + ']'.repeat(5_000))
  const ring = Array.from({ length: 20_001 }, (_, i) => [Math.cos(i / 3184) / 10, Math.sin(i / 3184) / 10])
  const cases: [string, object, string][] = [
    [
      'an unclosed ring',
      {
        geometry: {
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
      },
      '/geometry/coordinates/0',
    ],
    [
      'a bow-tie',
      {
        geometry: {
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
      },
      '/geometry/coordinates/0',
    ],
    [
      'a hole outside',
      { geometry: { type: 'Polygon', coordinates: [square(0, 0).coordinates[0], square(5, 5).coordinates[0]] } },
      '/geometry/coordinates/1',
    ],
    ['out of range', { geometry: square(0, 90) }, '/geometry/coordinates'],
    ['too many positions', { geometry: { type: 'Polygon', coordinates: [[...ring, ring[0]]] } }, '/geometry'],
    ['nothing', {}, '/geometry'],
    ['a circle without radius', { center: { lat: 0, lng: 0 } }, '/radius'],
    ['a circle of no size', { center: { lat: 0, lng: 0 }, radius: -1 }, '/radius'],
    ['both', { center: { lat: 0, lng: 0 }, radius: 1, geometry: square(0, 0) }, '/geometry'],
    [
      'a line without width',
      {
        geometry: {
          type: 'LineString',
          coordinates: [
            [0, 0],
            [1, 1],
          ],
        },
      },
      '/width',
    ],
    ['a polygon with width', { geometry: square(0, 0), width: 3 }, '/width'],
    ['a deep geometry', { geometry: { type: 'Polygon', coordinates: deep } }, ''],
    ['deep attributes', { geometry: square(0, 0), attributes: { deep } }, ''],
    ['large attributes', { geometry: square(0, 0), attributes: { text: 'x'.repeat(65_536) } }, '/attributes'],
    ['a foreign member of a geometry', { geometry: { ...square(0, 0), crs: 'x' } }, '/geometry/crs'],
    [
      'a ring without area',
      {
        geometry: {
          type: 'Polygon',
          coordinates: [
            [
              [0, 0],
              [1, 1],
              [2, 2],
              [0, 0],
            ],
          ],
        },
      },
      '/geometry/coordinates/0',
    ],
    ['an unknown field', { geometry: square(0, 0), colour: 'red' }, '/colour'],
    ['an unknown group', { geometry: square(0, 0), geofenceGroupId: randomUUID() }, '/geofenceGroupId'],
  ]
  for (const [name, members, path] of cases) {
    const answer = await call('POST', '/geofence', { caller, body: { name, geofenceGroupId, ...members } })
    t.match(answer, { status: 400, body: { code: 'invalid' } }, name)
    t.ok(answer.body.errors?.[0]?.path.startsWith(path), `${name}: ${JSON.stringify(answer.body.errors)}`)
  }
  t.match((await call('GET', '/geofences', { caller })).body, { total: 0 })
  const made = await call('POST', '/geofence', {
    caller,
    body: { name: 'n', geofenceGroupId, geometry: { ...square(0, 0), bbox: [0, 0, 1, 1] } },
  })
  t.strictSame(made.body.data.geometry, square(0, 0), 'a bbox says nothing that the coordinates do not')
  t.match(
    await call('PATCH', `/geofence/${made.body.data._id}`, { caller, body: { geometry: { id: 7 } } }),
    { status: 400, body: { errors: [{ path: '/geometry/id' }] } },
    'in a merge patch too',
  )
})

test('positions are kept to 1e-7 degree, and read so', async (t) => {
  const { call, caller } = await openGeofences(t)
  const geofenceGroupId = (await call('POST', '/geofence-group', { caller, body: { name: 'g' } })).body.data._id
  const geometry = {
    type: 'Polygon',
    coordinates: [
      [
        [0.12345678, 0],
        [1, 0.00000004, 7],
        [1, 1],
        [0.12345678, 0],
      ],
    ],
  }
  const made = await call('POST', '/geofence', { caller, body: { name: 'n', geofenceGroupId, geometry } })
  t.strictSame(made.body.data.geometry, {
    type: 'Polygon',
    coordinates: [
      [
        [0.1234568, 0],
        [1, 0],
        [1, 1],
        [0.1234568, 0],
      ],
    ],
  })
  t.strictSame((await call('GET', `/geofence/${made.body.data._id}`, { caller })).body.data, made.body.data)
})
