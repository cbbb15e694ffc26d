import booleanPointInPolygon from '@turf/boolean-point-in-polygon'
import type { Polygon } from 'geojson'
import { pathToFileURL } from 'node:url'
import RBush from 'rbush'
import { fromE7, toE7 } from '../src/geo/coordinates.ts'
import { FenceIndex } from '../src/geo/fence-index.ts'
import { makeShape } from '../src/geo/shape.ts'
import { blob } from './support/geo-data.ts'
import { seeded } from '../test/support/random.ts'

/*
 * The geofence index against an R-tree and turf.booleanPointInPolygon, over the same points in the same run: fences of 50
 * vertices, so dense that 1.15 of them hold a place; 20,000 trackers that go 10 m from point to point.
 */

export type Row = { name: string; value: number; unit: string }

const VERTICES = 50
const RADIUS_DEGREES = 0.005
const COVER = 1.15
const TRACKERS = 20_000
const STEPS = 20
const STEP_E7 = 900
const NAIVE_POINTS = 40_000
const RANDOM_POINTS = 200_000

/** Passes over the same points after which leaves no longer split: they are split as they are queried. */
const PASSES_TO_WARM = 3

export const run = (): { name: string; rows: Row[] }[] => {
  const town = makeTown(10_000, 1)
  const naive = naiveRate(town, walk(town, 2))
  const steps = stepRates(town, 2)
  const random = randomRates(town, 3)
  const small = stepRates(makeTown(1_000, 4), 5)
  const large = stepRates(makeTown(100_000, 6), 7)
  return [
    {
      name: `10,000 fences, ${TRACKERS} trackers, steps of 10 m`,
      rows: [
        rate('R-tree and turf', naive),
        rate('index, cold', steps.cold),
        rate('index, warm', steps.warm),
        times('cold / naive', steps.cold / naive),
        times('warm / naive', steps.warm / naive),
        { name: 'points that end in the safe box, warm', value: steps.safe * 100, unit: '%' },
        {
          name: 'memory for each tracker',
          value: 4 * Int32Array.BYTES_PER_ELEMENT + Int32Array.BYTES_PER_ELEMENT,
          unit: 'bytes',
        },
        { name: 'longest slice of adding 10,000 fences', value: steps.sliceMs, unit: 'ms' },
      ],
    },
    {
      name: '10,000 fences, points at random places',
      rows: [
        rate('R-tree and turf', random.naive),
        rate('index, cold', random.cold),
        rate('index, warm', random.warm),
        times('cold / naive', random.cold / random.naive),
        times('warm / naive', random.warm / random.naive),
      ],
    },
    {
      name: 'the same density over 1,000 and 100,000 fences',
      rows: [
        rate('1,000 fences, warm', small.warm),
        rate('100,000 fences, warm', large.warm),
        times('1,000 / 100,000, warm', small.warm / large.warm),
        rate('1,000 fences, cold', small.cold),
        rate('100,000 fences, cold', large.cold),
        { name: 'longest slice of adding 100,000 fences', value: large.sliceMs, unit: 'ms' },
        { name: 'adding 100,000 fences, all slices', value: large.addMs, unit: 'ms' },
      ],
    },
  ]
}

type Town = { side: number; west: number; south: number; fences: Polygon[] }

const makeTown = (count: number, seed: number): Town => {
  const random = seeded(seed)
  // A blob's mean area is π r² times the square of its mean reach, 0.8.
  const side = Math.sqrt((count * Math.PI * (0.8 * RADIUS_DEGREES) ** 2) / COVER)
  const [west, south] = [9, 50]
  return {
    side,
    west,
    south,
    fences: Array.from({ length: count }, () =>
      blob(random, west + random() * side, south + random() * side, RADIUS_DEGREES, VERTICES),
    ),
  }
}

/** Longitude and latitude in turn, E7, of all trackers at each step. */
const walk = ({ side, west, south }: Town, seed: number): Int32Array => {
  const random = seeded(seed)
  const points = new Int32Array(TRACKERS * STEPS * 2)
  for (let tracker = 0; tracker < TRACKERS; tracker++) {
    let [lng, lat, heading] = [toE7(west + random() * side), toE7(south + random() * side), random() * 2 * Math.PI]
    for (let step = 0; step < STEPS; step++) {
      const at = (step * TRACKERS + tracker) * 2
      points[at] = lng += Math.round((STEP_E7 * Math.sin(heading)) / Math.cos((south * Math.PI) / 180))
      points[at + 1] = lat += Math.round(STEP_E7 * Math.cos(heading))
      heading += (random() - 0.5) * 0.4
    }
  }
  return points
}

const build = (town: Town): { index: FenceIndex; sliceMs: number; addMs: number } => {
  const add = town.fences.map((fence, i) => ({ fence: i, shape: makeShape(fence) }))
  const slices = FenceIndex.empty().withSlices({ add })
  let sliceMs = 0
  let addMs = 0
  for (;;) {
    const begun = performance.now()
    const slice = slices.next()
    const ms = performance.now() - begun
    sliceMs = Math.max(sliceMs, ms)
    addMs += ms
    if (slice.done) return { index: slice.value, sliceMs, addMs }
  }
}

const stepRates = (town: Town, seed: number) => {
  const { index, sliceMs, addMs } = build(town)
  const points = walk(town, seed)
  const cold = matchAll(index, points)
  const passes = Array.from({ length: PASSES_TO_WARM + 2 }, () => matchAll(index, points))
  const warm = passes.slice(PASSES_TO_WARM).sort((a, b) => b.rate - a.rate)[0]!
  return { cold: cold.rate, warm: warm.rate, safe: warm.safe, sliceMs, addMs }
}

/** As a consumer does it: no query while a tracker is in its safe box. */
const matchAll = (index: FenceIndex, points: Int32Array): { rate: number; safe: number } => {
  const boxes = new Int32Array(TRACKERS * 4).fill(1)
  const sets = new Int32Array(TRACKERS)
  for (let i = 0; i < boxes.length; i += 4) boxes[i + 2] = 0
  let safe = 0
  let changes = 0
  const begun = performance.now()
  for (let i = 0; i < points.length; i += 2) {
    const tracker = (i / 2) % TRACKERS
    const at = tracker * 4
    const lng = points[i]!
    const lat = points[i + 1]!
    if (lng >= boxes[at]! && lng <= boxes[at + 2]! && lat >= boxes[at + 1]! && lat <= boxes[at + 3]!) {
      safe++
      continue
    }
    const set = index.locateSafe(lng, lat, boxes, tracker)
    if (set !== sets[tracker]) {
      changes++
      sets[tracker] = set
    }
  }
  const seconds = (performance.now() - begun) / 1000
  if (changes === 0) throw new Error('no tracker came anywhere')
  return { rate: points.length / 2 / seconds, safe: safe / (points.length / 2) }
}

const randomRates = (town: Town, seed: number) => {
  const random = seeded(seed)
  const points = Int32Array.from({ length: RANDOM_POINTS * 2 }, (_, i) =>
    toE7((i % 2 === 0 ? town.west : town.south) + random() * town.side),
  )
  const { index } = build(town)
  const locateAll = (): number => {
    let held = 0
    const begun = performance.now()
    for (let i = 0; i < points.length; i += 2) held += index.members(index.locate(points[i]!, points[i + 1]!)).length
    const seconds = (performance.now() - begun) / 1000
    if (Math.abs(held / RANDOM_POINTS - COVER) > 0.2) throw new Error(`${held / RANDOM_POINTS} fences hold a place`)
    return RANDOM_POINTS / seconds
  }
  const cold = locateAll()
  for (let pass = 0; pass < PASSES_TO_WARM; pass++) locateAll()
  return { cold, warm: locateAll(), naive: naiveRate(town, points) }
}

const naiveRate = (town: Town, points: Int32Array): number => {
  const tree = new RBush<{ minX: number; minY: number; maxX: number; maxY: number; fence: Polygon }>()
  tree.load(
    town.fences.map((fence) => {
      const ring = fence.coordinates[0]!
      const [lngs, lats] = [ring.map((position) => position[0]!), ring.map((position) => position[1]!)]
      return {
        minX: Math.min(...lngs),
        minY: Math.min(...lats),
        maxX: Math.max(...lngs),
        maxY: Math.max(...lats),
        fence,
      }
    }),
  )
  let held = 0
  const begun = performance.now()
  for (let i = 0; i < NAIVE_POINTS * 2; i += 2) {
    const point = [fromE7(points[i]!), fromE7(points[i + 1]!)]
    const box = { minX: point[0]!, minY: point[1]!, maxX: point[0]!, maxY: point[1]! }
    for (const { fence } of tree.search(box)) if (booleanPointInPolygon(point, fence)) held++
  }
  const seconds = (performance.now() - begun) / 1000
  if (held === 0) throw new Error('no fence holds a point')
  return NAIVE_POINTS / seconds
}

const rate = (name: string, perSecond: number): Row => ({ name, value: perSecond / 1e6, unit: 'M points/s' })

const times = (name: string, value: number): Row => ({ name, value, unit: '×' })

if (import.meta.url === pathToFileURL(process.argv[1]!).href) {
  for (const { name, rows } of run()) {
    console.log(name)
    for (const row of rows) console.log(`  ${row.name.padEnd(42)} ${row.value.toFixed(2).padStart(8)} ${row.unit}`)
  }
}
