import { test } from 'tap'
import { blob } from '../../bench/support/geo-data.ts'
import { shapeContains } from '../../src/geo/contains.ts'
import { LAT_MAX_E7, LNG_MAX_E7, toE7, TURN_E7 } from '../../src/geo/coordinates.ts'
import { FenceIndex } from '../../src/geo/fence-index.ts'
import { makeShape, type Shape, type ShapeInput } from '../../src/geo/shape.ts'
import { validateShape } from '../../src/geo/validate-shape.ts'
import { ringOf } from '../support/ring.ts'
import { seeded } from '../support/random.ts'

type Place = { lng: number; lat: number; span: number }

const PLACES: Place[] = [
  { lng: 10, lat: 50, span: 0.05 },
  { lng: 179.99, lat: -16, span: 0.5 },
  { lng: -180, lat: 0, span: 5 },
  { lng: 0, lat: 89.95, span: 0.5 },
  { lng: 0, lat: 0, span: 0.002 },
  { lng: -60, lat: -89.9, span: 5 },
  { lng: 10, lat: 50, span: 0.00001 },
]

const wrap = (lng: number): number => (lng > 180 ? lng - 360 : lng < -180 ? lng + 360 : lng)
const clip = (lat: number): number => Math.max(-90, Math.min(90, lat))

/** Shapes of all kinds around a place, some of many vertices, some with holes that reach outside (even-odd all the same). */
const randomShape = (random: () => number, place: Place): Shape => {
  const near = (): [number, number] => [
    wrap(place.lng + (random() - 0.5) * place.span),
    clip(place.lat + (random() - 0.5) * place.span),
  ]
  const [lng, lat] = near()
  const radius = place.span * 0.15 * random() + 1e-6
  const kind = random()
  if (kind < 0.02) return makeShape({ center: { lng, lat }, radius: 20_015_115 * random() })
  if (kind < 0.2) return makeShape({ center: { lng, lat }, radius: radius * 111_000 })
  if (kind < 0.35)
    return makeShape({
      geometry: { type: 'LineString', coordinates: Array.from({ length: 2 + Math.floor(random() * 20) }, near) },
      width: radius * 50_000 + 0.1,
    })
  const ring = (size: number, vertices: number) =>
    blob(random, lng, lat, size, vertices, random()).coordinates[0]!.map(([x, y]) => [wrap(x!), clip(y!)])
  const rings = [ring(radius, 3 + Math.floor(random() * (random() < 0.1 ? 300 : 40)))]
  if (random() < 0.3) rings.push(ring(radius * 0.4, 6))
  const input: ShapeInput =
    kind < 0.5
      ? { type: 'MultiPolygon', coordinates: [rings, [ring(radius, 8)]] }
      : { type: 'Polygon', coordinates: rings }
  return makeShape(input)
}

type Version = { index: FenceIndex; fences: Map<number, Shape> }

const expected = ({ fences }: Version, lng: number, lat: number): number[] =>
  [...fences]
    .filter(([, shape]) => shapeContains(shape, lng, lat))
    .map(([fence]) => fence)
    .sort((a, b) => a - b)

const edited = (random: () => number, place: Place, { index, fences }: Version, adds: number): Version => {
  const next = new Map(fences)
  const remove = [...fences.keys()].filter(() => random() < 0.3)
  for (const fence of remove) next.delete(fence)
  const added = new Map<number, Shape>()
  for (let i = 0; i < adds; i++) added.set(Math.floor(random() * 200), randomShape(random, place))
  for (const [fence, shape] of added) next.set(fence, shape)
  return { index: index.with({ remove, add: [...added].map(([fence, shape]) => ({ fence, shape })) }), fences: next }
}

/** Eight steps of a tracker; answers how many ended in its safe box. */
const walk = (
  random: () => number,
  place: Place,
  version: Version,
  tracker: { lng: number; lat: number },
  fail: (message: string) => void,
): number => {
  const boxes = Int32Array.of(1, 1, 0, 0)
  let [set, safe] = [0, 0]
  for (let i = 0; i < 8; i++) {
    move(random, place, version, tracker)
    const { lng, lat } = tracker
    const inBox = lng >= boxes[0]! && lng <= boxes[2]! && lat >= boxes[1]! && lat <= boxes[3]!
    if (inBox) safe++
    else set = version.index.locateSafe(lng, lat, boxes, 0)
    const want = expected(version, lng, lat).join()
    if (version.index.members(set).join() !== want)
      fail(`${lng}, ${lat}: ${version.index.members(set)} instead of ${want}, in box ${inBox}`)
    if (version.index.locate(lng, lat) !== version.index.setOf(expected(version, lng, lat).reverse()))
      fail(`${lng}, ${lat}: locate`)
    for (const [x, y] of [
      [0, 1],
      [2, 1],
      [0, 3],
      [2, 3],
    ].map(([x, y]) => [boxes[x!]!, boxes[y!]!] as const)) {
      const onEarth = Math.abs(x) <= LNG_MAX_E7 && Math.abs(y) <= LAT_MAX_E7
      if (!inBox && onEarth && expected(version, x, y).join() !== want)
        fail(`${lng}, ${lat}: corner ${x}, ${y} of the safe box`)
    }
  }
  return safe
}

const move = (random: () => number, place: Place, { fences }: Version, tracker: { lng: number; lat: number }): void => {
  const polygon = [...fences.values()]
    .map((shape) => shape.parts[0]!)
    .find((part) => part.kind === 'polygon' && random() < 0.05)
  if (random() < 0.02 && polygon?.kind === 'polygon') {
    // Exactly on a vertex.
    tracker.lng = polygon.coords[0]!
    tracker.lat = polygon.coords[1]!
  } else {
    tracker.lng += Math.round((random() - 0.5) * place.span * 1e5)
    tracker.lat += Math.round((random() - 0.5) * place.span * 1e5)
    if (random() < 0.05) tracker.lng = toE7(place.lng)
  }
  if (tracker.lng > LNG_MAX_E7) tracker.lng -= TURN_E7
  if (tracker.lng < -LNG_MAX_E7) tracker.lng += TURN_E7
  tracker.lat = Math.max(-LAT_MAX_E7, Math.min(LAT_MAX_E7, tracker.lat))
}

const box = (w: number, s: number, e: number, n: number): Shape => {
  const input: ShapeInput = {
    type: 'Polygon',
    coordinates: [ringOf(w, s, e, n)],
  }
  if (validateShape(input)) throw new Error('not a shape')
  return makeShape(input)
}

test('one fence, and what is not there', async (t) => {
  const empty = FenceIndex.empty()
  t.equal(empty.locate(0, 0), 0)
  t.same(empty.members(0), [])
  t.equal(empty.contains(7, 0, 0), false)
  const one = empty.with({ add: [{ fence: 7, shape: box(0, 0, 1, 1) }] })
  t.same(one.members(one.locate(toE7(1), toE7(1))), [7])
  t.equal(one.locate(toE7(1) + 1, toE7(1)), 0)
  t.equal(one.contains(7, toE7(1), toE7(1)), true)
  t.equal(one.contains(7, toE7(1) + 1, toE7(1)), false)
  t.same([...one.changedBoxes], [0, 0, toE7(1), toE7(1)])
  t.throws(() => one.members(99), RangeError)
  const moved = one.with({ add: [{ fence: 7, shape: box(5, 5, 6, 6) }] })
  t.equal(moved.fencesTotal, 1)
  t.same([...moved.changedBoxes], [0, 0, toE7(1), toE7(1), toE7(5), toE7(5), toE7(6), toE7(6)])
  t.equal(moved.locate(0, 0), 0)
  t.equal(one.contains(7, 0, 0), true, 'the version before is as it was')
  t.same(one.members(one.locate(0, 0)), [7])
  t.equal(moved.contains(7, 0, 0), false)
  one.release()
  t.same(moved.members(moved.locate(toE7(5), toE7(5))), [7])
})

test('only the newest version is edited, one edit at a time, and one left early leaves no trace', async (t) => {
  const first = FenceIndex.empty().with({
    add: [
      { fence: 1, shape: box(0, 0, 1, 1) },
      { fence: 2, shape: box(0, 0, 2, 2) },
    ],
  })
  const slices = first.withSlices({
    remove: [1],
    add: Array.from({ length: 500 }, (_, i) => ({ fence: i + 2, shape: box(0, 0, 3, 3) })),
  })
  t.equal(slices.next().done, false)
  t.throws(() => first.with({}), /under way/)
  t.same(first.members(first.locate(0, 0)), [1, 2], 'answers meanwhile')
  slices.return(undefined as never)
  const second = first.with({ add: [{ fence: 3, shape: box(0, 0, 1, 1) }] })
  t.equal(second.fencesTotal, 3)
  t.same(second.members(second.locate(0, 0)), [1, 2, 3])
  t.equal(second.contains(2, toE7(2.5), 0), false)
  t.throws(() => first.with({}), /newest/)
  t.throws(
    () =>
      second.with({
        add: [
          { fence: 4, shape: box(0, 0, 1, 1) },
          { fence: 4, shape: box(0, 0, 1, 1) },
        ],
      }),
    /twice/,
  )
  t.equal(second.with({ remove: [4] }).fencesTotal, 3)
})

test('set ids outlive edits, and begin anew when compacted', async (t) => {
  let index = FenceIndex.empty().with({ add: [{ fence: 1, shape: box(0, 0, 1, 1) }] })
  const held = index.locate(0, 0)
  for (let fence = 2; fence < 50; fence++) {
    index = index.with({ add: [{ fence, shape: box(0, 0, 1, 1) }] })
    index.locate(0, 0)
  }
  t.same(index.members(held), [1])
  t.equal(index.members(index.locate(0, 0)).length, 49)
  t.ok(index.setsTotal >= 50)
  const compacted = index.compacted()
  t.equal(compacted.setsTotal, 1)
  const remapped = compacted.setOf(index.members(index.locate(0, 0)))
  t.equal(compacted.locate(0, 0), remapped)
  t.equal(compacted.setsTotal, 2)
  t.equal(compacted.fencesTotal, 49)
})

test('many fences on one spot, added in slices', async (t) => {
  const shape = box(1, 1, 1.001, 1.001)
  const slices = FenceIndex.empty().withSlices({ add: Array.from({ length: 5_000 }, (_, fence) => ({ fence, shape })) })
  let count = 0
  let step = slices.next()
  for (; !step.done; step = slices.next()) count++
  t.ok(count >= 5_000 / 256 - 1, `${count} slices`)
  const index = step.value
  t.equal(index.members(index.locate(toE7(1.0005), toE7(1.0005))).length, 5_000)
  t.equal(index.members(index.locate(toE7(1.001), toE7(1.0005))).length, 5_000, 'on the boundary')
  t.equal(index.locate(toE7(1.0010001), toE7(1.0005)), 0)
  t.ok(index.changedBoxes.length <= 4 * 64)
})

for (const [seed, place] of PLACES.entries()) {
  test(`walks at ${place.lng}, ${place.lat} over versions in any order`, async (t) => {
    const random = seeded(seed + 1)
    const versions: Version[] = [
      { index: FenceIndex.empty(seed % 2 ? { leafBytesMax: 20_000 } : {}), fences: new Map() },
    ]
    const trackers = Array.from({ length: 10 }, () => ({ lng: toE7(place.lng), lat: toE7(place.lat) }))
    let safe = 0
    for (let step = 0; step < 240; step++) {
      if (step % 30 === 0) {
        versions.push(edited(random, place, versions.at(-1)!, step === 0 ? 60 : 12))
        t.equal(versions.at(-1)!.index.fencesTotal, versions.at(-1)!.fences.size)
        if (versions.length > 4) versions.shift()!.index.release()
      }
      // Every tracker asks one version several times on its way, by its safe box where it can.
      const version = versions[Math.floor(random() * versions.length)]!
      for (const tracker of trackers)
        safe += walk(random, place, version, tracker, (message) => t.fail(`step ${step}: ${message}`))
    }
    t.ok(safe > 500, `${safe} steps in a safe box`)
  })
}

test('a safe box ends short of an edge, and is the position alone on one', async (t) => {
  const index = FenceIndex.empty().with({ add: [{ fence: 1, shape: box(0.001, 0.001, 0.002, 0.002) }] })
  const boxes = new Int32Array(4)
  for (const [lng, lat] of [
    [5_000, 15_000],
    [15_000, 5_000],
    [25_000, 15_000],
    [15_000, 25_000],
    [12_000, 15_000],
    [15_000, 18_000],
  ] as const) {
    const set = index.locateSafe(lng, lat, boxes, 0)
    for (const x of [boxes[0]!, lng, boxes[2]!])
      for (const y of [boxes[1]!, lat, boxes[3]!]) t.equal(index.locate(x, y), set, `${x}, ${y}`)
  }
  index.locateSafe(10_000, 15_000, boxes, 0)
  t.same([...boxes], [10_000, 15_000, 10_000, 15_000])
})
