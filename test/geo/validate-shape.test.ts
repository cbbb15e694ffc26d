import type { Position } from 'geojson'
import { test } from 'tap'
import { makePolygon } from '../../src/geo/polygon.ts'
import { edgesCross, properCrossing } from '../../src/geo/ring-crossing.ts'
import { validateShape } from '../../src/geo/validate-shape.ts'
import { readFeatures, withoutData } from '../support/shared-data.ts'
import { ringOf } from '../support/ring.ts'
import { seeded } from '../support/random.ts'

const polygon = (...coordinates: Position[][]) => ({ type: 'Polygon', coordinates })
const pathOf = (input: unknown): string | undefined => validateShape(input)?.path
const rowOf = (count: number, at: (i: number) => Position): Position[] => {
  const ring = Array.from({ length: count - 1 }, (_, i) => at(i))
  return [...ring, ring[0]!]
}

test('what is no shape', async (t) => {
  for (const [input, path] of [
    [null, ''],
    [[], ''],
    ['Polygon', ''],
    [{}, '/type'],
    [{ type: 'Point', coordinates: [1, 2] }, '/type'],
    [{ type: 'Polygon' }, '/coordinates'],
    [polygon(), '/coordinates'],
    [polygon([]), '/coordinates/0'],
    [{ type: 'Polygon', coordinates: [7] }, '/coordinates/0'],
    [{ type: 'MultiPolygon', coordinates: [] }, '/coordinates'],
    [{ type: 'MultiPolygon', coordinates: [[ringOf(0, 0, 1, 1)], []] }, '/coordinates/1'],
    [
      polygon([
        [0, 0],
        [1, 1],
        [0, 0],
      ]),
      '/coordinates/0',
    ],
    [
      polygon([
        [0, 0],
        [1, 0],
        [1, 1],
        [0, 1],
      ]),
      '/coordinates/0',
    ],
    [polygon([[0, 0], [1], [1, 1], [0, 0]]), '/coordinates/0/1'],
    [
      polygon([
        [0, 0],
        [181, 0],
        [1, 1],
        [0, 0],
      ]),
      '/coordinates/0/1/0',
    ],
    [
      polygon([
        [0, 0],
        [1, 91],
        [1, 1],
        [0, 0],
      ]),
      '/coordinates/0/1/1',
    ],
    [
      polygon([
        [0, 0],
        [1, Number.NaN],
        [1, 1],
        [0, 0],
      ]),
      '/coordinates/0/1',
    ],
    [
      polygon([
        [0, 0],
        [1, '1'],
        [1, 1],
        [0, 0],
      ] as never),
      '/coordinates/0/1',
    ],
    [{ center: 1, radius: 1 }, '/center'],
    [{ center: { lat: 91, lng: 0 }, radius: 1 }, '/center/lat'],
    [{ center: { lat: 1 }, radius: 1 }, '/center/lng'],
    [{ center: { lat: 1, lng: 1 }, radius: 0 }, '/radius'],
    [{ center: { lat: 1, lng: 1 }, radius: 1e9 }, '/radius'],
    [{ center: { lat: 1, lng: 1 }, radius: Infinity }, '/radius'],
    [{ center: { lat: 1, lng: 1 } }, '/radius'],
    [{ geometry: polygon(ringOf(0, 0, 1, 1)), width: 1 }, '/geometry/type'],
    [{ geometry: { type: 'LineString', coordinates: [[0, 0]] }, width: 1 }, '/geometry/coordinates'],
    ...[
      [
        [1, 2],
        [1, 2],
      ],
      [
        [1, 2],
        [1, 2.00000001],
        [1, 2],
      ],
      [
        [-180, 2],
        [180, 2],
      ],
    ].map((coordinates): [unknown, string] => [
      { geometry: { type: 'LineString', coordinates }, width: 1 },
      '/geometry/coordinates',
    ]),
    [
      {
        geometry: {
          type: 'LineString',
          coordinates: [
            [0, 0],
            [0, 99],
          ],
        },
        width: 1,
      },
      '/geometry/coordinates/1/1',
    ],
    [
      {
        geometry: {
          type: 'LineString',
          coordinates: [
            [0, 0],
            [0, 9],
          ],
        },
        width: -1,
      },
      '/width',
    ],
  ] as const)
    t.equal(pathOf(input), path, JSON.stringify(input))
})

test('shapes as they should be', async (t) => {
  for (const input of [
    polygon(ringOf(0, 0, 1, 1)),
    polygon(ringOf(0, 0, 9, 9), ringOf(1, 1, 2, 2)),
    { type: 'MultiPolygon', coordinates: [[ringOf(0, 0, 1, 1)]] },
    { center: { lat: 1, lng: 1 }, radius: 50 },
    { center: { lat: -90, lng: 180 }, radius: 20_015_115 },
    {
      geometry: {
        type: 'LineString',
        coordinates: [
          [0, 0],
          [0, 9],
        ],
      },
      width: 10,
    },
    polygon([
      [0, 0, 12],
      [1, 0, 12],
      [1, 1, 12],
      [0, 0, 12],
    ]),
  ])
    t.equal(validateShape(input), undefined, JSON.stringify(input))
})

test('rings that cross themselves, and rings that only touch', async (t) => {
  t.equal(
    pathOf(
      polygon([
        [0, 0],
        [2, 2],
        [2, 0],
        [0, 2],
        [0, 0],
      ]),
    ),
    '/coordinates/0',
  )
  t.equal(
    pathOf({
      type: 'MultiPolygon',
      coordinates: [
        [ringOf(0, 0, 1, 1)],
        [
          [
            [0, 0],
            [2, 2],
            [2, 0],
            [0, 2],
            [0, 0],
          ],
        ],
      ],
    }),
    '/coordinates/1/0',
  )
  t.equal(
    pathOf(
      polygon([
        [179, 0],
        [-179, 2],
        [-179, 0],
        [179, 2],
        [179, 0],
      ]),
    ),
    '/coordinates/0',
    'across the antimeridian',
  )
  t.equal(pathOf(polygon(ringOf(179, 0, -179, 2))), undefined)
  t.equal(
    pathOf(
      polygon([
        [0, 0],
        [2, 2],
        [4, 0],
        [4, 4],
        [2, 2],
        [0, 4],
        [0, 0],
      ]),
    ),
    undefined,
    'at a vertex',
  )
  t.equal(
    pathOf(
      polygon([
        [0, 0],
        [4, 0],
        [4, 4],
        [2, 0],
        [0, 4],
        [0, 0],
      ]),
    ),
    undefined,
    'a vertex on an edge',
  )
  t.equal(
    pathOf(
      polygon([
        [0, 0],
        [4, 0],
        [4, 4],
        [4, 0],
        [0, 4],
        [0, 0],
      ]),
    ),
    undefined,
    'there and back',
  )
  t.equal(
    pathOf(
      polygon([
        [0, 0],
        [0, 0],
        [4, 0],
        [4, 0],
        [0, 4],
        [0, 0],
      ]),
    ),
    undefined,
    'repeated positions',
  )
})

test('rings without area, however they are drawn', async (t) => {
  const there = [
    [0, 0],
    [4, 0],
    [4, 3],
    [7, 3],
  ]
  const back = there.slice(0, -1).reverse()
  const triangle = [
    [0, 0],
    [4, 0],
    [0, 4],
  ]
  const unit = 1e-7
  for (const [what, ring, hasArea] of [
    ['one position', Array(4).fill([1, 1]), false],
    [
      'a parallel',
      [
        [0, 0],
        [1, 0],
        [2, 0],
        [0, 0],
      ],
      false,
    ],
    [
      'a meridian',
      [
        [0, 0],
        [0, 2],
        [0, 1],
        [0, 0],
      ],
      false,
    ],
    [
      'a slope',
      [
        [0, 0],
        [2, 1],
        [4, 2],
        [0, 0],
      ],
      false,
    ],
    ['there and back', [...there, ...back], false],
    [
      'across the antimeridian and back',
      [
        [179, 0],
        [-179, 1],
        [-178, 1],
        [-179, 1],
        [179, 0],
      ],
      false,
    ],
    ['twice round, so that everything is outside', [...triangle, ...triangle, [0, 0]], false],
    ['three times round', [...triangle, ...triangle, ...triangle, [0, 0]], true],
    [
      'a sliver of half a unit',
      [
        [0, 0],
        [unit, 0],
        [0, 50],
        [0, 0],
      ],
      true,
    ],
    [
      'two lobes of the same size, one each way round',
      [
        [0, 0],
        [2, 2],
        [4, 0],
        [4, 4],
        [2, 2],
        [0, 4],
        [0, 0],
      ],
      true,
    ],
    [
      'a spike at both ends',
      [
        [0, 0],
        [0, -5],
        [0, 0],
        [4, 0],
        [4, 4],
        [9, 9],
        [4, 4],
        [0, 4],
        [0, 0],
      ],
      true,
    ],
    [
      'round the north pole',
      [
        [-90, 80],
        [0, 80],
        [90, 80],
        [180, 80],
        [-90, 80],
      ],
      true,
    ],
    ['along the pole', ringOf(-180, -60, 180, -90), true],
  ] as [string, Position[], boolean][]) {
    const found = validateShape(polygon(ring))
    if (hasArea) t.equal(found, undefined, what)
    else t.same(found, { path: '/coordinates/0', message: 'must enclose an area' }, what)
  }
  const hole = [
    [1, 1],
    [2, 2],
    [1, 1],
    [1, 1],
  ] as Position[]
  t.equal(pathOf(polygon(ringOf(0, 0, 9, 9), hole)), '/coordinates/1', 'a hole')
})

test('holes outside their ring', async (t) => {
  const ring = ringOf(0, 0, 10, 10)
  t.equal(pathOf(polygon(ring, ringOf(2, 2, 4, 4), ringOf(11, 2, 12, 4))), '/coordinates/2', 'apart')
  t.equal(pathOf(polygon(ring, ringOf(8, 2, 12, 4))), '/coordinates/1', 'across')
  t.equal(pathOf(polygon(ring, ringOf(-1, -1, 11, 11))), '/coordinates/1', 'around')
  t.equal(pathOf(polygon(ring, ringOf(0, 2, 4, 4))), undefined, 'along an edge')
  t.equal(pathOf(polygon(ring, ring)), undefined, 'all of it')
  const notch: Position[] = [
    [0, 0],
    [10, 0],
    [5, 5],
    [10, 10],
    [0, 10],
    [0, 0],
  ]
  t.equal(
    pathOf(
      polygon(notch, [
        [5, 5],
        [10, 0],
        [10, 10],
        [5, 5],
      ]),
    ),
    '/coordinates/1',
    'outside between its vertices',
  )
  t.equal(
    pathOf(
      polygon(notch, [
        [4, 8],
        [5, 5],
        [4, 2],
        [4, 8],
      ]),
    ),
    undefined,
    'touches the notch',
  )
  // Two teeth: the hole's edge passes through their tips only, and lies outside between them.
  const teeth: Position[] = [
    [0, 0],
    [10, 0],
    [10, 10],
    [8, 10],
    [6, 5],
    [5, 10],
    [3, 5],
    [2, 10],
    [0, 10],
    [0, 0],
  ]
  t.equal(pathOf(polygon(teeth, ringOf(2, 5, 7, 4))), undefined)
  const comb: Position[] = [
    [0, 0],
    [10, 0],
    [10, 10],
    [7, 10],
    [7, 5],
    [3, 5],
    [3, 10],
    [0, 10],
    [0, 0],
  ]
  t.equal(pathOf(polygon(comb, ringOf(2, 5, 8, 4))), undefined, 'along the bottom of a gap')
  t.equal(pathOf(polygon(ringOf(179, 0, -179, 2), ringOf(-179.8, 0.5, -179.5, 1))), undefined)
  t.equal(pathOf(polygon(ringOf(179, 0, -179, 2), ringOf(178.5, 0.5, 178.8, 1))), '/coordinates/1')
})

test('the sweep agrees with every edge against every edge', async (t) => {
  const random = seeded(3)
  let crossing = 0
  for (let round = 0; round < 20_000; round++) {
    const grid = 3 + Math.floor(random() * 40)
    const count = 3 + Math.floor(random() * (round % 2 === 0 ? 5 : 12))
    const flat = Array.from({ length: count * 2 }, () => Math.floor(random() * grid))
    const ring = makePolygon([[...flat, flat[0]!, flat[1]!]])
    const found = properCrossing(ring) !== undefined
    if (found !== anyCross(ring.coords)) t.fail(`round ${round}: ${flat}`)
    if (found) crossing++
  }
  t.ok(crossing > 2_000 && crossing < 19_000, `${crossing} cross`)
})

const star = (count: number): Position[] =>
  rowOf(count, (i) => [
    (i % 2 ? 40 : 0.1) * Math.cos((i * 2 * Math.PI) / count),
    (i % 2 ? 40 : 0.1) * Math.sin((i * 2 * Math.PI) / count),
  ])
const comb = (count: number): Position[] => [
  ...Array.from({ length: count - 3 }, (_, i) => [i * 1e-4, i % 2 ? 20 : 1]),
  [3, -5],
  [0, -5],
  [0, 1],
]

test('the work on a large ring grows little faster than the ring', async (t) => {
  // The processor's time is counted in steps of some milliseconds: both are long enough to have many.
  const workOf = (ring: Position[], times: number): number => {
    const once = (): number => {
      const begun = process.cpuUsage().user
      for (let i = 0; i < times; i++) if (validateShape(polygon(ring)) !== undefined) t.fail('a valid ring is refused')
      return (process.cpuUsage().user - begun) / times
    }
    return Math.min(once(), once(), once())
  }
  for (const ring of [star, comb]) {
    const growth = workOf(ring(20_000), 6) / workOf(ring(2_500), 48)
    t.ok(
      growth < 32,
      `8 times the ring is ${growth.toFixed(1)} times the work; every edge against every edge would be 64`,
    )
  }
  t.match(
    validateShape(polygon(rowOf(20_001, star(20_000).at.bind(star(20_000)) as never)))?.message,
    'over 20000 positions',
  )
  t.match(
    validateShape({ type: 'MultiPolygon', coordinates: Array(5_001).fill([ringOf(0, 0, 1, 1)]) })?.message,
    'over 20000 positions',
  )
})

for (const name of [
  'austin-neighborhoods.geojson',
  'us-counties.geojson.gz',
  'world-countries-110m.geojson',
  'helsinki-municipalities.geojson',
  'toronto-neighbourhoods.geojson.gz',
  'messy-charlotte-municipalities.geojson.gz',
]) {
  // What other libraries call invalid in the last two are rings that touch themselves: accepted, but for a hole without area.
  test(`real polygons are accepted: ${name}`, { skip: withoutData }, async (t) => {
    t.same(
      readFeatures(name)
        .map(({ geometry }) => validateShape(geometry))
        .filter(Boolean),
      name.startsWith('messy') ? [{ path: '/coordinates/0/43', message: 'must enclose an area' }] : [],
    )
  })
}

const anyCross = (c: ArrayLike<number>): boolean => {
  for (let i = 0; i + 3 < c.length; i += 2) {
    for (let j = 0; j < i; j += 2) {
      if (edgesCross(c[i]!, c[i + 1]!, c[i + 2]!, c[i + 3]!, c[j]!, c[j + 1]!, c[j + 2]!, c[j + 3]!)) return true
    }
  }
  return false
}
