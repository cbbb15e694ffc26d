import booleanPointInPolygon from '@turf/boolean-point-in-polygon'
import { distance } from '@turf/distance'
import { pointToLineDistance } from '@turf/point-to-line-distance'
import type { Position } from 'geojson'
import { test } from 'tap'
import { blob } from '../../bench/support/geo-data.ts'
import { shapeContains } from '../../src/geo/contains.ts'
import { fromE7, toE7 } from '../../src/geo/coordinates.ts'
import { distanceMeters } from '../../src/geo/distance.ts'
import { keptShape, makeShape, type ShapeInput } from '../../src/geo/shape.ts'
import { readFeatures, readRows, withoutData } from '../support/shared-data.ts'
import { ringOf } from '../support/ring.ts'
import { seeded } from '../support/random.ts'

const holds = (input: ShapeInput, lng: number, lat: number): boolean =>
  shapeContains(makeShape(input), toE7(lng), toE7(lat))

test('the boundary is inside: vertices and edges, of holes too', async (t) => {
  const fence: ShapeInput = { type: 'Polygon', coordinates: [ringOf(0, 0, 10, 10), ringOf(2, 2, 4, 4)] }
  for (const [lng, lat] of [
    [0, 0],
    [10, 10],
    [5, 0],
    [0, 5],
    [10, 5],
    [5, 10],
    [2, 2],
    [4, 3],
    [3, 4],
    [1, 3],
    [4.0000001, 3],
  ] as const) {
    t.equal(holds(fence, lng, lat), true, `${lng}, ${lat}`)
  }
  for (const [lng, lat] of [
    [3, 3],
    [2.0000001, 2.0000001],
    [-0.0000001, 0],
    [10.0000001, 5],
    [5, 10.0000001],
  ] as const) {
    t.equal(holds(fence, lng, lat), false, `${lng}, ${lat}`)
  }
  // A point exactly on a sloping edge, and one unit beside it, where doubles alone cannot tell.
  const slope: ShapeInput = {
    type: 'Polygon',
    coordinates: [
      [
        [-179, -89],
        [179, 89],
        [-179, 89],
        [-179, -89],
      ],
    ],
  }
  t.equal(
    holds(
      {
        type: 'Polygon',
        coordinates: [
          [
            [0, 0],
            [150, 75],
            [0, 75],
            [0, 0],
          ],
        ],
      },
      99.9999998,
      49.9999999,
    ),
    true,
  )
  t.equal(
    holds(
      {
        type: 'Polygon',
        coordinates: [
          [
            [0, 0],
            [150, 75],
            [0, 75],
            [0, 0],
          ],
        ],
      },
      99.9999999,
      49.9999999,
    ),
    false,
  )
  t.ok(makeShape(slope))
})

test('even-odd within a polygon, union over a MultiPolygon, rings that touch', async (t) => {
  const bow: Position[] = [
    [0, 0],
    [2, 2],
    [4, 0],
    [4, 4],
    [2, 2],
    [0, 4],
    [0, 0],
  ]
  t.equal(holds({ type: 'Polygon', coordinates: [bow] }, 1, 2), true)
  t.equal(holds({ type: 'Polygon', coordinates: [bow] }, 2, 1), false)
  t.equal(holds({ type: 'Polygon', coordinates: [bow] }, 2, 2), true)
  const union: ShapeInput = { type: 'MultiPolygon', coordinates: [[ringOf(0, 0, 4, 4)], [ringOf(2, 2, 6, 6)]] }
  t.equal(holds(union, 3, 3), true)
  t.equal(holds(union, 5, 5), true)
  t.equal(holds(union, 5, 1), false)
})

test('across the antimeridian and at the poles', async (t) => {
  const fiji: ShapeInput = {
    type: 'Polygon',
    coordinates: [ringOf(178, -19, -179, -16)],
  }
  for (const lng of [178, 179, 180, -180, -179.5, -179]) t.equal(holds(fiji, lng, -17), true, `${lng}`)
  for (const lng of [0, 177.9, -178.9, 90]) t.equal(holds(fiji, lng, -17), false, `${lng}`)
  t.equal(holds({ type: 'Polygon', coordinates: [ringOf(170, 0, 180, 10)] }, -180, 5), true, '-180 is 180')
  const world: ShapeInput = { type: 'Polygon', coordinates: [ringOf(-180, -90, 180, 90)] }
  for (const [lng, lat] of [
    [0, 0],
    [180, 90],
    [-180, 12],
    [180, -12],
    [179.9, -89],
  ] as const)
    t.equal(holds(world, lng, lat), true, `${lng}, ${lat}`)
  const cap = (lat: number): Position[] => [
    [0, lat],
    [120, lat],
    [-120, lat],
    [0, lat],
  ]
  t.equal(holds({ type: 'Polygon', coordinates: [cap(60)] }, 33, 90), true)
  t.equal(holds({ type: 'Polygon', coordinates: [cap(60)] }, -150, 61), true)
  t.equal(holds({ type: 'Polygon', coordinates: [cap(60)] }, -150, 59), false)
  t.equal(holds({ type: 'Polygon', coordinates: [cap(-60)] }, 33, -90), true)
  t.equal(holds({ type: 'Polygon', coordinates: [cap(-60)] }, 33, 0), false)
  t.equal(holds({ type: 'Polygon', coordinates: [cap(60), cap(80)] }, 33, 85), false)
  t.equal(holds({ type: 'Polygon', coordinates: [cap(60), cap(80)] }, 33, 70), true)
  const circle: ShapeInput = { center: { lat: 0, lng: 179.999 }, radius: 1000 }
  t.equal(holds(circle, -179.999, 0), true)
  t.equal(holds(circle, -179.98, 0), false)
  t.equal(holds({ center: { lat: 89.99, lng: 0 }, radius: 5000 }, 180, 89.99), true)
  const mostOfIt: ShapeInput = { center: { lat: 10, lng: 170 }, radius: 19_000_000 }
  for (const [lng, lat] of [
    [-10, 5],
    [-10, -90],
    [170, 10],
    [-180, 0],
  ] as const)
    t.equal(holds(mostOfIt, lng, lat), true)
  t.equal(holds(mostOfIt, -10, -10), false, 'but not the other end of the earth')
  t.equal(holds({ ...mostOfIt, radius: 20_015_115 }, -10, -10), true, 'half way round is all of it')
  const coordinates: [number, number][] = [
    [179.9, 0],
    [-179.9, 0],
  ]
  const across = { geometry: { type: 'LineString', coordinates }, width: 200 } as const
  t.equal(holds(across, 180, 0.0008), true)
  t.equal(holds(across, 0, 0), false)
})

test('random polygons as turf has them', async (t) => {
  const random = seeded(1)
  let compared = 0
  for (let round = 0; round < 300; round++) {
    const vertices = 3 + Math.floor(random() * 150)
    const fence = keptShape({
      type: 'Polygon',
      coordinates: [
        blob(random, 10, 50, 1, vertices, random()).coordinates[0]!,
        blob(random, 10, 50, 0.1, 9).coordinates[0]!,
      ],
    } as const)
    const shape = makeShape(fence as ShapeInput)
    for (let i = 0; i < 40; i++) {
      const vertex = fence.coordinates[0]![Math.floor(random() * vertices)]!
      const point =
        i < 3 ? vertex : [10 + (random() - 0.5) * 2, 50 + (random() - 0.5) * 2].map((degrees) => fromE7(toE7(degrees)))
      const inside = shapeContains(shape, toE7(point[0]!), toE7(point[1]!))
      if (inside !== booleanPointInPolygon(point, fence as never)) t.fail(`round ${round}: ${point}`)
      compared++
    }
  }
  t.equal(compared, 12_000)
})

test('distances, circles and corridors as turf has them', async (t) => {
  const random = seeded(2)
  for (let round = 0; round < 2_000; round++) {
    const near = random() < 0.5 ? 0.01 : 5
    const [lng, lat] = [(random() - 0.5) * 300, (random() - 0.5) * 160]
    const place = (): [number, number] =>
      [lng + (random() - 0.5) * near, lat + (random() - 0.5) * near].map((degrees) => fromE7(toE7(degrees))) as [
        number,
        number,
      ]
    const [point, centre] = [place(), place()]
    const line = Array.from({ length: 2 + Math.floor(random() * 12) }, place)
    const [px, py] = [toE7(point[0]), toE7(point[1])]
    const meters = distance(point, centre, { units: 'meters' })
    if (Math.abs(distanceMeters(px, py, toE7(centre[0]), toE7(centre[1])) - meters) > 1e-6 * (1 + meters))
      t.fail(`distance ${point} ${centre}`)
    const toLine = pointToLineDistance(point, { type: 'LineString', coordinates: line }, { units: 'meters' })
    for (const factor of [0.999999, 1.000001]) {
      if (
        meters > 1 &&
        holds({ center: { lng: centre[0], lat: centre[1] }, radius: meters * factor }, ...point) !== factor > 1
      )
        t.fail(`circle ${round}`)
      const corridor: ShapeInput = { geometry: { type: 'LineString', coordinates: line }, width: 2 * toLine * factor }
      if (toLine > 1 && holds(corridor, ...point) !== factor > 1) t.fail(`corridor ${round}`)
    }
  }
  t.pass('2,000 places')
})

for (const [polygons, expected, key] of [
  ['austin-neighborhoods.geojson', 'inside-austin', 'name'],
  ['us-counties.geojson.gz', 'inside-us-counties-ais-A', 'GEOID'],
  ['helsinki-municipalities.geojson', 'inside-helsinki-A', 'name'],
] as const) {
  test(`real positions: ${expected}`, { skip: withoutData }, async (t) => {
    const shapes = readFeatures(polygons).map(({ geometry, properties }) => ({
      name: properties[key]!,
      shape: makeShape(geometry),
    }))
    const rows = readRows(`expected/${expected}.csv.gz`).filter((row) => Number(row[5]) > 0.1)
    const wrong = rows.filter((row, i) => {
      if (polygons.startsWith('us') && i % 25 !== 0) return false
      const held = shapes.filter(({ shape }) => shapeContains(shape, toE7(Number(row[3])), toE7(Number(row[2]))))
      return (
        held
          .map(({ name }) => name)
          .sort()
          .join('|') !== row[4]!.split('|').sort().join('|')
      )
    })
    t.ok(rows.length > 3_000)
    t.same(wrong, [])
  })
}

test('world countries to the poles and over the antimeridian', { skip: withoutData }, async (t) => {
  const countries = readFeatures('world-countries-110m.geojson').map(({ geometry, properties }) => ({
    name: properties.name!,
    shape: makeShape(geometry),
  }))
  const at = (lng: number, lat: number): string =>
    countries
      .filter(({ shape }) => shapeContains(shape, toE7(lng), toE7(lat)))
      .map(({ name }) => name)
      .join()
  t.equal(at(0, -90), 'Antarctica')
  t.equal(at(180, -85), 'Antarctica')
  t.equal(at(-180, -85), 'Antarctica')
  t.equal(at(0, 90), '')
  t.equal(at(180, 67), 'Russian Federation')
  t.equal(at(-180, 67), 'Russian Federation')
  t.equal(at(-175, 66.5), 'Russian Federation')
  t.equal(at(179, -16.6), 'Fiji')
  t.equal(at(-170, -30), '')
})
