import { test, type Test } from 'tap'
import { boxOfDegrees } from '../../../src/geo/box.ts'
import { GeofenceBoxes } from '../../../src/features/geofences/boxes.ts'
import { openGeofences, ownerOf } from '../../support/geofence-world.ts'
import { ringOf } from '../../support/ring.ts'
import { seeded } from '../../support/random.ts'

type Square = [west: number, south: number, east: number, north: number]

const geometryOf = ([west, south, east, north]: Square) => ({
  type: 'Polygon',
  coordinates: [ringOf(west, south, east, north)],
})

const open = async (t: Test) => {
  const world = await openGeofences(t)
  const { call, caller } = world
  const geofenceGroupId = (await call('POST', '/geofence-group', { caller, body: { name: 'g' } })).body.data._id
  const make = async (name: string, shape: object): Promise<string> =>
    (await call('POST', '/geofence', { caller, body: { name, geofenceGroupId, ...shape } })).body.data._id
  const namesIn = async (query: string, who = caller) => {
    const { body } = await call('GET', `/geofences?fields=name&limit=500&${query}`, { caller: who })
    const names = body.data.map(({ name }: { name: string }) => name).sort()
    if (body.total !== names.length) throw new Error(`total ${body.total} of ${names.length}`)
    return names
  }
  return { ...world, geofenceGroupId, make, namesIn }
}

test('a box has the geofences whose own box meets it, in step with every write', async (t) => {
  const { call, caller, make, namesIn } = await open(t)
  t.same(await namesIn('bbox=-180,-90,180,90'), [], 'none yet')
  const depot = await make('depot', { geometry: geometryOf([13, 52, 14, 53]) })
  t.same(await namesIn('bbox=13.5,52.5,13.6,52.6'), ['depot'], 'inside of it')
  await make('circle', { center: { lat: 10, lng: 10 }, radius: 1_000 })
  await make('corridor', {
    geometry: {
      type: 'LineString',
      coordinates: [
        [170, 0],
        [-170, 0],
      ],
    },
    width: 200,
  })
  await make('islands', {
    geometry: {
      type: 'MultiPolygon',
      coordinates: [
        [170, 40, 175, 41],
        [-175, 40, -170, 41],
      ].map((box) => geometryOf(box as Square).coordinates),
    },
  })
  t.same(await namesIn('bbox=-180,-90,180,90'), ['circle', 'corridor', 'depot', 'islands'])
  t.same(await namesIn('bbox=9.995,9,9.996,11'), ['circle'])
  t.same(await namesIn('bbox=14,53,20,60'), ['depot'], 'a corner')
  t.same(
    await namesIn('bbox=15,-90,12,90'),
    ['circle', 'corridor', 'islands'],
    'all but three degrees of the way around',
  )
  t.same(await namesIn('bbox=14.0000001,53,20,60'), [])
  t.same(await namesIn('bbox=-60,-1,60,41'), ['circle'], 'nothing that lies across the antimeridian')
  t.same(await namesIn('bbox=178,-1,-178,41'), ['corridor', 'islands'], 'across the antimeridian')
  t.same(await namesIn('bbox=180,40,180,41'), ['islands'])
  t.same(await namesIn('bbox=-180,-90,180,90', ownerOf('0190f3a2-7c00-7a11-8b22-aabbccddeeff')), [], 'of others')

  await call('PATCH', `/geofence/${depot}`, { caller, body: { name: 'moved', geometry: geometryOf([20, 50, 21, 51]) } })
  t.same(await namesIn('bbox=13,52,14,53'), [])
  t.same(await namesIn('bbox=20.5,50.5,22,52'), ['moved'])
  await call('PATCH', `/geofence/${depot}`, { caller, body: { isActive: false } })
  t.same(await namesIn('bbox=20.5,50.5,22,52&isActive=false'), ['moved'], 'with other filters')
  t.same(await namesIn('bbox=20.5,50.5,22,52&isActive=true'), [])
  t.same(await namesIn(`bbox=20.5,50.5,22,52&_id=${depot}`), ['moved'])
  t.same(await namesIn(`bbox=1,1,2,2&_id=${depot}`), [])
  await call('DELETE', `/geofence/${depot}`, { caller })
  t.same(await namesIn('bbox=20.5,50.5,22,52'), [])
  t.same(await namesIn('bbox=-180,-90,180,90'), ['circle', 'corridor', 'islands'])
  for (const bbox of ['1,2,3', '1,2,3,x', '1,5,2,4', '1,-91,2,4', ''])
    t.match(
      await call('GET', `/geofences?bbox=${bbox}`, { caller }),
      { status: 400, body: { errors: [{ path: '/bbox' }] } },
      bbox,
    )
})

test('many boxes: the same as a look at each, by cursor, and in a process that begins later', async (t) => {
  const { call, caller, geofenceGroupId, services, organizationId } = await open(t)
  const random = seeded(7)
  const squares = Array.from({ length: 1_200 }, (): Square => {
    const [west, south] = [10 + Math.floor(random() * 100) / 10, 40 + Math.floor(random() * 100) / 10]
    return [west, south, west + 0.3, south + 0.3]
  })
  const features = squares.map((square, i) => ({
    type: 'Feature',
    properties: { name: `f${i}` },
    geometry: geometryOf(square),
  }))
  const imported = await call('POST', `/geofences/import?geofenceGroupId=${geofenceGroupId}`, {
    caller,
    body: new TextEncoder().encode(JSON.stringify({ type: 'FeatureCollection', features })),
  })
  t.equal(imported.body.data.created, squares.length)
  const e7 = (degrees: number): number => Math.round(degrees * 1e7)
  const expected = ([west, south, east, north]: Square): string[] =>
    squares
      .map(([w, s, e, n], i) =>
        e7(w) <= e7(east) && e7(e) >= e7(west) && e7(s) <= e7(north) && e7(n) >= e7(south) ? `f${i}` : '',
      )
      .filter(Boolean)
      .sort()
  const walk = async (box: Square): Promise<string[]> => {
    const names: string[] = []
    for (let cursor: string | null = ''; cursor !== null; ) {
      const path = `/geofences?bbox=${box}&limit=100&fields=name&sortBy=name${cursor && `&cursor=${cursor}`}`
      const { body }: { body: { data: { name: string }[]; total: number; nextCursor: string | null } } = await call(
        'GET',
        path,
        { caller },
      )
      t.equal(body.total, expected(box).length)
      names.push(...body.data.map(({ name }) => name))
      cursor = body.nextCursor
    }
    return names
  }
  const boxes: Square[] = [
    [10, 40, 20.3, 50.3],
    [12, 42, 15, 43.4],
    [0, 0, 1, 1],
  ]
  for (let i = 0; i < 5; i++) {
    const [west, south] = [10 + random() * 10, 40 + random() * 10]
    boxes.push([west, south, west + random() * 4, south + random() * 4])
  }
  for (const box of boxes) t.same(await walk(box), expected(box), box.join())
  const later = new GeofenceBoxes(services.tables, services.clock)
  const found = await Promise.all(boxes.map((box) => later.meeting(organizationId, boxOfDegrees(...box))))
  const counts = found.map((ids) => (ids === 'all' ? squares.length : ids.length))
  t.same(
    counts,
    boxes.map((box) => expected(box).length),
  )
  t.equal(found[0], 'all')
})
