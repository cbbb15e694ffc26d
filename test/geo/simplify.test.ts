import { pointToLineDistance } from '@turf/point-to-line-distance'
import { test } from 'tap'
import { boxContains, boxOfDegrees, plainBoxes } from '../../src/geo/box.ts'
import { fromE7, toE7, wrapLngE7 } from '../../src/geo/coordinates.ts'
import { simplify } from '../../src/geo/simplify.ts'
import { seeded } from '../support/random.ts'

const track = (random: () => number, lng: number, lat: number, step: number, count: number) => {
  const lngs = new Int32Array(count)
  const lats = new Int32Array(count)
  let [x, y, heading] = [toE7(lng), toE7(lat), 0]
  for (let i = 0; i < count; i++) {
    lngs[i] = wrapLngE7(x)
    lats[i] = y
    heading += (random() - 0.5) * 0.8
    x += Math.round(step * Math.cos(heading))
    y += Math.round(step * Math.sin(heading))
  }
  return { lngs, lats }
}

test('what is left out is within the tolerance, wherever it is', async (t) => {
  const random = seeded(4)
  for (const [lng, lat, step] of [
    [10, 50, 900],
    [179.999, 65, 900],
    [-179.9, -17, 9_000],
    [30, 80, 90_000],
    [0, 0, 3],
  ] as const) {
    for (const tolerance of [0.5, 10, 200]) {
      const { lngs, lats } = track(random, lng, lat, step, 400)
      const kept = simplify(lngs, lats, tolerance)
      t.same([kept[0], kept.at(-1)], [0, 399])
      for (let k = 1; k < kept.length; k++) {
        t.ok(kept[k]! > kept[k - 1]!)
        for (let i = kept[k - 1]! + 1; i < kept[k]!; i++) {
          const at = (j: number): [number, number] => [fromE7(lngs[j]!), fromE7(lats[j]!)]
          const off = pointToLineDistance(
            at(i),
            { type: 'LineString', coordinates: [at(kept[k - 1]!), at(kept[k]!)] },
            { units: 'meters' },
          )
          if (off > tolerance + 1e-6) t.fail(`${off} m off at ${at(i)}, tolerance ${tolerance}`)
        }
      }
    }
  }
})

test('a straight track is two points, a corner stays, the tolerance 0 keeps what bends', async (t) => {
  const lngs = Int32Array.from({ length: 1_000 }, (_, i) => i * 1_000)
  t.same([...simplify(lngs, new Int32Array(1_000), 1)], [0, 999])
  t.same([...simplify([0, 1_000, 1_000], [0, 0, 1_000], 1)], [0, 1, 2])
  t.same([...simplify([0, 10_000, 0], [0, 0, 0], 1)], [0, 1, 2], 'there and back')
  t.same([...simplify([], [], 1)], [])
  t.same([...simplify([5], [5], 1)], [0])
  t.same([...simplify(lngs, new Int32Array(1_000), 1, 10, 20)], [10, 19])
  t.same([...simplify([5, 5, 5, 5], [5, 5, 5, 5], 0)], [0, 3])
})

test('a track of 20,000 points that never comes back', async (t) => {
  const random = seeded(5)
  const { lngs, lats } = track(random, 10, 50, 900, 20_000)
  const begun = process.cpuUsage().user
  t.ok(simplify(lngs, lats, 20).length < 10_000)
  t.ok(process.cpuUsage().user - begun < 1_000_000)
})

test('viewports', async (t) => {
  const plain = boxOfDegrees(-1, -2, 3, 4)
  t.equal(boxContains(plain, toE7(-1), toE7(4)), true)
  t.equal(boxContains(plain, toE7(-1.0000001), toE7(4)), false)
  t.same([...plainBoxes(plain)], [-1, -2, 3, 4].map(toE7))
  const across = boxOfDegrees(170, -10, -170, 10)
  for (const lng of [170, 175, 180, -180, -170]) t.equal(boxContains(across, toE7(lng), 0), true, `${lng}`)
  for (const lng of [169, -169, 0]) t.equal(boxContains(across, toE7(lng), 0), false, `${lng}`)
  t.same([...plainBoxes(across)], [170, -10, 180, 10, -180, -10, -170, 10].map(toE7))
  t.equal(boxContains(boxOfDegrees(170, -10, 180, 10), toE7(-180), 0), true)
  t.equal(boxContains(boxOfDegrees(-540, -90, 540, 90), toE7(12), toE7(90)), true)
  const round = boxOfDegrees(160, -10, 155, 10)
  for (const lng of [160, 180, -180, 0, 155]) t.equal(boxContains(round, toE7(lng), 0), true, `${lng}`)
  t.equal(boxContains(round, toE7(157), 0), false)
  t.same(boxOfDegrees(0, 0, 359.99999999, 1), boxOfDegrees(-180, 0, 180, 1), 'less than 1e-7 degree is nothing')
  t.same(boxOfDegrees(350, 0, 370, 1), boxOfDegrees(-10, 0, 10, 1), 'a map that was panned')
})
